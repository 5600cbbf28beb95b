// SPDX-License-Identifier: MIT
/// The selective average, one update at a time: add, merge, finish.
#pragma once

#include <subfed/average/detail/admission.hpp>
#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/counter_merge.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/model_average.hpp>
#include <subfed/average/detail/sums_memory.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/detail/update_products.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
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
/// Throws    std::bad_alloc where memory runs out. When there is none for sums and weights, everything is
///           as it was. Where an update may be in the sums in part, the average refuses everything but
///           clear().
/// Numerics  Sums and weights are doubles, in the order of the calls; one rounding to T at the end.
///           Sums are multiplied by a power of two where weights or values are very large or small,
///           so that finite values have a finite mean. The same calls in the same order give the
///           same bits everywhere. For T float, half or bfloat16 the order matters only where an
///           element's sum is inexact in 53 bits, and then almost never after the final rounding.
///           With options.sums it never matters.
/// Cost      8 bytes per parameter, and one submodel for each different set of nodes, or 8 bytes
///           more per parameter where that is less (has_dense_weights) or where elements are left
///           out: at most 16 bytes per parameter, whatever clients send. Every call of add() reads
///           and writes the sums of what its clients hold, so more bytes move than in
///           average_cohort, the fewer the more updates a call has.
template <class T>
requires(averageable<T> || std::is_void_v<T>) class selective_average {
 public:
  /// Throws  error when an option is not finite.
  explicit selective_average(model net, const average_options& options = {})
      : model_(std::move(net)), options_(options) {
    detail::check_options("average", options_);
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
    const detail::member<U> one{&sub, weight, &tensors};
    return add_all<U>({&one, 1}).front();
  }
  update_outcome add(const submodel& sub, const tensor_views<const T>& tensors, double weight = 1) {
    return add<T>(sub, tensors, weight);
  }
  update_outcome add(const submodel& sub, std::initializer_list<tensor_view<const T>> tensors,
                     double weight = 1) {
    return add<T>(sub, tensor_views<const T>(tensors), weight);
  }

  /// Adds several updates: the same as adding one after the other, with the same bits and outcomes.
  ///
  /// Throws  what add() of one of them would throw; then none is added.
  /// Cost    Reads and writes the sums once for all of them, and not once for each: the more updates a
  ///         call has, the less it costs.
  template <class U>
  requires(averageable<U> ||
           std::is_void_v<U>) std::vector<update_outcome> add(std::span<const update<U>> updates) {
    std::vector<detail::member<U>> all;
    for (const update<U>& u : updates) all.push_back({&u.sub, u.weight, &u.tensors});
    return add_all<U>(all);
  }
  std::vector<update_outcome> add(std::span<const update<T>> updates) { return add<T>(updates); }

  /// Adds everything that another average of the same model has added.
  ///
  /// Throws  error when the models, the options or the integer types of a tensor differ, when the
  ///         weights add up to infinity or products are too far apart, or when both have the same
  ///         client under options.round. The state is then unchanged.
  void merge(const selective_average& other) {
    const detail::float_mode mode;
    check_whole();
    other.check_whole();
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
    for (std::size_t t = 0; t < state_.size(); ++t) {
      detail::check_format<T>(model_.tensors()[t].name, other.state_[t].format, state_[t].format,
                              options_.content);
    }
    detail::check_total_weight("average", cohort_weight_ + other.cohort_weight_, options_);
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
    reserve(other);
    torn_ = true;
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
    torn_ = false;
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
    check_whole();
    detail::check_globals("average", model_, globals);
    detail::placed_tensors places;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      places.add(globals[t], model_.tensors()[t].name, detail::access::writes);
    }
    places.check_apart("average");
    for (std::size_t t = 0; t < globals.size(); ++t) {
      detail::check_format<T>(model_.tensors()[t].name, detail::named_format(globals[t]),
                              state_[t].format, options_.content);
    }
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
  /// Cost  One bit per element; reads the weights where they are kept for every element.
  held_elements held() const {
    check_whole();
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
    torn_ = false;
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

  template <class U>
  std::vector<update_outcome> add_all(std::span<const detail::member<U>> updates) {
    const detail::float_mode mode;
    check_whole();
    detail::admission<T> checks(model_, options_, state_, seen_, cohort_weight_);
    std::vector<detail::admitted_update<U>> all = checks.admit(updates, report_.refused_clients);
    std::vector<bool> has_weights;  // the sums then come with them
    for (const detail::tensor_sums& own : state_) {
      has_weights.push_back(dense_ || !own.weights.empty());
    }
    reserve(all);
    std::vector<update_outcome> outcomes;
    outcomes.reserve(all.size());
    torn_ = true;
    if (options_.sums) {
      add_terms<U>(all);
    } else {
      add_sums<U>(all);
    }
    for (detail::admitted_update<U>& a : all) {
      take(a, has_weights);
      outcomes.push_back(std::move(a.outcome));
    }
    torn_ = false;
    return outcomes;
  }

  void check_whole() const {
    if (!torn_) return;
    detail::fail(
        "subfed: average: memory ran out while updates were added, of which the sums may have "
        "parts; clear() forgets all");
  }

  /// Takes the memory for the sums of updates, so that where it is not to be had nothing has changed.
  template <class U>
  void reserve(const std::vector<detail::admitted_update<U>>& updates) {
    const bool dense = dense_ || detail::takes_more_than<U>(bytes_of_weights(), holders_, updates);
    detail::reserve_sums<U>(model_, options_, dense, updates, state_);
  }
  /// The same for the sums of another average.
  void reserve(const selective_average& other) {
    std::int64_t bytes = holders_.bytes();
    for (const auto& e : other.holders_.entries()) bytes += holders_.more_bytes(e.sub);
    const bool dense = dense_ || other.dense_ || bytes > bytes_of_weights();
    detail::reserve_sums(model_, options_, dense, other.state_, state_);
  }

  /// Calls f(number of a tensor that has sums, its part in each of the updates that count, and which of them
  /// that is).
  template <class U, class F>
  void for_each_sum(const std::vector<detail::admitted_update<U>>& updates, F&& f) {
    for (std::size_t t = 0; t < state_.size(); ++t) {
      if (model_.tensors()[t].is_local() || is_counter(t)) continue;
      std::vector<detail::addend<U>> parts;
      std::vector<std::size_t> numbers;
      for (std::size_t i = 0; i < updates.size(); ++i) {
        const update_outcome& outcome = updates[i].outcome;
        if (!detail::is_held(outcome)) continue;
        const detail::member<U>& u = *updates[i].update;
        const tensor_view<const U>& tensor = (*u.tensors)[t];
        if (!detail::has_averageable_type(tensor)) continue;
        parts.push_back(
            {(*u.sub)[tensor_id(t)], &tensor, outcome.weight, updates[i].skipped[t] > 0});
        numbers.push_back(i);
      }
      if (parts.empty()) continue;
      if (dense_) state_[t].begin_weights(model_.tensors()[t].extents);
      f(t, std::span<const detail::addend<U>>(parts), numbers);
    }
  }

  bool is_counter(std::size_t t) const { return model_.tensors()[t].role == role::counter; }

  std::int64_t bytes_of_weights() const { return detail::bytes_of_weights(model_, state_); }

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

  /// Adds updates' tensors to the sums of doubles, and to weights that are kept already.
  template <class U>
  void add_sums(const std::vector<detail::admitted_update<U>>& updates) {
    for_each_sum<U>(updates, [&](std::size_t t, auto parts, const auto& numbers) {
      const auto range = [&](std::size_t i) { return updates[numbers[i]].ranges[t]; };
      detail::tensor_sums& own = state_[t];
      for (std::size_t begin = 0; begin < parts.size();) {
        std::size_t end = begin + 1;
        while (end < parts.size() && range(end).exponent == range(begin).exponent) ++end;
        own.move_to(range(end - 1));
        own.add(parts.subspan(begin, end - begin), model_.tensors()[t].extents);
        begin = end;
      }
    });
  }

  /// The same for fixed-point sums.
  ///
  /// Throws  error for a value beyond the bound, as the options say; nothing has changed then.
  template <class U>
  void add_terms(std::vector<detail::admitted_update<U>>& updates) {
    std::vector<std::int64_t> beyond(updates.size(), 0);
    std::vector<bool> has_sums;
    for (const detail::tensor_sums& own : state_) has_sums.push_back(own.has_sums());
    add_terms<U>(updates, takes::in, beyond);
    // Values are checked while they are added: updates are read once. Integers can be taken back.
    std::vector<detail::values_beyond> found(updates.size());
    bool stays = true;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      if (beyond[i] == 0) continue;
      const detail::member<U>& u = *updates[i].update;
      found[i] = detail::find_beyond(*u.sub, *u.tensors, options_);
      if (options_.sums->on_out_of_bound != out_of_bound::clip || !found[i].finite) stays = false;
    }
    if (!stays) {
      add_terms<U>(updates, takes::back, beyond);
      for (std::size_t t = 0; t < state_.size(); ++t) {
        if (!has_sums[t]) state_[t].forget_sums();
      }
      torn_ = false;
    }
    for (std::size_t i = 0; i < updates.size(); ++i) {
      detail::admits("average", *updates[i].update->sub, found[i], options_, updates[i].outcome);
    }
    torn_ = true;
  }

  enum class takes { in, back };

  /// beyond: how many values of each update are beyond the bound.
  template <class U>
  void add_terms(const std::vector<detail::admitted_update<U>>& updates, takes which,
                 std::vector<std::int64_t>& beyond) {
    for_each_sum<U>(updates, [&](std::size_t t, auto parts, const auto& numbers) {
      std::vector<detail::addend<U>> own(parts.begin(), parts.end());
      std::vector<detail::term_rule> rules;
      for (detail::addend<U>& a : own) {
        const detail::term_rule rule(*options_.sums, a.weight);
        rules.push_back(which == takes::in ? rule : rule.negated());
        if (which == takes::back) a.weight = -a.weight;
      }
      std::vector<std::int64_t> own_beyond(own.size(), 0);
      state_[t].add(std::span<const detail::addend<U>>(own), model_.tensors()[t].extents,
                    std::span<const detail::term_rule>(rules), std::span<std::int64_t>(own_beyond));
      for (std::size_t i = 0; i < own.size(); ++i) beyond[numbers[i]] += own_beyond[i];
    });
  }

  /// Counts an update, and adds what comes one by one: integers, counters, and the weights where they were
  /// not kept before.
  template <class U>
  void take(detail::admitted_update<U>& a, const std::vector<bool>& has_weights) {
    update_outcome& outcome = a.outcome;
    const submodel& sub = *a.update->sub;
    if (!outcome) {
      detail::leave_out(report_, outcome);
      return;
    }
    ++report_.clients;
    cohort_weight_ += outcome.weight;
    if (options_.round) seen_.insert(detail::key_of(*a.update->sub));
    if (!(outcome.weight > 0)) return;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      if (model_.tensors()[t].is_local()) continue;
      const tensor_view<const U>& tensor = (*a.update->tensors)[t];
      if (!state_[t].format) state_[t].format = detail::named_format(tensor);
      if (a.skipped[t] > 0) keep_weights(t);
      outcome.skipped_elements += a.skipped[t];
      detail::with_type(tensor, [&](const auto& typed) {
        outcome.skipped_elements += merge_tensor(sub, t, typed);
        if (has_weights[t]) return;
        state_[t].add_weights(sub[tensor_id(t)], model_.tensors()[t].extents, typed, outcome.weight,
                              a.skipped[t] > 0);
      });
    }
    report_.skipped_elements += outcome.skipped_elements;
    report_.clipped_elements += outcome.clipped_elements;
    if (dense_) return;
    holders_.add(sub, outcome.weight);
    if (holders_.bytes() > bytes_of_weights()) keep_dense_weights();
  }

  /// Integers and counters. Returns how many elements were left out.
  template <class E>
  std::int64_t merge_tensor(const submodel& sub, std::size_t t,
                            const tensor_view<const E>& tensor) {
    const std::vector<std::int64_t>& extents = model_.tensors()[t].extents;
    detail::tensor_sums& own = state_[t];
    if constexpr (averageable<E>) {
      if (is_counter(t)) return own.counters.add(options_, sub[tensor_id(t)], extents, tensor);
    } else {
      own.integers.add(options_.integers, sub[tensor_id(t)], extents, tensor);
    }
    return 0;
  }

  model model_;
  average_options options_;
  std::vector<detail::tensor_sums> state_;
  detail::holder_list holders_;  // empty while dense_
  bool dense_ = false;
  bool torn_ = false;  // while updates are added, and for good where memory runs out meanwhile
  std::set<detail::round_and_client> seen_;  // round and client, if options_.round
  double cohort_weight_ = 0;
  average_report report_;
};

}  // namespace subfed::inline v0
