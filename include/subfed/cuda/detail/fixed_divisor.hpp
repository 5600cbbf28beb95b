// SPDX-License-Identifier: MIT
/// Division by a number that stays the same for a whole launch: a multiplication and a shift where
/// both fit in 31 bits, which is nearly always the case.
#pragma once

#include <subfed/config.hpp>

#include <cstdint>

namespace subfed::inline v0::cuda::detail {

struct quotient_and_rest {
  std::int64_t quotient;
  std::int64_t rest;
};

/// A positive number to divide by.
struct fixed_divisor {
  std::int64_t value;
  std::uint32_t factor;  ///< ceil(2^(31 + shift) / value), or 0: divide as usual
  std::uint32_t shift;   ///< ceil(log2(value))
};

/// With shift = ceil(log2 d) and m = ceil(2^(31 + shift) / d), floor(n m / 2^(31 + shift)) is
/// floor(n / d) for all n below 2^31: m d exceeds 2^(31 + shift) by less than d <= 2^shift.
/// m is below 2^32. [GranlundMontgomery]
inline fixed_divisor make_divisor(std::int64_t value) noexcept {
  fixed_divisor out{value, 0, 0};
  if (value < 2 || value >= std::int64_t{1} << 31) return out;
  while (std::int64_t{1} << out.shift < value) ++out.shift;
  const std::uint64_t power = std::uint64_t{1} << (31 + out.shift);
  const auto d = static_cast<std::uint64_t>(value);
  out.factor = static_cast<std::uint32_t>((power + d - 1) / d);
  return out;
}

/// Pre: n is not negative.
SUBFED_HD inline quotient_and_rest divide(std::int64_t n, const fixed_divisor& by) noexcept {
  if (by.value == 1) return {n, 0};
  if (by.factor != 0 && n < std::int64_t{1} << 31) {
    const std::uint64_t wide = static_cast<std::uint64_t>(n) * by.factor;
    const auto q = static_cast<std::int64_t>(wide >> (31 + by.shift));
    return {q, n - q * by.value};
  }
  return {n / by.value, n % by.value};
}

}  // namespace subfed::inline v0::cuda::detail
