// SPDX-License-Identifier: MIT
/// From the type a tensor stores to the type its sums are kept in, and back with one rounding.
#pragma once

#include <subfed/config.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace subfed::inline v0 {

namespace detail {

/// Rounds a double to a 16-bit format with the given mantissa bits, to nearest, ties to even, once.
constexpr std::uint16_t encode16(double value, int mantissa_bits) noexcept {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 63 << 15);
  const auto infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  const std::uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  if (exponent == 0x7FF) {
    const auto quiet = static_cast<std::uint16_t>(mantissa != 0 ? 1 << (mantissa_bits - 1) : 0);
    return static_cast<std::uint16_t>(sign | infinity | quiet);
  }
  const int scaled = exponent - 1023 + bias;
  if (scaled >= (1 << exponent_bits) - 1) return static_cast<std::uint16_t>(sign | infinity);

  // The number as an integer multiple of 2^-shift of the smallest step at its place.
  int shift = 52 - mantissa_bits;
  std::uint64_t number = static_cast<std::uint64_t>(scaled) << 52 | mantissa;
  if (scaled <= 0) {  // below the normal range: no hidden bit, a fixed step
    shift += 1 - scaled;
    if (exponent == 0 || shift > 54) return sign;
    number = std::uint64_t{1} << 52 | mantissa;
  }
  const std::uint64_t half_step = std::uint64_t{1} << (shift - 1);
  const std::uint64_t odd = number >> shift & 1;
  return static_cast<std::uint16_t>(sign | (number + half_step - 1 + odd) >> shift);
}

/// The value of a 16-bit format with the given mantissa bits; exact.
constexpr double decode16(std::uint16_t bits, int mantissa_bits) noexcept {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t sign = std::uint64_t{bits} >> 15 << 63;
  const std::uint64_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  std::uint64_t wide = mantissa << (52 - mantissa_bits);
  if (exponent == (1 << exponent_bits) - 1) {
    wide |= std::uint64_t{0x7FF} << 52;
  } else if (exponent != 0) {
    wide |= static_cast<std::uint64_t>(exponent - bias + 1023) << 52;
  } else {
    const double step =
        std::bit_cast<double>(static_cast<std::uint64_t>(1 - bias - mantissa_bits + 1023) << 52);
    wide = std::bit_cast<std::uint64_t>(static_cast<double>(mantissa) * step);
  }
  return std::bit_cast<double>(sign | wide);
}

/// A 16-bit floating-point number that is only stored; sums are kept wider.
template <int MantissaBits>
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  constexpr explicit float16(double value) noexcept : bits(encode16(value, MantissaBits)) {}
  constexpr explicit operator double() const noexcept { return decode16(bits, MantissaBits); }
  constexpr explicit operator float() const noexcept {
    return static_cast<float>(decode16(bits, MantissaBits));
  }

  /// Compares bits: 0 and -0 differ, a NaN equals itself.
  friend constexpr bool operator==(const float16&, const float16&) = default;
};

}  // namespace detail

/// IEEE binary16: 5 exponent bits, 10 mantissa bits.
using half = detail::float16<10>;
/// The upper half of a float: 8 exponent bits, 7 mantissa bits.
using bfloat16 = detail::float16<7>;

namespace detail {

/// A half or bfloat16 type of another library, known by what std::numeric_limits says of it:
/// Eigen::half and Eigen::bfloat16, c10::Half and c10::BFloat16 (at::), half_float::half.
template <class T>
concept foreign_float16 =
    sizeof(T) == 2 && std::is_trivially_copyable_v<T>&& std::numeric_limits<T>::is_specialized &&
    !std::numeric_limits<T>::is_integer &&
    ((std::numeric_limits<T>::digits == 11 && std::numeric_limits<T>::max_exponent == 16) ||
     (std::numeric_limits<T>::digits == 8 && std::numeric_limits<T>::max_exponent == 128));

}  // namespace detail

/// How an element type takes part in an average. Specialise for a type of your own:
///
///   accumulator   the type of sums and weights: double for every floating-point type, so that sums
///                 of float, half and bfloat16 do not stall, overflow or depend on their order
///   load(x)       exact conversion to the accumulator
///   store(a)      one rounding, to nearest, ties to even
///   is_finite(x)  by the bits, so that it holds under -ffast-math
template <class T>
struct scalar_traits;

template <std::floating_point T>
requires(sizeof(T) == 4 || sizeof(T) == 8) struct scalar_traits<T> {
  using accumulator = double;
  static constexpr accumulator load(T x) noexcept { return static_cast<double>(x); }
  static constexpr T store(accumulator a) noexcept { return static_cast<T>(a); }
  static constexpr bool is_finite(T x) noexcept {
    if constexpr (sizeof(T) == 4) {
      return (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) != 0x7F800000u;
    } else {
      constexpr std::uint64_t exponent = 0x7FF0000000000000u;
      return (std::bit_cast<std::uint64_t>(x) & exponent) != exponent;
    }
  }
};

template <int MantissaBits>
struct scalar_traits<detail::float16<MantissaBits>> {
  using accumulator = double;
  using value_type = detail::float16<MantissaBits>;
  static constexpr accumulator load(value_type x) noexcept { return static_cast<double>(x); }
  static constexpr value_type store(accumulator a) noexcept { return value_type(a); }
  static constexpr bool is_finite(value_type x) noexcept {
    constexpr unsigned exponent = 0x7FFFu >> MantissaBits << MantissaBits;
    return (x.bits & exponent) != exponent;
  }
};

/// Foreign half and bfloat16 types go through the same conversions as our own, so that a sum is
/// rounded once and the same whichever library the elements come from.
template <detail::foreign_float16 T>
struct scalar_traits<T> {
  using accumulator = double;
  static constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
  static constexpr accumulator load(T x) noexcept {
    return detail::decode16(std::bit_cast<std::uint16_t>(x), mantissa_bits);
  }
  static constexpr T store(accumulator a) noexcept {
    return std::bit_cast<T>(detail::encode16(a, mantissa_bits));
  }
  static constexpr bool is_finite(T x) noexcept {
    constexpr unsigned exponent = 0x7FFFu >> mantissa_bits << mantissa_bits;
    return (std::bit_cast<std::uint16_t>(x) & exponent) != exponent;
  }
};

/// A type whose elements can be averaged.
template <class T>
concept averageable = requires(T x, typename scalar_traits<T>::accumulator a) {
  { scalar_traits<T>::load(x) } -> std::same_as<typename scalar_traits<T>::accumulator>;
  { scalar_traits<T>::store(a) } -> std::same_as<T>;
  { scalar_traits<T>::is_finite(x) } -> std::same_as<bool>;
};

}  // namespace subfed::inline v0
