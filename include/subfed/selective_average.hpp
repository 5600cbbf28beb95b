// SPDX-License-Identifier: MIT
/// The selective average, one update at a time: add, merge, finish.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/any_element.hpp>
#include <subfed/detail/average_checks.hpp>
#include <subfed/detail/average_kernels.hpp>
#include <subfed/detail/average_scale.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/holder_list.hpp>
#include <subfed/detail/memory_apart.hpp>
#include <subfed/detail/memory_size.hpp>
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
/// and leaves a parameter that nobody holds, or only with weight 0, as it is, bit for bit; so it does
/// with tensors that stay with their clients (role::local). Statistics are averaged as they are:
/// options.step is for parameters. Updates
/// come one by one and are not kept; averages of parts of a cohort merge. When all updates are at
/// hand, average_cohort() is faster and needs no memory.
///
/// The state is an additive monoid: add() and merge() commute up to rounding, a new object is zero.
///
/// Numerics  Sums and weights are doubles, in the order of the calls; one rounding to T at the end.
///           Sums are multiplied by a power of two where weights or values are very large or small, so
///           that finite values have a finite mean.
///           The same calls in the same order give the same bits everywhere. For T float, half or
///           bfloat16 the order shows only where an element's sum is inexact in 53 bits, and then
///           nearly never after the final rounding.
/// Cost      8 bytes a parameter, and one submodel for each different set of nodes, or 8 bytes more a
///           parameter where that is less (has_dense_weights). Every addition goes through the sums
///           of what the client holds, so that more bytes move than in average_cohort.
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
  ///         client (role::local) any view is taken, also an empty one, and never read.
  /// Throws  error for a negative or non-finite weight or sum of weights, another model, a wrong
  ///         number or shape of tensors, a non-finite value under non_finite::refuse, another round or
  ///         a second update under options.round. The state is then as it was (refusals by round are
  ///         counted).
  /// Cost    Reads the update once (doubles twice, and all types with refuse and skip_client), reads
  ///         and writes its sums.
  template <class U>
  requires(averageable<U> || std::is_void_v<U>) void add(const submodel& sub,
                                                         const tensor_views<const U>& tensors,
                                                         double weight = 1) {
    const detail::float_mode mode;
    detail::check_update<U>(model_, sub, tensors, weight);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (!model_.tensors()[t].is_local()) check_format(t, format_of(tensors[t]));
    }
    check_round(sub);
    if (!detail::admits(sub, tensors, options_.on_non_finite)) {
      ++report_.skipped_clients;  // not seen: it may send a better one
      return;
    }
    detail::check_total_weight(cohort_weight_ + weight);
    const std::vector<detail::product_range> ranges = ranges_with(sub, tensors, weight);
    ++report_.clients;
    cohort_weight_ += weight;
    seen_.push_back(sub.origin().client);
    if (!(weight > 0)) return;

    // An update with left-out elements gets an entry of its own, which they refer to by number.
    std::size_t own_entry = no_entry;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (model_.tensors()[t].is_local()) continue;
      if (!state_[t].format) state_[t].format = format_of(tensors[t]);
      move_to(state_[t], ranges[t]);
      detail::with_type(tensors[t],
                        [&](const auto& tensor) { add_tensor(sub, t, tensor, weight, own_entry); });
    }
    if (own_entry == no_entry && !dense_) holders_.add(sub, weight);
    if (!dense_ && holders_.bytes() > dense_bytes()) keep_dense_weights();
  }
  void add(const submodel& sub, const tensor_views<const T>& tensors, double weight = 1) {
    add<T>(sub, tensors, weight);
  }
  void add(const submodel& sub, std::initializer_list<tensor_view<const T>> tensors,
           double weight = 1) {
    add<T>(sub, tensor_views<const T>(tensors), weight);
  }

  /// Takes in everything that another average of the same model has added.
  ///
  /// Throws  error when the models, the options or the integer types of a tensor differ, when the
  ///         weights add up to infinity or products lie too far apart, or when both have the same client under options.round. The state is
  ///         then as it was.
  void merge(const selective_average& other) {
    const detail::float_mode mode;
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
    std::vector<detail::product_range> ranges;
    for (std::size_t t = 0; t < state_.size(); ++t) {
      ranges.push_back(state_[t].range);
      const detail::product_range& more = other.state_[t].range;
      if (!more.empty()) ranges.back().include(more.low, more.high);
      if (ranges.back().choose()) continue;
      const std::string& name = model_.tensors()[t].name;
      detail::fail("subfed: average: the products of weights and values of tensor '" + name +
                       "' lie too far apart in the averages to merge to be added",
                   {.tensor = name});
    }
    const detail::holder_list holders = other.holders_;  // other may be this
    const std::vector<tensor_sums> state = other.state_;
    if (other.dense_) keep_dense_weights();
    for (std::size_t t = 0; t < state_.size(); ++t) {
      tensor_sums& own = state_[t];
      if (!own.format) own.format = state[t].format;
      move_to(own, ranges[t]);
      own.largest = (std::max)(own.largest, state[t].largest);
      if (own.sums.empty()) own.sums.resize(state[t].sums.size(), -0.0);
      const std::int64_t step = own.range.exponent - state[t].range.exponent;
      for (std::size_t i = 0; i < state[t].sums.size(); ++i) {
        const double sum = state[t].sums[i];
        own.sums[i] += step == 0 ? sum : detail::scaled(sum, step);
      }
      if (own.weights.empty()) own.weights.resize(state[t].weights.size());
      for (std::size_t i = 0; i < state[t].weights.size(); ++i) {
        own.weights[i] += state[t].weights[i];
      }
      own.integers.merge(options_.integers, state[t].integers);
    }
    take_in(holders, state);
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
    for (const auto& e : holders_.entries()) members.push_back({&e.sub, e.weight, nullptr});
    std::vector<std::vector<detail::exclusion>> exclusions;
    std::vector<detail::tensor_state> states;
    for (const tensor_sums& own : state_) {
      exclusions.push_back(own.exclusions);
      std::sort(exclusions.back().begin(), exclusions.back().end());
    }
    for (std::size_t t = 0; t < state_.size(); ++t) {
      const bool dense = !state_[t].weights.empty();
      states.push_back({state_[t].sums.data(), dense ? state_[t].weights.data() : nullptr,
                        exclusions[t], &state_[t].integers, state_[t].range.exponent,
                        state_[t].largest});
    }
    average_report report = report_;
    detail::average_model<T, T>(model_, globals, members, states, options_, cohort_weight_, report,
                                run_by);
    return report;
  }
  average_report finish(std::initializer_list<tensor_view<T>> globals) const {
    return finish(tensor_views<T>(globals));
  }

  /// Forgets all updates; the memory for the sums stays, for the next round.
  void clear() {
    for (tensor_sums& own : state_) {
      own.format.reset();
      detail::clear_sums(own.sums.data(), static_cast<std::int64_t>(own.sums.size()));
      own.range = {};
      own.largest = 0;
      own.weights.clear();
      own.exclusions.clear();
      own.integers = {};
    }
    holders_ = {};
    dense_ = false;
    seen_.clear();
    cohort_weight_ = 0;
    report_ = {};
  }

  /// Weights are kept for every parameter (8 bytes each) instead of the submodels' runs: from the
  /// update on with which the runs of different submodels would take more than that. Submodels that
  /// are alike, as those of rolling and static, take no more memory however many clients have them.
  bool has_dense_weights() const noexcept { return dense_; }

  /// What has been added so far; held and unheld are counted by finish().
  const average_report& report() const noexcept { return report_; }

 private:
  static constexpr std::size_t no_entry = detail::submodel_index::none;

  /// Of one tensor, empty until something is added.
  struct tensor_sums {
    std::optional<detail::element_format> format = {};
    std::vector<double> sums = {};
    std::vector<double> weights = {};  // while dense_
    std::vector<detail::exclusion> exclusions = {};
    detail::integer_merge integers = {};
    detail::product_range range =
        {};              // sums are 2 to the power of its exponent times what is meant
    double largest = 0;  // the largest number of the types that were added
  };

  /// Nothing for a typed view of numbers that are averaged: they go with all others.
  template <class V>
  static std::optional<detail::element_format> format_of(const tensor_view<V>& view) {
    if constexpr (std::is_void_v<V>) {
      return view.format();
    } else {
      return {};
    }
  }

  void check_format(std::size_t t, std::optional<detail::element_format> found) const {
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
    refuse(detail::format_text(*expected) + " as in earlier updates");
  }

  /// Where the products of each tensor's sums lie when an update is among them.
  ///
  /// Throws  error when a double cannot hold their sum.
  template <class U>
  std::vector<detail::product_range> ranges_with(const submodel& sub,
                                                 const tensor_views<const U>& tensors,
                                                 double weight) const {
    std::vector<detail::product_range> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      out.push_back(state_[t].range);
      if (!(weight > 0) || model_.tensors()[t].is_local()) continue;
      detail::with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (averageable<E>) include(out.back(), sub, t, tensor, weight);
      });
    }
    return out;
  }

  template <class E>
  void include(detail::product_range& range, const submodel& sub, std::size_t t,
               const tensor_view<const E>& tensor, double weight) const {
    const std::int64_t own = detail::exponent_of(weight);
    constexpr bool far_reaching = detail::is_far_reaching(detail::largest_of<E>());
    std::int64_t low = own - 149;
    std::int64_t high = own + 128;
    if constexpr (far_reaching) {
      const detail::paired_walk walk(sub[tensor_id(t)], model_.tensors()[t].extents, tensor);
      detail::exponent_range values;
      walk.for_each([&](std::int64_t, std::int64_t l, std::int64_t length) {
        values.take(tensor.data_handle() + l, walk.local_stride(), length);
      });
      low = own + (values.empty() ? 0 : (std::min)(values.low(), std::int64_t{0}));
      high = own + (values.empty() ? 0 : (std::max)(values.high() + 1, std::int64_t{0}));
    }
    detail::product_range with = range;
    with.include(low, high);
    if (with.choose()) {
      range = with;
      return;
    }
    std::int64_t at = -1;  // of the first element that cannot be added
    if constexpr (far_reaching) {
      const detail::paired_walk walk(sub[tensor_id(t)], model_.tensors()[t].extents, tensor);
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        for (std::int64_t i = 0; at < 0 && i < length; ++i) {
          detail::exponent_range value;
          value.take(tensor.data_handle() + l + i * walk.local_stride(), 1, 1);
          with = range;
          with.include(own, own);
          if (!value.empty()) with.include(own + value.low(), own + value.high() + 1);
          if (!with.choose()) at = g + i * walk.global_stride();
        }
      });
    }
    const auto& info = model_.tensors()[t];
    detail::fail(
        "subfed: average: " + detail::client_text(sub) + " has a weight, " + detail::text(weight) +
            ", whose product with the values of tensor '" + info.name + "'" +
            (at < 0 ? std::string()
                    : ", at global element " + detail::index_text(at, info.extents) + ",") +
            " lies too far from the other products to be added to them",
        {.client = sub.origin().client, .tensor = info.name});
  }

  /// Multiplies sums by another power of two. Nothing is rounded.
  static void move_to(tensor_sums& own, const detail::product_range& range) {
    const std::int64_t step = range.exponent - own.range.exponent;
    if (step != 0) {
      for (double& x : own.sums) x = detail::scaled(x, step);
    }
    own.range = range;
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

  /// The entries of another average whose sums are in state_ already.
  void take_in(const detail::holder_list& holders, const std::vector<tensor_sums>& state) {
    const auto& entries = holders.entries();
    for (std::size_t e = 0; e < entries.size(); ++e) {
      if (dense_) {
        add_weights(entries[e], e, state);
      } else if (entries[e].shared) {
        holders_.add(entries[e].sub, entries[e].weight);
      } else {
        const std::size_t own = holders_.add_alone(entries[e].sub, entries[e].weight);
        for (std::size_t t = 0; t < state.size(); ++t) {
          for (const detail::exclusion& x : state[t].exclusions) {
            if (x.participant == e) state_[t].exclusions.push_back({x.offset, own});
          }
        }
      }
    }
    if (!dense_ && holders_.bytes() > dense_bytes()) keep_dense_weights();
  }

  /// Bytes of a weight for every parameter.
  std::int64_t dense_bytes() const {
    std::int64_t elements = 0;
    for (const auto& t : model_.tensors()) {
      elements += static_cast<std::int64_t>(elements_of(t.extents));
    }
    return 8 * elements;
  }

  void keep_dense_weights() {
    if (dense_) return;
    dense_ = true;
    const detail::holder_list before = std::exchange(holders_, {});
    std::vector<tensor_sums> excluded(state_.size());
    for (std::size_t t = 0; t < state_.size(); ++t) {
      excluded[t].exclusions = std::exchange(state_[t].exclusions, {});
    }
    for (std::size_t e = 0; e < before.entries().size(); ++e) {
      add_weights(before.entries()[e], e, excluded);
    }
  }

  /// Adds the weight of entry number e at the elements that it holds, but for its exclusions.
  void add_weights(const detail::holder_list::entry& of, std::size_t e,
                   const std::vector<tensor_sums>& state) {
    for (std::size_t t = 0; t < state_.size(); ++t) {
      std::vector<std::int64_t> left_out;
      for (const detail::exclusion& x : state[t].exclusions) {
        if (x.participant == e) left_out.push_back(x.offset);
      }
      std::sort(left_out.begin(), left_out.end());
      add_weight(of.sub, t, of.weight, left_out);
    }
  }

  /// left_out: sorted row-major offsets.
  void add_weight(const submodel& sub, std::size_t t, double weight,
                  const std::vector<std::int64_t>& left_out) {
    tensor_sums& own = state_[t];
    if (own.sums.empty()) return;  // integers have no weights
    if (own.weights.empty()) own.weights.resize(own.sums.size(), 0.0);
    const detail::paired_walk walk(sub[tensor_id(t)]);
    double* const weights = own.weights.data();
    walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t offset = g + i * walk.global_stride();
        if (std::binary_search(left_out.begin(), left_out.end(), offset)) continue;
        weights[offset] += weight;
      }
    });
  }

  template <class E>
  void add_tensor(const submodel& sub, std::size_t t, const tensor_view<const E>& tensor,
                  double weight, std::size_t& own_entry) {
    const std::vector<std::int64_t>& extents = model_.tensors()[t].extents;
    tensor_sums& own = state_[t];
    if constexpr (!averageable<E>) {
      own.integers.add(options_.integers, sub[tensor_id(t)], extents, tensor);
    } else {
      if (own.sums.empty()) own.sums.resize(elements_of(extents), -0.0);
      own.largest = (std::max)(own.largest, detail::largest_of<E>());
      const double factor = detail::scaled(weight, own.range.exponent);
      const detail::paired_walk walk(sub[tensor_id(t)], extents, tensor);
      double* const sums = own.sums.data();
      const E* const data = tensor.data_handle();
      const std::int64_t from_step = walk.local_stride();
      const std::int64_t sum_step = walk.global_stride();
      if (options_.on_non_finite != non_finite::skip_element) {
        walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
          detail::accumulate(data + l, from_step, factor, sums + g, sum_step, length);
        });
        if (dense_) add_weight(sub, t, weight, {});
        return;
      }
      std::vector<std::int64_t> left_out;
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) {
          const E x = data[l + i * from_step];
          if (scalar_traits<E>::is_finite(x)) {
            detail::accumulate(&x, 1, factor, sums + g + i * sum_step, 1, 1);
            continue;
          }
          ++report_.skipped_elements;
          left_out.push_back(g + i * sum_step);
        }
      });
      if (dense_) {
        std::sort(left_out.begin(), left_out.end());
        add_weight(sub, t, weight, left_out);
      } else if (!left_out.empty()) {
        if (own_entry == no_entry) own_entry = holders_.add_alone(sub, weight);
        for (const std::int64_t offset : left_out) own.exclusions.push_back({offset, own_entry});
      }
    }
  }

  static std::size_t elements_of(std::span<const std::int64_t> extents) {
    return detail::memory_size<double>(extents);
  }

  model model_;
  average_options options_;
  std::vector<tensor_sums> state_;
  detail::holder_list holders_;  // empty while dense_
  bool dense_ = false;
  std::vector<std::uint64_t> seen_;
  double cohort_weight_ = 0;
  average_report report_;
};

}  // namespace subfed::inline v0
