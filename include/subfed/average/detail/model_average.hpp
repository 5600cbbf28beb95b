// SPDX-License-Identifier: MIT
/// Averages all tensors of a model: what the streaming and the one-pass form share.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/counter_merge.hpp>
#include <subfed/average/detail/dense_average.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/integer_merge.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/tensor_average.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/executor.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

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

/// The selections of one tensor by the different submodels.
class distinct_selections {
 public:
  distinct_selections(const distinct_submodels& distinct, std::size_t t) {
    made_.reserve(distinct.all.size());  // they must not move
    all_.reserve(distinct.all.size());
    for (const submodel* sub : distinct.all) {
      const std::span<const tensor_plan> plans = internals::plans(*sub);
      if (plans.empty()) made_.push_back((*sub)[tensor_id(t)]);
      all_.push_back(plans.empty() ? &made_.back() : &plans[t].chosen);
    }
  }
  std::span<const selection* const> all() const noexcept { return all_; }

 private:
  std::vector<selection> made_;  // of submodels without a plan
  std::vector<const selection*> all_;
};

/// The members' parts in tensor number t, without those that have no element of it: their data may be
/// null, as that of members whose parts are in the sums. From: the type of its elements, or any_element.
template <class From, class T>
std::vector<participant<From>> participants_of(std::size_t t, std::span<const member<T>> members,
                                               const distinct_submodels& distinct) {
  std::vector<participant<From>> out;
  out.reserve(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    participant<From> p{members[m].weight, distinct.of_member[m]};
    if (members[m].tensors != nullptr) {
      if ((*members[m].tensors)[t].size() == 0) continue;
      with_type((*members[m].tensors)[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (std::is_same_v<From, E> ||
                      (std::is_same_v<From, any_element> && averageable<E>)) {
          p.data = element_pointer<From>::from(tensor.data_handle());
        }
        std::copy(tensor.strides().begin(), tensor.strides().end(), p.strides.begin());
      });
    }
    out.push_back(p);
  }
  return out;
}

/// Whether all members have the elements of tensor number t in the type E.
template <class E, class T>
bool all_have_type(std::size_t t, std::span<const member<T>> members) {
  return std::all_of(members.begin(), members.end(), [&](const member<T>& m) {
    // Elements of a foreign half type have the format of our own, which is what a visit would give.
    return m.tensors == nullptr ||
           (!foreign_float16<E> && format_of_view((*m.tensors)[t]) == format_of<E>());
  });
}

/// A tensor's average, to be run in parts.
struct tensor_job {
  std::int64_t slabs;
  std::int64_t slabs_a_part;
  std::function<part_report(std::int64_t begin, std::int64_t end, pass does)> run;
  bool may_overflow = false;  ///< results may be too large for the global tensor's type
  std::int64_t bytes = 0;     ///< of memory that goes with the job
  std::size_t tensor = 0;
};

/// From: the type of all members' elements, or any_element.
template <class From, class E, class T>
tensor_job floating_job(const tensor_view<E>& global, std::size_t t,
                        std::span<const member<T>> members, const distinct_submodels& distinct,
                        average_terms terms) {
  constexpr std::int64_t part_elements = 1 << 18;
  std::vector<participant<From>> participants = participants_of<From>(t, members, distinct);
  if (participants.empty()) return {0, 1, nullptr};
  double largest = terms.largest;
  for (const auto& p : participants) {
    if (!(p.data == nullptr)) largest = (std::max)(largest, largest_at(p.data));
  }
  std::vector<double> weights;
  weights.reserve(members.size());
  for (const member<T>& m : members) weights.push_back(m.weight);  // the cohort's, too, is scaled
  largest = terms.largest_of_values(largest);
  weight_scale scale{terms.weights_exponent};
  if (!terms.has_sums() && !terms.options.sums) {
    scale = scale_of(weights, is_far_reaching(largest));
  }
  terms.wide = scale.wide;
  if (scale.exponent != 0) {
    terms.cohort_weight = scaled(terms.cohort_weight, scale.exponent);
    for (auto& p : participants) p.weight = scaled(p.weight, scale.exponent);
  }
  const auto layout = std::make_shared<const average_layout<From>>(
      global, distinct_selections(distinct, t).all(), std::move(participants));
  const std::int64_t a_slab = global.size() / layout->slabs();
  return {layout->slabs(), (std::max)(part_elements / a_slab, std::int64_t{1}),
          [global, layout, terms](std::int64_t begin, std::int64_t end, pass does) {
            average_terms own = terms;
            own.does = does;
            tensor_average<E, From> average(global.data_handle(), *layout, own);
            average.run(begin, end);
            return average.report();
          },
          !terms.is_plain() || largest > largest_of<E>(), layout->bytes()};
}

