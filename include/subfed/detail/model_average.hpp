// SPDX-License-Identifier: MIT
/// Averages all tensors of a model: what streaming and one-pass form share.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_layout.hpp>
#include <subfed/detail/dense_average.hpp>
#include <subfed/detail/holder_list.hpp>
#include <subfed/detail/integer_merge.hpp>
#include <subfed/detail/tensor_average.hpp>
#include <subfed/executor.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// A client as the average of a whole model sees it. T: the element type of all tensors, or void.
template <class T>
struct member {
  const submodel* sub;
  double weight;
  const tensor_views<const T>* tensors;  ///< null: the sums have it already
};

/// What has been added up of one tensor before.
struct tensor_state {
  const double* sums = nullptr;
  const double* weights = nullptr;  ///< null while the members have them
  std::span<const exclusion> exclusions = {};
  const integer_merge* integers = nullptr;
};

/// The different submodels of a cohort, and which of them each member has.
struct distinct_submodels {
  std::vector<const submodel*> all;
  std::vector<std::size_t> of_member;
};

template <class T>
distinct_submodels find_distinct(std::span<const member<T>> members) {
  distinct_submodels out;
  submodel_index known;
  for (const member<T>& m : members) {
    const std::uint64_t hash = nodes_hash(*m.sub);
    std::size_t number = known.find(
        hash, [&](std::size_t d) { return out.all[d] == m.sub || out.all[d]->same_nodes(*m.sub); });
    if (number == submodel_index::none) {
      number = out.all.size();
      known.add(hash, number);
      out.all.push_back(m.sub);
    }
    out.of_member.push_back(number);
  }
  return out;
}

inline std::vector<selected_dimension> dimensions_of(const submodel& sub, std::size_t tensor) {
  const selection chosen = sub[tensor_id(tensor)];
  std::vector<selected_dimension> out;
  for (int r = 0; r < chosen.rank(); ++r) out.push_back(chosen.dimension(r));
  return out;
}

/// The loops over tensor number t, whose elements are E.
template <class E, class T>
average_layout<E> layout_of(const tensor_view<E>& global, std::size_t t,
                            std::span<const member<T>> members,
                            const distinct_submodels& distinct) {
  std::vector<std::vector<selected_dimension>> shapes;
  for (const submodel* sub : distinct.all) shapes.push_back(dimensions_of(*sub, t));
  std::vector<participant<E>> participants;
  for (std::size_t m = 0; m < members.size(); ++m) {
    participant<E> p{members[m].weight, distinct.of_member[m]};
    if (members[m].tensors != nullptr) {
      const tensor_view<const E> tensor = typed<E>((*members[m].tensors)[t]);
      p.data = tensor.data_handle();
      std::copy(tensor.strides().begin(), tensor.strides().end(), p.strides.begin());
    }
    participants.push_back(p);
  }
  return {global, shapes, std::move(participants)};
}

/// What one part of the work wrote and left out.
struct part_report {
  std::int64_t held = 0;
  std::int64_t skipped = 0;
};

/// A tensor's average, to be run in parts.
struct tensor_job {
  std::int64_t slabs;
  std::int64_t slabs_a_part;
  std::function<part_report(std::int64_t begin, std::int64_t end)> run;
};

template <class E, class T>
tensor_job floating_job(const tensor_view<E>& global, std::size_t t,
                        std::span<const member<T>> members, const distinct_submodels& distinct,
                        const average_terms& terms) {
  constexpr std::int64_t part_elements = 1 << 18;
  const auto layout =
      std::make_shared<const average_layout<E>>(layout_of(global, t, members, distinct));
  const std::int64_t a_slab = global.size() / layout->slabs();
  return {layout->slabs(), (std::max)(part_elements / a_slab, std::int64_t{1}),
          [global, layout, terms](std::int64_t begin, std::int64_t end) {
            tensor_average<E> average(global.data_handle(), *layout, terms);
            average.run(begin, end);
            return part_report{average.held(), average.skipped()};
          }};
}

template <class E>
tensor_job dense_job(const tensor_view<E>& global, const average_terms& terms) {
  constexpr std::int64_t part_elements = 1 << 18;
  const std::int64_t slabs = global.rank() == 0 ? 1 : global.extent(0);
  return {slabs, (std::max)(part_elements / (global.size() / slabs), std::int64_t{1}),
          [global, terms](std::int64_t begin, std::int64_t end) {
            return part_report{dense_average(global, terms, begin, end), 0};
          }};
}

/// Throws  error when a sum does not fit.
template <class E, class T>
tensor_job integer_job(const tensor_view<E>& global, const model& net, std::size_t t,
                       std::span<const member<T>> members, const integer_merge* before,
                       integer_rule rule) {
  const auto& info = net.tensors()[t];
  const auto merged = std::make_shared<integer_merge>();
  if (before != nullptr) *merged = *before;
  for (const member<T>& m : members) {
    if (m.tensors == nullptr) continue;
    merged->add(rule, (*m.sub)[tensor_id(t)], info.extents, typed<E>((*m.tensors)[t]));
  }
  merged->template check<E>(info.name);
  return {1, 1, [global, merged](std::int64_t, std::int64_t) {
            return part_report{merged->write(global), 0};
          }};
}

/// Averages all tensors and counts in the report. states: empty, or one for each tensor.
///
/// Throws  error when a sum of integers does not fit, before the first write.
template <class T, executor Executor>
void average_model(const model& net, const tensor_views<T>& globals,
                   std::span<const member<T>> members, std::span<const tensor_state> states,
                   const average_options& options, double cohort_weight, average_report& report,
                   Executor&& run_by) {
  struct part {
    std::size_t job;
    std::int64_t begin, end;  // slabs
    part_report report;
  };
  const distinct_submodels distinct = find_distinct(members);
  std::vector<tensor_job> jobs;
  average_report counted = report;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    if (globals[t].size() == 0) continue;
    const tensor_state state = states.empty() ? tensor_state{} : states[t];
    with_type(globals[t], [&]<class E>(const tensor_view<E>& global) {
      if constexpr (!averageable<E>) {
        if (options.integers == integer_rule::keep) {
          counted.kept += global.size();
          return;
        }
      }
      counted.unheld += global.size();
      if (members.empty() && state.weights == nullptr) return;
      if constexpr (averageable<E>) {
        const average_terms terms{state.sums, state.weights, state.exclusions, options,
                                  cohort_weight};
        jobs.push_back(state.weights != nullptr
                           ? dense_job(global, terms)
                           : floating_job(global, t, members, distinct, terms));
      } else {
        jobs.push_back(integer_job(global, net, t, members, state.integers, options.integers));
      }
    });
  }

  std::vector<part> parts;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::int64_t begin = 0; begin < jobs[j].slabs; begin += jobs[j].slabs_a_part) {
      parts.push_back({j, begin, (std::min)(begin + jobs[j].slabs_a_part, jobs[j].slabs), {}});
    }
  }
  run_by.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
    part& p = parts[static_cast<std::size_t>(i)];
    p.report = jobs[p.job].run(p.begin, p.end);
  });
  for (const part& p : parts) {
    counted.held += p.report.held;
    counted.unheld -= p.report.held;
    counted.skipped_elements += p.report.skipped;
  }
  report = counted;
}

}  // namespace subfed::inline v0::detail
