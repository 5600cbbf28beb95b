// SPDX-License-Identifier: MIT
/// The product that no compiler fuses with the addition that follows.
#pragma once

#include <subfed/config.hpp>

#include <bit>
#include <cstdint>

namespace subfed::inline v0::detail {

/// factor * x, rounded, for a finite factor: no compiler fuses it with the addition that follows, so
/// that sums have the same bits with and without FMA instructions. Neither pragmas nor barriers do
/// (Clang ignores them under -ffp-contract=fast, GCC drops them from loops that it vectorises), but an
/// integer operation in between does; its operand stays the same in a loop.
constexpr double rounded_product(double factor, double x) noexcept {
#if defined(__x86_64__) && !defined(__FMA__)
  return factor * x;  // nothing to fuse with
#else
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  const std::uint64_t zero = (std::bit_cast<std::uint64_t>(factor) & exponent) == exponent ? 1 : 0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(factor * x) ^ zero);
#endif
}

}  // namespace subfed::inline v0::detail
