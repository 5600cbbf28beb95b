// SPDX-License-Identifier: MIT
/// What the inner loops of averaging take: runs of elements, divisors, and random sets as masks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace subfed::inline v0::detail {

/// One client's run of elements.
template <class T>
struct stream {
  const T* data;
  double weight;
};

/// Division by a weight: by its reciprocal where that gives the same bits.
struct divider {
  double weight;
  double reciprocal;
  bool exact;  ///< weight is a power of two that has a reciprocal

  explicit divider(double w) noexcept : weight(w), reciprocal(1 / w) {
    const auto bits = std::bit_cast<std::uint64_t>(w);
    const auto exponent = bits >> 52;
    exact = (bits & 0xFFFFFFFFFFFFFu) == 0 && exponent > 0 && exponent < 2 * 1023;
  }
};

/// How sums are divided.
enum class division {
  by_instruction,
  by_reciprocal,  ///< a product, and its remainder as a second one: sums of floats by weights of
                  ///< ordinary size
};

/// A holder of a row, of which it has the elements of a mask.
template <class T>
struct masked_holder {
  const T* data;               ///< its elements of the row
  const std::uint16_t* masks;  ///< for every 16 elements of the row, those that it holds
  const std::int32_t* starts;  ///< how many of its elements come before
  std::int64_t limit;          ///< how many elements may be read
  double weight;
  bool has_all;  ///< the masks have no zeros but behind the row's end
};

/// A row of which holders have the elements of masks.
template <class T>
struct masked_row {
  const masked_holder<T>* holders;
  std::size_t count;
  std::size_t full;           ///< how many of them have all elements
  bool ones;                  ///< all weights are 1
  const double* reciprocals;  ///< of 0 .. 15 holders; null: by_instruction
  T* out;
  std::int64_t size;  ///< elements
};

/// What turns values into terms of a fixed-point sum that are below 2^51 (see term_rule).
struct narrow_terms {
  double weight;
  double shift;  ///< its last digit is one quantum
  double bound;
  bool takes_back;
};

}  // namespace subfed::inline v0::detail
