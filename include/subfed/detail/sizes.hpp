// SPDX-License-Identifier: MIT
/// Sums and products of sizes, checked where a size originates.
///
/// Inner loops add and multiply without a check. They may, because of what holds at their start:
///
/// - An index_set lies in [0, extent).
/// - The elements of a model's tensors, an empty group counted as one node, are at most 2^63 - 1
///   together; so are those of a selection.
/// - The elements of a tensor_view end at most 2^63 - 1 bytes from its first, in either direction, and
///   have addresses.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace subfed::inline v0::detail {

inline constexpr std::int64_t largest_size = (std::numeric_limits<std::int64_t>::max)();

/// n *= factor, unless the product is over 2^63 - 1; whether it fits. Pre: neither is negative.
[[nodiscard]] constexpr bool multiply(std::int64_t& n, std::int64_t factor) noexcept {
  if (factor != 0 && n > largest_size / factor) return false;
  n *= factor;
  return true;
}

/// n += term, unless the sum is over 2^63 - 1; whether it fits. Pre: neither is negative.
[[nodiscard]] constexpr bool add(std::int64_t& n, std::int64_t term) noexcept {
  if (n > largest_size - term) return false;
  n += term;
  return true;
}

/// Whether the extents, without those that are 0, can be multiplied in any order. Pre: none is
/// negative.
constexpr bool fits_in_any_order(std::span<const std::int64_t> extents) noexcept {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) {
    if (extent != 0 && !multiply(n, extent)) return false;
  }
  return true;
}

/// a b mod m without overflow, for 0 <= a, b < m <= 2^63. Doubling, as m may be beyond 2^32.
constexpr std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b, std::uint64_t m) noexcept {
  if (m <= std::uint64_t{1} << 32) return a * b % m;
  std::uint64_t product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product = product >= m - a ? product - (m - a) : product + a;
    a = a >= m - a ? a - (m - a) : a + a;
  }
  return product;
}

}  // namespace subfed::inline v0::detail
