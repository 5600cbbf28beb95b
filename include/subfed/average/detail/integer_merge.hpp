// SPDX-License-Identifier: MIT
/// How updates of a tensor of integers are merged: the largest value or the sum, in 128 bits, never
/// through floating point. The largest of deltas, or their sum, is added to the old value.
#pragma once

#include <subfed/average/detail/merged_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/error.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace subfed::inline v0::detail {

/// One element: 128 bits in two's complement. No sum of 64-bit integers overflows them, in any
/// order.
struct wide_integer {
  std::int64_t high = 0;
  std::uint64_t low = 0;

  wide_integer() = default;
  template <std::integral E>
  explicit wide_integer(E x) noexcept : low(static_cast<std::uint64_t>(x)) {
    if constexpr (std::is_signed_v<E>) high = x < 0 ? -1 : 0;
  }

  void take(integer_rule rule, const wide_integer& more) noexcept {
    if (rule == integer_rule::sum) {
      increase(more);
    } else if (std::pair(high, low) < std::pair(more.high, more.low)) {
      *this = more;
    }
  }
  void increase(const wide_integer& by) noexcept {
    low += by.low;
    high += by.high + (low < by.low ? 1 : 0);
  }

  template <class E>
  bool fits() const noexcept {
    if constexpr (std::is_signed_v<E>) {
      const auto signed_low = static_cast<std::int64_t>(low);
      return high == (signed_low < 0 ? -1 : 0) && std::in_range<E>(signed_low);
    } else {
      return high == 0 && low <= static_cast<std::uint64_t>((std::numeric_limits<E>::max)());
    }
  }
};

/// State of one tensor of integers, signed or not, empty until something is added.
class integer_merge {
 public:
  /// Adds the elements of a client's tensor that take part; global extents as described.
  template <class E>
  void add(integer_rule rule, const selection& chosen, std::span<const std::int64_t> extents,
           const tensor_view<const E>& tensor) {
    if (rule == integer_rule::keep) return;
    elements_.add(rule, chosen, extents, tensor, [](const E& x, wide_integer& value) {
      value = wide_integer(x);
      return true;
    });
  }

  void merge(integer_rule rule, const integer_merge& other) {
    elements_.merge(rule, other.elements_);
  }

  merged_elements<wide_integer>& elements() noexcept { return elements_; }
  const merged_elements<wide_integer>& elements() const noexcept { return elements_; }

  /// f(row-major number) for each element that somebody holds.
  template <class F>
  void for_each_held(F&& f) const {
    elements_.for_each_held(f);
  }

  /// Throws  error when a new value does not fit E; it names the tensor and the range of E.
  template <class E>
  void check(const tensor_view<E>& global, content what, const std::string& name) const {
    for_each_new(global, what, [&](std::int64_t, const wide_integer& value) {
      if (value.fits<E>()) return;
      using limits = std::numeric_limits<E>;
      if (what == content::parameters) {
        fail("subfed: average: a sum in tensor '" + name +
                 "' does not fit its type, whose largest "
                 "value is " +
                 std::to_string((limits::max)()),
             {.tensor = name});
      }
      fail("subfed: average: with its deltas an element of tensor '" + name +
               "' does not fit its type, which holds " + std::to_string((limits::min)()) + " to " +
               std::to_string((limits::max)()),
           {.tensor = name});
    });
  }

  /// Writes the held elements, and returns their number.
  template <class E>
  std::int64_t write(const tensor_view<E>& global, content what) const {
    std::int64_t held = 0;
    for_each_new(global, what, [&](std::int64_t offset, const wide_integer& value) {
      ++held;
      // Modulo 2^bits; check() has made sure that the value fits.
      global.data_handle()[offset] = static_cast<E>(value.low);
    });
    return held;
  }

 private:
  /// f(offset, value) for each held element, with its new value.
  template <class E, class F>
  void for_each_new(const tensor_view<E>& global, content what, F&& f) const {
    elements_.for_each_held(global, [&](std::int64_t, std::int64_t offset, wide_integer value) {
      if (what == content::deltas) value.increase(wide_integer(global.data_handle()[offset]));
      f(offset, value);
    });
  }

  merged_elements<wide_integer> elements_;
};

}  // namespace subfed::inline v0::detail
