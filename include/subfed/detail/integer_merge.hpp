// SPDX-License-Identifier: MIT
/// What becomes of a tensor of integers when updates come together: the largest value or the sum, in
/// 128 bits, never through floating point. The largest of deltas, or their sum, is added to the old
/// value.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/paired_walk.hpp>
#include <subfed/error.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// State of one tensor of integers, signed or not, empty until something is added.
class integer_merge {
 public:
  /// Adds the elements of a client's tensor that take part; global extents as described.
  template <class E>
  void add(integer_rule rule, const selection& chosen, std::span<const std::int64_t> extents,
           const tensor_view<const E>& tensor) {
    if (rule == integer_rule::keep) return;
    reserve(extents);
    const paired_walk walk(chosen, extents, tensor);
    const E* const data = tensor.data_handle();
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        take(rule, static_cast<std::size_t>(g + i * walk.global_stride()),
             value_of(data[l + i * walk.local_stride()]));
      }
    });
  }

  void merge(integer_rule rule, const integer_merge& other) {
    const std::vector<wide> values = other.values_;  // other may be this
    if (values_.size() < values.size()) values_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].held) take(rule, i, values[i]);
    }
  }

  /// f(row-major number) for each element that somebody holds.
  template <class F>
  void for_each_held(F&& f) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].held) f(i);
    }
  }

  /// Throws  error when a new value does not fit E: it names the tensor and what E holds.
  template <class E>
  void check(const tensor_view<E>& global, content what, const std::string& name) const {
    for_each_new(global, what, [&](std::int64_t, const wide& value) {
      if (fits<E>(value)) return;
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

  /// Writes what is held, and returns how many elements that is.
  template <class E>
  std::int64_t write(const tensor_view<E>& global, content what) const {
    std::int64_t held = 0;
    for_each_new(global, what, [&](std::int64_t offset, const wide& value) {
      ++held;
      // Modulo 2^bits; check() saw to the rest.
      global.data_handle()[offset] = static_cast<E>(value.low);
    });
    return held;
  }

 private:
  /// 128 bits in two's complement: no sum of 64-bit integers leaves them, in whatever order.
  struct wide {
    std::int64_t high = 0;
    std::uint64_t low = 0;
    bool held = false;
  };

  /// f(offset, value) for each element that is held, with the value that it is to have.
  template <class E, class F>
  void for_each_new(const tensor_view<E>& global, content what, F&& f) const {
    if (values_.empty()) return;
    std::size_t i = 0;
    for_each_offset(global, [&](std::int64_t offset) {
      wide value = values_[i++];
      if (!value.held) return;
      if (what == content::deltas) increase(value, value_of(global.data_handle()[offset]));
      f(offset, value);
    });
  }

  void reserve(std::span<const std::int64_t> extents) {
    if (!values_.empty()) return;
    values_.resize(memory_size<wide>(extents));
  }

  template <class E>
  static wide value_of(E x) noexcept {
    if constexpr (std::is_signed_v<E>) {
      return {x < 0 ? -1 : 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(x)), true};
    } else {
      return {0, static_cast<std::uint64_t>(x), true};
    }
  }

  void take(integer_rule rule, std::size_t i, const wide& x) {
    wide& own = values_[i];
    if (!own.held) {
      own = x;
    } else if (rule == integer_rule::max) {
      if (std::pair(own.high, own.low) < std::pair(x.high, x.low)) own = x;
    } else {
      increase(own, x);
    }
  }

  static void increase(wide& sum, const wide& x) noexcept {
    sum.low += x.low;
    sum.high += x.high + (sum.low < x.low ? 1 : 0);
  }

  template <class E>
  static bool fits(const wide& v) noexcept {
    if constexpr (std::is_signed_v<E>) {
      const auto low = static_cast<std::int64_t>(v.low);
      return v.high == (low < 0 ? -1 : 0) && std::in_range<E>(low);
    } else {
      return v.high == 0 && v.low <= static_cast<std::uint64_t>((std::numeric_limits<E>::max)());
    }
  }

  std::vector<wide> values_;
};

}  // namespace subfed::inline v0::detail
