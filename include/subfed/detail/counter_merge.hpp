// SPDX-License-Identifier: MIT
/// What becomes of a counter in floating point when updates come together: what integer_merge makes of
/// integers, in doubles.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_terms.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/paired_walk.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// State of one counter, empty until something is added. A NaN that takes part makes a NaN, be it of
/// the largest value.
class counter_merge {
 public:
  /// Adds the elements of a client's tensor that take part; global extents as described. Returns how
  /// many were left out by non_finite::skip_element.
  template <class E>
  std::int64_t add(const average_options& options, const selection& chosen,
                   std::span<const std::int64_t> extents, const tensor_view<const E>& tensor) {
    if (options.integers == integer_rule::keep) return 0;
    const bool skips = options.on_non_finite == non_finite::skip_element;
    if (values_.empty()) values_.resize(memory_size<value>(extents));
    const paired_walk walk(chosen, extents, tensor);
    const E* const data = tensor.data_handle();
    std::int64_t left_out = 0;
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const E x = data[l + i * walk.local_stride()];
        if (skips && !scalar_traits<E>::is_finite(x)) {
          ++left_out;
        } else {
          take(options.integers, static_cast<std::size_t>(g + i * walk.global_stride()),
               {scalar_traits<E>::load(x), true, scalar_traits<E>::is_finite(x)});
        }
      }
    });
    return left_out;
  }

  void merge(integer_rule rule, const counter_merge& other) {
    const std::vector<value> values = other.values_;  // other may be this
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

  /// Gives what is held its new value, or counts what would be too large.
  template <class E>
  part_report write(const tensor_view<E>& global, content what, pass does) const {
    using traits = scalar_traits<E>;
    part_report out;
    if (values_.empty()) return out;
    std::size_t i = 0;
    for_each_offset(global, [&](std::int64_t offset) {
      const value& v = values_[i++];
      if (!v.held) return;
      ++out.held;
      E& element = global.data_handle()[offset];
      const double old = what == content::deltas ? traits::load(element) : 0;
      const E stored = traits::store(what == content::deltas ? old + v.x : v.x);
      if (!traits::is_finite(stored) && v.finite && is_finite_double(old)) {
        out.count_overflow(static_cast<std::int64_t>(i) - 1);
      }
      if (does == pass::writes) element = stored;
    });
    return out;
  }

 private:
  struct value {
    double x = 0;
    bool held = false;
    bool finite = true;  ///< all that was taken
  };

  void take(integer_rule rule, std::size_t i, const value& more) {
    value& own = values_[i];
    if (!own.held) {
      own = more;
      return;
    }
    own.finite = own.finite && more.finite;
    if (rule == integer_rule::sum) {
      own.x += more.x;
    } else if (!is_nan(own.x) && (is_nan(more.x) || is_less(own.x, more.x))) {
      own.x = more.x;
    }
  }

  /// By the bits, so that it holds under -ffast-math.
  static bool is_nan(double x) noexcept {
    return (std::bit_cast<std::uint64_t>(x) & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u;
  }
  /// -0 is less than 0: the largest of both does not depend on their order.
  static bool is_less(double a, double b) noexcept { return key(a) < key(b); }
  /// A number that grows with x, of its bits.
  static std::int64_t key(double x) noexcept {
    const auto bits = std::bit_cast<std::int64_t>(x);
    return bits < 0 ? bits ^ 0x7FFFFFFFFFFFFFFF : bits;
  }

  std::vector<value> values_;
};

}  // namespace subfed::inline v0::detail
