// SPDX-License-Identifier: MIT
/// What a streaming average keeps of one tensor: sums, integers and counters, and a weight for
/// every element where the holders do not give it.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/counter_merge.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/integer_merge.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// The sums of one tensor from before.
struct tensor_state {
  const double* sums = nullptr;              ///< null where they are in fixed point
  const std::int64_t* fixed_sums = nullptr;  ///< null where they are doubles
  const double* weights = nullptr;           ///< null while the members have them
  const integer_merge* integers = nullptr;
  const counter_merge* counters = nullptr;
  std::int64_t exponent = 0;  ///< the sums are stored times 2 to its power
  double largest = 0;         ///< the largest number of the types of what was added
};

/// Empty until something is added.
struct tensor_sums {
  std::optional<element_format> format = {};
  std::vector<double> sums = {};              ///< times 2 to the power of range.exponent
  std::vector<std::int64_t> fixed_sums = {};  ///< instead of them, under options.sums
  std::vector<double> weights = {};           ///< empty, or one for every sum
  integer_merge integers = {};
  counter_merge counters = {};  ///< of a counter in floating point, which has no sums
  product_range range = {};
  double largest = 0;  ///< the largest number of the types that were added

  bool has_sums() const noexcept { return !sums.empty() || !fixed_sums.empty(); }
  void begin_sums(std::span<const std::int64_t> extents) {
    if (sums.empty()) sums.resize(memory_size<double>(extents), -0.0);
  }
  void begin_fixed_sums(std::span<const std::int64_t> extents) {
    if (fixed_sums.empty()) fixed_sums.resize(memory_size<std::int64_t>(extents), 0);
  }
  void begin_sums_like(const tensor_sums& other) {
    if (sums.empty()) sums.resize(other.sums.size(), -0.0);
    if (fixed_sums.empty()) fixed_sums.resize(other.fixed_sums.size(), 0);
  }

  /// Multiplies sums by another power of two. Nothing is rounded.
  void move_to(const product_range& to) {
    const std::int64_t step = to.exponent - range.exponent;
    if (step != 0) {
      for (double& x : sums) x = scaled(x, step);
    }
    range = to;
  }

  /// Adds a weight at the elements that a selection holds.
  void add_weight(const selection& held, double weight) {
    const loop_nest walk(held);
    walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) weights[at(g + i * walk.global_stride())] += weight;
    });
  }

  /// From now on every sum has its own weight: that of the holders so far.
  void keep_weights(tensor_id id, const holder_list& holders) {
    if (!weights.empty() || !has_sums()) return;
    weights.resize((std::max)(sums.size(), fixed_sums.size()), 0.0);
    for (const auto& e : holders.entries()) add_weight(e.sub[id], e.weight);
  }

  /// Adds an update's tensor; weights too where they are kept.
  template <class E>
  void add(const selection& held, std::span<const std::int64_t> extents,
           const tensor_view<const E>& tensor, double weight) {
    largest = (std::max)(largest, largest_of<E>());
    const double factor = factor_of(weight);
    const loop_nest walk(held, extents, tensor);
    double* const into = sums.data();
    const E* const data = tensor.data_handle();
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      accumulate(data + l, walk.local_stride(), factor, into + g, walk.global_stride(), length);
    });
    if (!weights.empty()) add_weight(held, weight);
  }

  /// Adds an update's tensor to fixed-point sums; weights too where they are kept. With a negated
  /// rule and weight the update is taken back, to the bit. Returns how many values are beyond the
  /// bound.
  template <class E>
  std::int64_t add(const selection& held, std::span<const std::int64_t> extents,
                   const tensor_view<const E>& tensor, const term_rule& rule, double weight) {
    const loop_nest walk(held, extents, tensor);
    std::int64_t* const into = fixed_sums.data();
    const E* const data = tensor.data_handle();
    std::int64_t beyond = 0;
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      beyond +=
          add_terms(data + l, walk.local_stride(), rule, into + g, walk.global_stride(), length);
    });
    if (!weights.empty()) add_weight(held, weight);
    return beyond;
  }

  /// The same without values that are not finite, which get no weight either. Pre: weights are kept.
  template <class E>
  std::int64_t add_finite(const selection& held, std::span<const std::int64_t> extents,
                          const tensor_view<const E>& tensor, const term_rule& rule, double weight,
                          std::int64_t& left_out) {
    const loop_nest walk(held, extents, tensor);
    std::int64_t beyond = 0;
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const double x = scalar_traits<E>::load(tensor.data_handle()[l + i * walk.local_stride()]);
        if (!is_finite_double(x)) {
          left_out += 1;
          continue;
        }
        const std::size_t here = at(g + i * walk.global_stride());
        fixed_sums[here] += rule(x);
        weights[here] += weight;
        beyond += rule.is_beyond(x) ? 1 : 0;
      }
    });
    return beyond;
  }

  /// The same in doubles.
  ///
  /// Pre      weights are kept.
  /// Returns  how many elements were left out.
  template <class E>
  std::int64_t add_finite(const selection& held, std::span<const std::int64_t> extents,
                          const tensor_view<const E>& tensor, double weight) {
    largest = (std::max)(largest, largest_of<E>());
    const double factor = factor_of(weight);
    const loop_nest walk(held, extents, tensor);
    std::int64_t left_out = 0;
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const E x = tensor.data_handle()[l + i * walk.local_stride()];
        if (!scalar_traits<E>::is_finite(x)) {
          ++left_out;
          continue;
        }
        const std::size_t here = at(g + i * walk.global_stride());
        accumulate(&x, 1, factor, &sums[here], 1, 1);
        weights[here] += weight;
      }
    });
    return left_out;
  }

  /// Adds the sums and weights of another average.
  ///
  /// Pre  begin_sums_like(more); the range holds the products of both; weights are kept where more
  ///      keeps them.
  void merge_sums(const tensor_sums& more) {
    largest = (std::max)(largest, more.largest);
    const std::int64_t step = range.exponent - more.range.exponent;
    for (std::size_t i = 0; i < more.sums.size(); ++i) {
      sums[i] += step == 0 ? more.sums[i] : scaled(more.sums[i], step);
    }
    for (std::size_t i = 0; i < more.fixed_sums.size(); ++i) fixed_sums[i] += more.fixed_sums[i];
    for (std::size_t i = 0; i < more.weights.size(); ++i) weights[i] += more.weights[i];
  }

  tensor_state state() const {
    return {sums.empty() ? nullptr : sums.data(),
            fixed_sums.empty() ? nullptr : fixed_sums.data(),
            weights.empty() ? nullptr : weights.data(),
            &integers,
            &counters,
            range.exponent,
            largest};
  }

  /// Forgets what was added; the memory for the sums is kept.
  void clear() {
    format.reset();
    clear_sums(sums.data(), static_cast<std::int64_t>(sums.size()));
    std::fill(fixed_sums.begin(), fixed_sums.end(), std::int64_t{0});
    range = {};
    largest = 0;
    weights.clear();
    integers = {};
    counters = {};
  }

 private:
  /// The factor for values.
  double factor_of(double weight) const noexcept { return scaled(weight, range.exponent); }
  static std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
};

}  // namespace subfed::inline v0::detail
