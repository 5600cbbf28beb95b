// SPDX-License-Identifier: MIT
/// Arithmetic of doubles that works under any flags: a rounded product, and tests of a number by
/// its bits.
#pragma once

#include <subfed/config.hpp>

#include <bit>
#include <cstdint>

namespace subfed::inline v0::detail {

/// factor * x, rounded, for a finite factor: no compiler fuses it with the addition that follows,
/// so that sums have the same bits with and without FMA instructions. Neither pragmas nor barriers
/// ensure this (Clang ignores them under -ffp-contract=fast, GCC drops them from loops that it
/// vectorises). An integer operation in between does; its operand is constant in a loop.
constexpr double rounded_product(double factor, double x) noexcept {
#if defined(__x86_64__) && !defined(__FMA__)
  return factor * x;  // nothing to fuse with
#else
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  const std::uint64_t zero = (std::bit_cast<std::uint64_t>(factor) & exponent) == exponent ? 1 : 0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(factor * x) ^ zero);
#endif
}

/// Neither NaN nor infinite, by the bits.
inline bool is_finite_double(double x) noexcept {
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  return (std::bit_cast<std::uint64_t>(x) & exponent) != exponent;
}

/// Whether x is in (0, 1], by its bits, which holds under -ffast-math too: positive doubles order
/// like integers, and NaN, infinity and everything negative come after 1.
constexpr bool in_unit_interval(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return bits != 0 && bits <= std::bit_cast<std::uint64_t>(1.0);
}

}  // namespace subfed::inline v0::detail
