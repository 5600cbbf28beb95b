// SPDX-License-Identifier: MIT
/// The selective average, one update at a time: add, merge, finish.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/counter_merge.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/model_average.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/detail/update_products.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/executor.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Averages every global parameter over exactly the clients that hold it, [Rolex, Eq. 10]:
///
///   theta[k] = sum over the clients m that hold k of p_m theta_m[k]  /  sum of their p_m
///
/// A parameter that nobody holds, or that is held only with weight 0, keeps its bits, and so do
/// tensors that stay with their clients (role::local). Statistics are averaged as they are:
/// options.step is for parameters. Updates come one by one and are not kept; averages of parts of a
/// cohort can be merged. When all updates are at hand, average_cohort() is faster and needs no
/// memory.
///
/// The state is an additive monoid: add() and merge() commute up to rounding, a new object is zero.
/// With options.sums they commute to the bit, and all updates in any order, in any parts that are
/// merged in any way, give the bits of average_cohort().
///
/// Numerics  Sums and weights are doubles, in the order of the calls; one rounding to T at the end.
///           Sums are multiplied by a power of two where weights or values are very large or small,
///           so that finite values have a finite mean. The same calls in the same order give the
///           same bits everywhere. For T float, half or bfloat16 the order matters only where an
///           element's sum is inexact in 53 bits, and then almost never after the final rounding.
///           With options.sums it never matters.
/// Cost      8 bytes per parameter, and one submodel for each different set of nodes, or 8 bytes
///           more per parameter where that is less (has_dense_weights) or where elements are left
///           out: at most 16 bytes per parameter, whatever clients send. Every addition reads and
///           writes the sums of what the client holds, so more bytes move than in average_cohort.
template <class T>
requires(averageable<T> || std::is_void_v<T>) class selective_average {
 public:
  /// Throws  error when an option is not finite.
  explicit selective_average(model net, const average_options& options = {})
      : model_(std::move(net)), options_(options) {
    detail::check_options(options_);
    state_.resize(model_.tensors().size());
  }

  /// Adds a client's update: its tensors in the order in which the model describes them. Their
  /// floating-point types may differ from T and from update to update.
  ///
  /// Shapes  tensor t is sub.extents(tensor_id(t)); any strides. Of a tensor that stays with the
  ///         client (role::local) any view is accepted, even an empty one; it is never read.
  /// Returns what became of the update, with its own number of left-out elements.
  /// Throws  error for a negative or non-finite weight or sum of weights, another model, a wrong
  ///         number or shape of tensors, a non-finite value under non_finite::refuse, and another
  ///         round or a second update under options.round unless on_late and on_repeated say
  ///         otherwise. The state is then unchanged (except that refusals by round are counted).
  /// Cost    Reads the update once (doubles twice, and all types with refuse, skip_client and
  ///         skip_element), reads and writes its sums. O(log n) after n updates under options.round.
  template <class U>
  requires(averageable<U> || std::is_void_v<U>) update_outcome
      add(const submodel& sub, const tensor_views<const U>& tensors, double weight = 1) {
    const detail::float_mode mode;
    detail::check_update<U>(model_, sub, tensors, weight);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (!model_.tensors()[t].is_local()) check_format(t, format_of(tensors[t]));
    }
    update_outcome outcome = detail::outcome_by_round(sub, weight, options_);
    const std::pair key(sub.origin().round, sub.origin().client);
    if (outcome && options_.round && seen_.count(key) != 0) {
      outcome.fate = fate::repeated;
      outcome.weight = 0;
    }
    if (!outcome) {
      if (detail::is_refused(outcome.fate, options_)) {
        ++report_.refused_clients;
        detail::refuse_round(sub, outcome.fate, options_);
      }
      detail::leave_out(report_, outcome);
      return outcome;
    }
    if (!detail::admits(sub, tensors, options_, outcome)) {
      detail::leave_out(report_, outcome);  // not marked as seen: the client may send a better one
      return outcome;
    }
    weight = outcome.weight;
    detail::check_total_weight(cohort_weight_ + weight, options_);
    const std::vector<detail::product_range> ranges = ranges_with(sub, tensors, weight);
    if (options_.sums && weight > 0 && !add_terms(sub, tensors, outcome)) {
      detail::leave_out(report_, outcome);
      return outcome;
    }
    ++report_.clients;
    cohort_weight_ += weight;
    if (options_.round) seen_.insert(key);
    if (!(weight > 0)) return outcome;

    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (model_.tensors()[t].is_local()) continue;
      if (!state_[t].format) state_[t].format = format_of(tensors[t]);
      state_[t].move_to(ranges[t]);
      detail::with_type(tensors[t], [&](const auto& tensor) {
        outcome.skipped_elements += add_tensor(sub, t, tensor, weight);
      });
    }
    report_.skipped_elements += outcome.skipped_elements;
    report_.clipped_elements += outcome.clipped_elements;
    if (dense_) return outcome;
    holders_.add(sub, weight);
    if (holders_.bytes() > bytes_of_weights()) keep_dense_weights();
    return outcome;
  }
  update_outcome add(const submodel& sub, const tensor_views<const T>& tensors, double weight = 1) {
    return add<T>(sub, tensors, weight);
  }
  update_outcome add(const submodel& sub, std::initializer_list<tensor_view<const T>> tensors,
                     double weight = 1) {
    return add<T>(sub, tensor_views<const T>(tensors), weight);
  }

  /// Adds everything that another average of the same model has added.
  ///
  /// Throws  error when the models, the options or the integer types of a tensor differ, when the
  ///         weights add up to infinity or products are too far apart, or when both have the same
  ///         client under options.round. The state is then unchanged.
  void merge(const selective_average& other) {
    const detail::float_mode mode;
    if (!(other.model_ == model_)) {
      detail::fail("subfed: average: the average to merge is of another model");
    }
    if (!(other.options_ == options_)) {
      detail::fail("subfed: average: the average to merge has other options");
    }
    for (const auto& [round, client] : other.seen_) {
      if (seen_.count({round, client}) == 0) continue;
      detail::fail("subfed: average: client " + std::to_string(client) +
                       " is in both of the averages to merge",
                   {.client = client});
    }
    if (&other == this) {
      const selective_average copy = other;
      merge(copy);
      return;
    }
    for (std::size_t t = 0; t < state_.size(); ++t) check_format(t, other.state_[t].format);
    detail::check_total_weight(cohort_weight_ + other.cohort_weight_, options_);
    std::vector<detail::product_range> ranges;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      ranges.push_back(state_[t].range);
      const detail::product_range& more = other.state_[t].range;
      if (!more.empty()) ranges.back().include(more.low, more.high);
      if (ranges.back().choose()) continue;
      const std::string& name = model_.tensors()[t].name;
      detail::fail("subfed: average: the products of weights and values of tensor '" + name +
                       "' are too far apart in the averages to merge to be added",
                   {.tensor = name});
    }
    for (std::size_t t = 0; t < state_.size(); ++t) {
      detail::tensor_sums& own = state_[t];
      const detail::tensor_sums& more = other.state_[t];
      if (!own.format) own.format = more.format;
      own.move_to(ranges[t]);
      own.integers.merge(options_.integers, more.integers);
      own.counters.merge(options_.integers, more.counters);
      if (!more.has_sums()) {
        if (other.dense_) keep_weights(t);
        continue;
      }
      own.begin_sums_like(more);
      if (dense_ || other.dense_ || !more.weights.empty()) keep_weights(t);
      own.merge_sums(more);
      if (own.weights.empty() || !more.weights.empty()) continue;
      for (const auto& e : other.holders_.entries()) own.add_weight(e.sub[tensor_id(t)], e.weight);
    }
    if (dense_ || other.dense_) {
      forget_holders();
    } else {
      for (const auto& e : other.holders_.entries()) holders_.add(e.sub, e.weight);
      if (holders_.bytes() > bytes_of_weights()) keep_dense_weights();
    }
    seen_.insert(other.seen_.begin(), other.seen_.end());
    cohort_weight_ += other.cohort_weight_;
    detail::add_counts(report_, other.report_);
  }

  /// Writes the average into the global tensors. The state is kept: more updates may be added, and
  /// finish() called again.
  ///
  /// Shapes  tensor t has the model's extents; any strides.
  /// Post    Elements without a holder keep their bits; without any update, all do.
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
    for (const auto& e : holders_.entries()) members.push_back({&e.sub, e.weight, nullptr});
    std::vector<detail::tensor_state> states;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      const detail::tensor_sums& own = state_[t];
      states.push_back(own.state());
    }
    average_report report = report_;
    detail::average_model<T, T>(model_, globals, members, states, options_, cohort_weight_, report,
                                run_by);
    return report;
  }
  average_report finish(std::initializer_list<tensor_view<T>> globals) const {
    return finish(tensor_views<T>(globals));
  }

  /// The elements that finish() would give a value: those that a client holds of what has been added,
  /// as finish() counts them.
  ///
  /// Cost  One bit an element; reads the weights where they are kept for every element.
  held_elements held() const {
    held_elements out(model_);
    for (std::size_t t = 0; t < state_.size(); ++t) {
      const detail::tensor_sums& own = state_[t];
      const auto add = [&](std::int64_t i) { detail::internals::add(out, t, i, 1, 1); };
      own.integers.for_each_held(add);
      own.counters.for_each_held(add);
      for (std::size_t i = 0; i < own.weights.size(); ++i) {
        if (own.weights[i] > 0) add(static_cast<std::int64_t>(i));
      }
      if (!own.has_sums() || !own.weights.empty()) continue;
      for (const auto& e : holders_.entries()) detail::internals::add(out, e.sub, t);
    }
    return out;
  }

  /// Forgets all updates; the memory for the sums is kept for the next round.
  void clear() {
    for (detail::tensor_sums& own : state_) own.clear();
    holders_ = {};
    dense_ = false;
    seen_.clear();
    cohort_weight_ = 0;
    report_ = {};
  }

  /// Whether weights are kept for every parameter (8 bytes each) instead of the submodels' runs.
  /// That begins with the update with which the runs of different submodels would take more. Equal
  /// submodels, as those of rolling and static, take no more memory however many clients have them.
  /// A single tensor has such weights from the first update of which elements were left out
  /// (non_finite::skip_element).
  bool has_dense_weights() const noexcept { return dense_; }

  /// What has been added so far; finish() counts held and unheld.
  const average_report& report() const noexcept { return report_; }

 private:
  friend struct detail::internals;

  /// Nothing for a typed view of numbers that are averaged: they are compatible with all others.
  template <class V>
  static std::optional<element_format> format_of(const tensor_view<V>& view) {
    if constexpr (std::is_void_v<V>) {
      return view.format();
    } else {
      return {};
    }
  }

  void check_format(std::size_t t, std::optional<element_format> found) const {
    const std::string& name = model_.tensors()[t].name;
    const auto refuse = [&](const std::string& expected) {
      detail::fail("subfed: average: tensor '" + name + "' has elements of type " +
                       detail::format_text(*found) + ", expected " + expected,
                   {.tensor = name});
    };
    if (!found) return;
    if constexpr (!std::is_void_v<T>) {
      if (!detail::is_floating(*found)) refuse("floating-point numbers");
    }
    const auto& expected = state_[t].format;
    if (!expected || *found == *expected) return;
    if (detail::is_floating(*found) && detail::is_floating(*expected)) return;
    if (detail::are_deltas_of_integers(options_.content, *found, *expected)) return;
    refuse(detail::format_text(*expected) + " as in earlier updates");
  }

  /// The range of the products in each tensor's sums, with an update included.
  ///
  /// Throws  error when a double cannot hold their sum.
  template <class U>
  std::vector<detail::product_range> ranges_with(const submodel& sub,
                                                 const tensor_views<const U>& tensors,
                                                 double weight) const {
    std::vector<detail::product_range> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      out.push_back(state_[t].range);
      if (options_.sums || !(weight > 0) || model_.tensors()[t].is_local() || is_counter(t))
        continue;
      detail::with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (averageable<E>) {
          detail::include_products(out.back(), sub, t, tensor, weight);
        }
      });
    }
    return out;
  }

  bool is_counter(std::size_t t) const { return model_.tensors()[t].role == role::counter; }

  /// Bytes of weights for every parameter that has none yet.
  std::int64_t bytes_of_weights() const {
    std::int64_t elements = 0;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      if (!state_[t].weights.empty() || model_.tensors()[t].is_local()) continue;
      elements +=
          static_cast<std::int64_t>(detail::memory_size<double>(model_.tensors()[t].extents));
    }
    return 8 * elements;
  }

  void keep_dense_weights() {
    for (std::size_t t = 0; t < state_.size(); ++t) keep_weights(t);
    forget_holders();
  }
  void forget_holders() {
    dense_ = true;
    holders_ = {};
  }

  /// From now on tensor number t has a weight for every element.
  void keep_weights(std::size_t t) { state_[t].keep_weights(tensor_id(t), holders_); }

  /// Adds an update's floating-point tensors to fixed-point sums. False: it is left out.
  ///
  /// Throws  error for a value beyond the bound, as the options say; nothing has changed then.
  template <class U>
  bool add_terms(const submodel& sub, const tensor_views<const U>& tensors,
                 update_outcome& outcome) {
    const detail::term_rule rule(*options_.sums, outcome.weight);
    std::int64_t left_out = 0;
    if (add_terms(sub, tensors, rule, outcome.weight, left_out) != 0) {
      // Values are checked while they are added: updates are read once. Integers can be taken back.
      const detail::values_beyond found = detail::find_beyond(sub, tensors, options_);
      if (options_.sums->on_out_of_bound != out_of_bound::clip || !found.finite) {
        std::int64_t again = 0;
        add_terms(sub, tensors, rule.negated(), -outcome.weight, again);
      }
      if (!detail::admits(sub, found, options_, outcome)) return false;
    }
    outcome.skipped_elements = left_out;
    return true;
  }

  /// Returns how many values are beyond the bound.
  template <class U>
  std::int64_t add_terms(const submodel& sub, const tensor_views<const U>& tensors,
                         const detail::term_rule& rule, double weight, std::int64_t& left_out) {
    std::int64_t beyond = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (model_.tensors()[t].is_local() || is_counter(t)) continue;
      const std::vector<std::int64_t>& extents = model_.tensors()[t].extents;
      detail::tensor_sums& own = state_[t];
      detail::with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (averageable<E>) {
          own.begin_fixed_sums(extents);
          if (dense_) keep_weights(t);
          const bool skips = options_.on_non_finite == non_finite::skip_element &&
                             detail::find_non_finite(sub, t, tensor) >= 0;
          if (skips) keep_weights(t);
          const selection held = sub[tensor_id(t)];
          beyond += skips ? own.add_finite(held, extents, tensor, rule, weight, left_out)
                          : own.add(held, extents, tensor, rule, weight);
        }
      });
    }
    return beyond;
  }

  /// Returns how many elements were left out.
  template <class E>
  std::int64_t add_tensor(const submodel& sub, std::size_t t, const tensor_view<const E>& tensor,
                          double weight) {
    const std::vector<std::int64_t>& extents = model_.tensors()[t].extents;
    detail::tensor_sums& own = state_[t];
    if constexpr (!averageable<E>) {
      own.integers.add(options_.integers, sub[tensor_id(t)], extents, tensor);
      return 0;
    } else {
      if (is_counter(t)) {
        return own.counters.add(options_, sub[tensor_id(t)], extents, tensor);
      }
      if (options_.sums) return 0;  // see add_terms
      own.begin_sums(extents);
      if (dense_) keep_weights(t);
      if (options_.on_non_finite != non_finite::skip_element ||
          detail::find_non_finite(sub, t, tensor) < 0) {
        own.add(sub[tensor_id(t)], extents, tensor, weight);
        return 0;
      }
      keep_weights(t);
      return own.add_finite(sub[tensor_id(t)], extents, tensor, weight);
    }
  }

  model model_;
  average_options options_;
  std::vector<detail::tensor_sums> state_;
  detail::holder_list holders_;  // empty while dense_
  bool dense_ = false;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;  // round and client, if options_.round
  double cohort_weight_ = 0;
  average_report report_;
};

}  // namespace subfed::inline v0
