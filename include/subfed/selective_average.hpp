// SPDX-License-Identifier: MIT
/// The selective average, one update at a time: add, merge, finish.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_checks.hpp>
#include <subfed/detail/average_kernels.hpp>
#include <subfed/detail/memory_apart.hpp>
#include <subfed/detail/model_average.hpp>
#include <subfed/executor.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Averages every global parameter over just the clients that hold it, [Rolex, Eq. 10]:
///
///   theta[k] = sum over the clients m that hold k of p_m theta_m[k]  /  sum of their p_m
///
/// and leaves a parameter that nobody holds, or only with weight 0, as it is, bit for bit. Updates
/// come one by one and are not kept; averages of parts of a cohort merge. When all updates are at
/// hand, average_cohort() is faster and needs no memory.
///
/// The state is an additive monoid: add() and merge() commute up to rounding, a new object is zero.
///
/// Numerics  Sums and weights are doubles, in the order of the calls; one rounding to T at the end.
///           The same calls in the same order give the same bits everywhere. For T float, half or
///           bfloat16 the order shows only where an element's sum is inexact in 53 bits, and then
///           nearly never after the final rounding.
/// Cost      8 bytes a parameter, and one submodel for each different set of nodes.
template <class T>
requires(averageable<T> || std::is_void_v<T>) class selective_average {
 public:
  /// Throws  error when an option is not finite.
  explicit selective_average(model net, const average_options& options = {})
      : model_(std::move(net)), options_(options) {
    detail::check_options(options_);
    state_.resize(model_.tensors().size());
  }

  /// Adds a client's update: its tensors in the order in which the model describes them.
  ///
  /// Shapes  tensor t is sub.extents(tensor_id(t)); any strides.
  /// Throws  error for a negative or non-finite weight or sum of weights, another model, a wrong
  ///         number or shape of tensors, a non-finite value under non_finite::refuse, another round or
  ///         a second update under options.round. The state is then as it was (refusals by round are
  ///         counted).
  /// Cost    Reads the update once (twice with refuse and skip_client), reads and writes its sums.
  void add(const submodel& sub, const tensor_views<const T>& tensors, double weight = 1) {
    detail::check_update(model_, sub, tensors, weight);
    for (std::size_t t = 0; t < tensors.size(); ++t) check_format(t, format_of(tensors[t]));
    check_round(sub);
    if (!detail::admits(sub, tensors, options_.on_non_finite)) {
      ++report_.skipped_clients;  // not seen: it may send a better one
      return;
    }
    detail::check_total_weight(cohort_weight_ + weight);
    ++report_.clients;
    cohort_weight_ += weight;
    seen_.push_back(sub.origin().client);
    if (!(weight > 0)) return;

    // An update with left-out elements gets an entry of its own, which they refer to by number.
    std::size_t own_entry = no_entry;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      state_[t].format = format_of(tensors[t]);
      detail::with_type(tensors[t],
                        [&](const auto& tensor) { add_tensor(sub, t, tensor, weight, own_entry); });
    }
    if (own_entry == no_entry) count(sub, weight);
  }
  void add(const submodel& sub, std::initializer_list<tensor_view<const T>> tensors,
           double weight = 1) {
    add(sub, tensor_views<const T>(tensors), weight);
  }

  /// Takes in everything that another average of the same model has added.
  ///
  /// Throws  error when the models, the options or element types of a tensor differ, when the weights
  ///         add up to infinity, or when both have the same client under options.round. The state is
  ///         then as it was.
  void merge(const selective_average& other) {
    if (!(other.model_ == model_)) {
      detail::fail("subfed: average: the average to merge is of another model");
    }
    if (!(other.options_ == options_)) {
      detail::fail("subfed: average: the average to merge has other options");
    }
    for (const std::uint64_t client : other.seen_) {
      if (options_.round && std::find(seen_.begin(), seen_.end(), client) != seen_.end()) {
        detail::fail("subfed: average: client " + std::to_string(client) +
                     " is in both of the averages to merge");
      }
    }
    for (std::size_t t = 0; t < state_.size(); ++t) check_format(t, other.state_[t].format);
    detail::check_total_weight(cohort_weight_ + other.cohort_weight_);
    const std::vector<entry> entries = other.entries_;  // other may be this
    const std::vector<tensor_sums> state = other.state_;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      tensor_sums& own = state_[t];
      if (state[t].format) own.format = state[t].format;
      if (own.sums.empty()) own.sums.resize(state[t].sums.size());
      for (std::size_t i = 0; i < state[t].sums.size(); ++i) own.sums[i] += state[t].sums[i];
      own.integers.merge(options_.integers, state[t].integers);
    }
    for (std::size_t e = 0; e < entries.size(); ++e) {
      if (entries[e].shared) {
        count(entries[e].sub, entries[e].weight);
        continue;
      }
      for (std::size_t t = 0; t < state.size(); ++t) {
        for (const detail::exclusion& x : state[t].exclusions) {
          if (x.participant == e) state_[t].exclusions.push_back({x.offset, entries_.size()});
        }
      }
      entries_.push_back(entries[e]);
    }
    const std::vector<std::uint64_t> seen = other.seen_;
    seen_.insert(seen_.end(), seen.begin(), seen.end());
    cohort_weight_ += other.cohort_weight_;
    report_.clients += other.report_.clients;
    report_.refused_clients += other.report_.refused_clients;
    report_.skipped_clients += other.report_.skipped_clients;
    report_.skipped_elements += other.report_.skipped_elements;
  }

  /// Writes the average into the global tensors. The state stays: more may be added, and finish()
  /// called again.
  ///
  /// Shapes  tensor t is the model's extents of it; any strides.
  /// Post    Elements without a holder have the bits that they had; without any update that is all.
  /// Throws  error for a wrong number or shape, or several indices for one element; nothing has
  ///         been written then.
  /// Cost    Reads each sum once, writes each held element once.
  template <executor Executor = serial>
  average_report finish(const tensor_views<T>& globals, Executor&& run_by = {}) const {
    detail::check_globals(model_, globals);
    detail::placed_tensors places;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      places.add(globals[t], model_.tensors()[t].name, detail::access::writes);
    }
    places.check_apart("average");
    for (std::size_t t = 0; t < globals.size(); ++t) check_format(t, format_of(globals[t]));
    std::vector<detail::member<T>> members;
    for (const entry& e : entries_) members.push_back({&e.sub, e.weight, nullptr});
    std::vector<std::vector<detail::exclusion>> exclusions;
    std::vector<detail::tensor_state> states;
    for (const tensor_sums& own : state_) {
      exclusions.push_back(own.exclusions);
      std::sort(exclusions.back().begin(), exclusions.back().end());
    }
    for (std::size_t t = 0; t < state_.size(); ++t) {
      states.push_back({state_[t].sums.data(), exclusions[t], &state_[t].integers});
    }
    average_report report = report_;
    detail::average_model<T>(globals, members, states, options_, cohort_weight_, report, run_by);
    return report;
  }
  average_report finish(std::initializer_list<tensor_view<T>> globals) const {
    return finish(tensor_views<T>(globals));
  }

  /// What has been added so far; held and unheld are counted by finish().
  const average_report& report() const noexcept { return report_; }

 private:
  struct entry {
    submodel sub;
    double weight;
    bool shared;  ///< stands for all updates with these nodes that left nothing out
  };
  static constexpr std::size_t no_entry = static_cast<std::size_t>(-1);

  /// Of one tensor, empty until something is added.
  struct tensor_sums {
    std::optional<detail::element_format> format = {};
    std::vector<double> sums = {};
    std::vector<detail::exclusion> exclusions = {};
    detail::integer_merge integers = {};
  };

  template <class V>
  static std::optional<detail::element_format> format_of(const tensor_view<V>& view) {
    if constexpr (std::is_void_v<V>) {
      return view.format();
    } else {
      return {};  // T says it
    }
  }

  void check_format(std::size_t t, std::optional<detail::element_format> found) const {
    const auto& expected = state_[t].format;
    if (!found || !expected || *found == *expected) return;
    detail::fail("subfed: average: tensor '" + model_.tensors()[t].name +
                 "' has elements of type " + detail::format_text(*found) + ", expected " +
                 detail::format_text(*expected) + " as in earlier updates");
  }

  void check_round(const submodel& sub) {
    if (!options_.round) return;
    const bool stale = sub.origin().round != *options_.round;
    const bool again = std::find(seen_.begin(), seen_.end(), sub.origin().client) != seen_.end();
    if (stale || again) {
      ++report_.refused_clients;
      detail::refuse_round(sub, *options_.round);
    }
  }

  void count(const submodel& sub, double weight) {
    for (entry& e : entries_) {
      if (e.shared && e.sub.same_nodes(sub)) {
        e.weight += weight;
        return;
      }
    }
    entries_.push_back({sub, weight, true});
  }

  template <class E>
  void add_tensor(const submodel& sub, std::size_t t, const tensor_view<const E>& tensor,
                  double weight, std::size_t& own_entry) {
    const std::vector<std::int64_t>& extents = model_.tensors()[t].extents;
    tensor_sums& own = state_[t];
    if constexpr (!averageable<E>) {
      own.integers.add(options_.integers, sub[tensor_id(t)], extents, tensor);
    } else {
      if (own.sums.empty()) own.sums.resize(elements_of(extents), 0.0);
      const detail::paired_walk walk(sub[tensor_id(t)], extents, tensor);
      double* const sums = own.sums.data();
      const E* const data = tensor.data_handle();
      const std::int64_t from_step = walk.local_stride();
      const std::int64_t sum_step = walk.global_stride();
      if (options_.on_non_finite != non_finite::skip_element) {
        walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
          detail::accumulate(data + l, from_step, weight, sums + g, sum_step, length);
        });
        return;
      }
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) {
          const E x = data[l + i * from_step];
          if (scalar_traits<E>::is_finite(x)) {
            detail::accumulate(&x, 1, weight, sums + g + i * sum_step, 1, 1);
            continue;
          }
          if (own_entry == no_entry) {
            own_entry = entries_.size();
            entries_.push_back({sub, weight, false});
          }
          own.exclusions.push_back({g + i * sum_step, own_entry});
          ++report_.skipped_elements;
        }
      });
    }
  }

  static std::size_t elements_of(std::span<const std::int64_t> extents) {
    std::size_t elements = 1;
    for (const std::int64_t e : extents) elements *= static_cast<std::size_t>(e);
    return elements;
  }

  model model_;
  average_options options_;
  std::vector<tensor_sums> state_;
  std::vector<entry> entries_;
  std::vector<std::uint64_t> seen_;
  double cohort_weight_ = 0;
  average_report report_;
};

}  // namespace subfed::inline v0
