// SPDX-License-Identifier: MIT
/// Averages all tensors of a model: what streaming and one-pass form share.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_layout.hpp>
#include <subfed/detail/tensor_average.hpp>
#include <subfed/executor.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// A client as the average of a whole model sees it.
template <class T>
struct member {
  const submodel* sub;
  double weight;
  const tensor_views<const T>* tensors;  ///< null: the sums have it already
};

/// What streaming has kept of one tensor.
struct tensor_state {
  const double* sums = nullptr;
  std::span<const exclusion> exclusions = {};
};

/// The different submodels of a cohort, and which of them each member has.
struct distinct_submodels {
  std::vector<const submodel*> all;
  std::vector<std::size_t> of_member;
};

template <class T>
distinct_submodels find_distinct(std::span<const member<T>> members) {
  distinct_submodels out;
  for (const member<T>& m : members) {
    const auto known = std::find_if(out.all.begin(), out.all.end(), [&](const submodel* s) {
      return s == m.sub || s->same_nodes(*m.sub);
    });
    out.of_member.push_back(static_cast<std::size_t>(known - out.all.begin()));
    if (known == out.all.end()) out.all.push_back(m.sub);
  }
  return out;
}

inline std::vector<selected_dimension> dimensions_of(const submodel& sub, std::size_t tensor) {
  const selection chosen = sub[tensor_id(tensor)];
  std::vector<selected_dimension> out;
  for (int r = 0; r < chosen.rank(); ++r) out.push_back(chosen.dimension(r));
  return out;
}

/// The average of tensor number t, cut into parts.
template <class T>
average_layout<T> layout_of(const tensor_view<T>& global, std::size_t t,
                            std::span<const member<T>> members,
                            const distinct_submodels& distinct) {
  std::vector<std::vector<selected_dimension>> shapes;
  for (const submodel* sub : distinct.all) shapes.push_back(dimensions_of(*sub, t));
  std::vector<participant<T>> participants;
  for (std::size_t m = 0; m < members.size(); ++m) {
    participant<T> p{members[m].weight, distinct.of_member[m]};
    if (members[m].tensors != nullptr) {
      const tensor_view<const T>& tensor = (*members[m].tensors)[t];
      p.data = tensor.data_handle();
      std::copy(tensor.strides().begin(), tensor.strides().end(), p.strides.begin());
    }
    participants.push_back(p);
  }
  return {global, shapes, std::move(participants)};
}

/// Averages all tensors and counts in the report. states: empty, or one for each tensor.
template <class T, executor Executor>
void average_model(const tensor_views<T>& globals, std::span<const member<T>> members,
                   std::span<const tensor_state> states, const average_options& options,
                   double cohort_weight, average_report& report, Executor&& run_by) {
  struct part {
    std::size_t tensor;
    std::int64_t begin, end;  // slabs
    std::int64_t held, skipped;
  };
  constexpr std::int64_t part_elements = 1 << 18;

  const distinct_submodels distinct = find_distinct(members);
  std::vector<average_layout<T>> layouts;
  std::vector<part> parts;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    layouts.push_back(layout_of(globals[t], t, members, distinct));
    const std::int64_t size = globals[t].size();
    if (size == 0) continue;
    const std::int64_t slabs = layouts.back().slabs();
    const std::int64_t step = (std::max)(part_elements / (size / slabs), std::int64_t{1});
    for (std::int64_t begin = 0; begin < slabs; begin += step) {
      parts.push_back({t, begin, (std::min)(begin + step, slabs), 0, 0});
    }
    report.unheld += size;
  }
  run_by.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
    part& p = parts[static_cast<std::size_t>(i)];
    average_terms terms{nullptr, {}, options, cohort_weight};
    if (!states.empty()) {
      terms.sums = states[p.tensor].sums;
      terms.exclusions = states[p.tensor].exclusions;
    }
    tensor_average<T> average(globals[p.tensor].data_handle(), layouts[p.tensor], terms);
    average.run(p.begin, p.end);
    p.held = average.held();
    p.skipped = average.skipped();
  });
  for (const part& p : parts) {
    report.held += p.held;
    report.unheld -= p.held;
    report.skipped_elements += p.skipped;
  }
}

}  // namespace subfed::inline v0::detail