template <class E>
tensor_job dense_job(const tensor_view<E>& global, average_terms terms) {
  constexpr std::int64_t part_elements = 1 << 18;
  const std::int64_t slabs = global.rank() == 0 ? 1 : global.extent(0);
  if (terms.weights_exponent != 0) {
    terms.cohort_weight = scaled(terms.cohort_weight, terms.weights_exponent);
  }
  return {slabs, (std::max)(part_elements / (global.size() / slabs), std::int64_t{1}),
          [global, terms](std::int64_t begin, std::int64_t end, pass does) {
            average_terms own = terms;
            own.does = does;
            return dense_average(global, own, begin, end);
          },
          !terms.is_plain() || terms.largest_of_values(terms.largest) > largest_of<E>()};
}

/// What the members add to a tensor of integers. For all types of the global tensor's elements at once: each
/// of them would take a visit of the members' types.
template <class T>
std::shared_ptr<integer_merge> merged_integers(const model& net, std::size_t t,
                                               std::span<const member<T>> members,
                                               const integer_merge* before,
                                               const average_options& options) {
  const auto merged = std::make_shared<integer_merge>();
  if (before != nullptr) *merged = *before;
  for (const member<T>& m : members) {
    if (m.tensors == nullptr) continue;
    with_type((*m.tensors)[t], [&]<class F>(const tensor_view<const F>& tensor) {
      if constexpr (!averageable<F>) {
        merged->add(options.integers, (*m.sub)[tensor_id(t)], net.tensors()[t].extents, tensor);
      }
    });
  }
  return merged;
}

/// Throws  error when a new value does not fit.
template <class E>
tensor_job integer_job(const tensor_view<E>& global, const std::string& name,
                       std::shared_ptr<integer_merge> merged, const average_options& options) {
  merged->check(global, options.content, name);
  return {1, 1, [global, merged, what = options.content](std::int64_t, std::int64_t, pass) {
            return part_report{merged->write(global, what)};
          }};
}

/// The same for a counter in floating point. skipped: counts what is left out.
template <class T>
std::shared_ptr<counter_merge> merged_counters(const model& net, std::size_t t,
                                               std::span<const member<T>> members,
                                               const counter_merge* before,
                                               const average_options& options,
                                               std::int64_t& skipped) {
  const auto merged = std::make_shared<counter_merge>();
  if (before != nullptr) *merged = *before;
  for (const member<T>& m : members) {
    if (m.tensors == nullptr) continue;
    with_type((*m.tensors)[t], [&]<class F>(const tensor_view<const F>& tensor) {
      if constexpr (averageable<F>) {
        skipped += merged->add(options, (*m.sub)[tensor_id(t)], net.tensors()[t].extents, tensor);
      }
    });
  }
  return merged;
}
template <class E>
tensor_job counter_job(const tensor_view<E>& global, std::shared_ptr<counter_merge> merged,
                       const average_options& options) {
  return {1, 1,
          [global, merged, what = options.content](std::int64_t, std::int64_t, pass does) {
            return merged->write(global, what, does);
          },
          true};
}

/// The average of a tensor of floating-point numbers.
template <class E, class T>
tensor_job averaging_job(const tensor_view<E>& global, std::size_t t,
                         std::span<const member<T>> members, const distinct_submodels& distinct,
                         const average_terms& terms) {
  if (terms.weights != nullptr) return dense_job(global, terms);
  if constexpr (std::is_void_v<T> || std::is_same_v<T, E>) {
    if (std::is_same_v<T, E> || all_have_type<E>(t, members)) {
      return floating_job<E>(global, t, members, distinct, terms);
    }
  }
  if constexpr (!std::is_same_v<T, E>) {
    return floating_job<any_element>(global, t, members, distinct, terms);
  }
}

