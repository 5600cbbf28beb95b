// SPDX-License-Identifier: MIT
/// A double whose exponent has no bounds: what sums, products and quotients would be if there were
/// neither a largest double nor denormal ones. They round as doubles do, so that results agree to the
/// bit wherever doubles suffice.
#pragma once

#include <subfed/detail/arithmetic.hpp>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

namespace subfed::inline v0::detail {

/// 2^exponent, for -1022 .. 1023.
constexpr double power_of_two(std::int64_t exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// x 2^exponent; what is not finite stays. Pre: nothing is rounded. By the bits, since -ffast-math
/// would merge two factors into one.
constexpr double scaled(double x, std::int64_t exponent) noexcept {
  const auto biased = [](double y) {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(y) >> 52 & 0x7FF);
  };
  const auto moved = [](double y, std::int64_t by) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(y) +
                                 (static_cast<std::uint64_t>(by) << 52));
  };
  if (x == 0 || exponent == 0 || biased(x) == 0x7FF) return x;
  if (biased(x) == 0) {
    x *= power_of_two(64);
    exponent -= 64;
  }
  if (biased(x) + exponent > 0) return moved(x, exponent);
  return moved(x, exponent + 64) * power_of_two(-64);
}

/// The e with 2^e <= |x| < 2^(e+1). Pre: x is finite and not 0.
constexpr std::int64_t exponent_of(double x) noexcept {
  const auto biased = [](double y) {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(y) >> 52 & 0x7FF);
  };
  return biased(x) != 0 ? biased(x) - 1023 : biased(x * power_of_two(64)) - 1023 - 64;
}

class wide_number {
 public:
  /// -0, the start of a sum.
  wide_number() = default;
  /// Pre: x is finite.
  explicit wide_number(double x) noexcept : wide_number(x, 0) {}
  /// x 2^exponent.
  wide_number(double x, std::int64_t exponent) noexcept : mantissa_(x) {
    if (x == 0) return;
    const std::int64_t own = exponent_of(x);
    exponent_ = exponent + own;
    mantissa_ = scaled(x, -own);
  }

  bool is_zero() const noexcept { return mantissa_ == 0; }

  friend wide_number operator-(wide_number a) noexcept {
    a.mantissa_ = -a.mantissa_;
    return a;
  }
  friend wide_number operator+(wide_number a, wide_number b) noexcept {
    if (a.is_zero() && b.is_zero()) return wide_number(a.mantissa_ + b.mantissa_);
    if (a.is_zero() || (!b.is_zero() && a.exponent_ < b.exponent_)) std::swap(a, b);
    const std::int64_t distance = a.exponent_ - b.exponent_;
    if (b.is_zero() || distance > 200) return a;  // far below half of the last digit
    return {a.mantissa_ + b.mantissa_ * power_of_two(-distance), a.exponent_};
  }
  friend wide_number operator-(wide_number a, wide_number b) noexcept { return a + -b; }
  friend wide_number operator*(wide_number a, wide_number b) noexcept {
    return {a.mantissa_ * b.mantissa_, a.exponent_ + b.exponent_};
  }
  /// Pre: b is not 0.
  friend wide_number operator/(wide_number a, wide_number b) noexcept {
    return {a.mantissa_ / b.mantissa_, a.exponent_ - b.exponent_};
  }

  /// The nearest double; infinity beyond the largest.
  double value() const noexcept {
    if (is_zero() || exponent_ == 0) return mantissa_;
    if (exponent_ > 1023) {
      const double infinity = std::numeric_limits<double>::infinity();
      return mantissa_ < 0 ? -infinity : infinity;
    }
    if (exponent_ >= -1022) return mantissa_ * power_of_two(exponent_);
    if (exponent_ < -1100) return mantissa_ < 0 ? -0.0 : 0.0;
    return scaled(mantissa_, exponent_ + 200) * power_of_two(-200);
  }

 private:
  double mantissa_ = -0.0;  ///< 0, or 1 <= |mantissa| < 2
  std::int64_t exponent_ = 0;
};

/// A result in double, or the same in wide numbers where finite inputs have led out of the range, if
/// only in between. wide(): computes it again.
template <class Wide>
double within_range(double result, std::initializer_list<double> inputs, Wide&& wide) {
  if (is_finite_double(result)) return result;
  for (const double x : inputs) {
    if (!is_finite_double(x)) return result;
  }
  const wide_number again = wide();
  return again.value();
}

}  // namespace subfed::inline v0::detail
