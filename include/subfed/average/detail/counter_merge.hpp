// SPDX-License-Identifier: MIT
/// How updates of a counter in floating point are merged: as integer_merge merges integers, but in
/// doubles.
#pragma once

#include <subfed/average/detail/merged_elements.hpp>
#include <subfed/average/detail/terms.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <bit>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// One element of a counter. If a NaN takes part the result is NaN, also for the largest value.
struct counter_value {
  double x = 0;
  bool finite = true;  ///< all that was taken

  void take(integer_rule rule, const counter_value& more) noexcept {
    finite = finite && more.finite;
    if (rule == integer_rule::sum) {
      x += more.x;
    } else if (!is_nan(x) && (is_nan(more.x) || key(x) < key(more.x))) {
      x = more.x;
    }
  }

 private:
  /// By the bits, so that it works under -ffast-math.
  static bool is_nan(double x) noexcept {
    return (std::bit_cast<std::uint64_t>(x) & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u;
  }
  /// An integer that grows with x, made from its bits: -0 is less than 0, so that the larger of
  /// both does not depend on their order.
  static std::int64_t key(double x) noexcept {
    const auto bits = std::bit_cast<std::int64_t>(x);
    return bits < 0 ? bits ^ 0x7FFFFFFFFFFFFFFF : bits;
  }
};

/// State of one counter, empty until something is added.
class counter_merge {
 public:
  /// Adds the elements of a client's tensor that take part; global extents as described. Returns how
  /// many were left out by non_finite::skip_element.
  template <class E>
  std::int64_t add(const average_options& options, const selection& chosen,
                   std::span<const std::int64_t> extents, const tensor_view<const E>& tensor) {
    if (options.integers == integer_rule::keep) return 0;
    const bool skips = options.on_non_finite == non_finite::skip_element;
    const auto read = [skips](const E& x, counter_value& value) {
      const bool finite = scalar_traits<E>::is_finite(x);
      value.x = scalar_traits<E>::load(x);
      value.finite = finite;
      return finite || !skips;
    };
    return elements_.add(options.integers, chosen, extents, tensor, read);
  }

  void merge(integer_rule rule, const counter_merge& other) {
    elements_.merge(rule, other.elements_);
  }

  merged_elements<counter_value>& elements() noexcept { return elements_; }
  const merged_elements<counter_value>& elements() const noexcept { return elements_; }

  /// f(row-major number) for each element that somebody holds.
  template <class F>
  void for_each_held(F&& f) const {
    elements_.for_each_held(f);
  }

  /// Gives the held elements their new values, or counts those that would be too large.
  template <class E>
  part_report write(const tensor_view<E>& global, content what, pass does) const {
    using traits = scalar_traits<E>;
    part_report out;
    elements_.for_each_held(
        global, [&](std::int64_t number, std::int64_t offset, const counter_value& value) {
          ++out.held;
          E& element = global.data_handle()[offset];
          const double old = what == content::deltas ? traits::load(element) : 0;
          const E stored = traits::store(what == content::deltas ? old + value.x : value.x);
          if (!traits::is_finite(stored) && value.finite && is_finite_double(old)) {
            out.count_overflow(number);
          }
          if (does == pass::writes) element = stored;
        });
    return out;
  }

 private:
  merged_elements<counter_value> elements_;
};

}  // namespace subfed::inline v0::detail