/// Runs jobs in parts. Those that write are counted in the report.
///
/// Throws  error when the rehearsal finds a result that is too large.
template <executor Executor>
void run_jobs(const model& net, std::span<const tensor_job> jobs, pass does,
              average_report& counted, Executor&& run_by) {
  struct part {
    const tensor_job* job;
    std::int64_t begin, end;  // slabs
    part_report report;
  };
  std::vector<part> parts;
  for (const tensor_job& job : jobs) {
    if (does == pass::rehearses && !job.may_overflow) continue;
    for (std::int64_t begin = 0; begin < job.slabs; begin += job.slabs_a_part) {
      parts.push_back({&job, begin, (std::min)(begin + job.slabs_a_part, job.slabs), {}});
    }
  }
  run_parts(run_by, static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
    const float_mode of_thread;
    part& p = parts[static_cast<std::size_t>(i)];
    p.report = p.job->run(p.begin, p.end, does);
  });
  for (const part& p : parts) {
    if (does == pass::rehearses) {
      if (p.report.overflowed == 0) continue;
      const auto& info = net.tensors()[p.job->tensor];
      fail("subfed: average: the average of tensor '" + info.name + "' at global element " +
               index_text(p.report.first_overflow, info.extents) +
               " is too large for the tensor's type",
           {.tensor = info.name});
    }
    counted.held += p.report.held;
    counted.unheld -= p.report.held;
    counted.skipped_elements += p.report.skipped;
    counted.overflowed += p.report.overflowed;
  }
}

/// Averages all tensors and counts in the report. states: empty, or one for each tensor. T: the type
/// of the global tensors' elements, U: of the members'; each may be void.
///
/// Throws  error when a sum of integers does not fit, and for a result that is too large for its type
///         under non_finite::refuse; before the first write.
template <class T, class U, executor Executor>
void average_model(const model& net, const tensor_views<T>& globals,
                   std::span<const member<U>> members, std::span<const tensor_state> states,
                   const average_options& options, double cohort_weight, average_report& report,
                   Executor&& run_by) {
  const float_mode mode;
  const distinct_submodels distinct = find_distinct(members);
  std::vector<std::function<tensor_job()>> jobs;  // made when it is their turn
  std::vector<std::size_t> tensors;               // of the jobs
  jobs.reserve(globals.size());
  tensors.reserve(globals.size());
  average_report counted = report;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    if (globals[t].size() == 0) continue;
    if (net.tensors()[t].is_local()) {
      counted.kept += globals[t].size();
      continue;
    }
    average_options own = options;
    if (!net.tensors()[t].is_parameter()) own.step = 1;  // a larger one: variances below 0
    const tensor_state state = states.empty() ? tensor_state{} : states[t];
    with_type(globals[t], [&]<class E>(const tensor_view<E>& global) {
      const bool is_counter = !averageable<E> || net.tensors()[t].role == role::counter;
      const bool keeps = is_counter && options.integers == integer_rule::keep;
      (keeps ? counted.kept : counted.unheld) += global.size();
      if (keeps) return;
      if constexpr (averageable<E>) {
        if (is_counter) {
          const auto merged =
              merged_counters(net, t, members, state.counters, options, counted.skipped_elements);
          jobs.push_back(
              [global, merged, &options] { return counter_job(global, merged, options); });
          return;
        }
        if (members.empty() && state.weights == nullptr) return;
        average_terms terms{.sums = state.sums,
                            .fixed_sums = state.fixed_sums,
                            .weights = state.weights,
                            .options = own,
                            .cohort_weight = cohort_weight,
                            .weight_rounding = rounding_of_weights(report.clients),
                            .largest = state.largest,
                            .weights_exponent = state.exponent};
        if (own.sums) terms.quantum = own.sums->quantum();
        jobs.push_back(
            [=, &distinct] { return averaging_job(global, t, members, distinct, terms); });
      } else {
        const auto merged = merged_integers(net, t, members, state.integers, options);
        const tensor_job job = integer_job(global, net.tensors()[t].name, merged, options);
        jobs.push_back([job] { return job; });
      }
    });
    tensors.resize(jobs.size(), t);
  }

  // With many clients, what each holds of a tensor takes more memory than the caches have: it is worked out
  // for some tensors at a time, unless all are rehearsed before any is written. One thread takes them one by
  // one: their memory is then the same, and in the cache.
  constexpr bool one_by_one = std::is_same_v<std::remove_cvref_t<Executor>, serial>;
  constexpr std::int64_t most_bytes = one_by_one ? 0 : 1 << 22;
  const bool rehearses = options.on_non_finite == non_finite::refuse;
  std::vector<tensor_job> now;
  std::int64_t bytes = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    now.push_back(jobs[j]());
    now.back().tensor = tensors[j];
    bytes += now.back().bytes;
    if ((rehearses || bytes < most_bytes) && j + 1 < jobs.size()) continue;
    if (rehearses) run_jobs(net, now, pass::rehearses, counted, run_by);
    run_jobs(net, now, pass::writes, counted, run_by);
    now.clear();
    bytes = 0;
  }
  report = counted;
}

}  // namespace subfed::inline v0::detail
