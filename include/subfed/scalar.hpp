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

/// A 16-bit format by its mantissa bits. The conversions have no branches, so that compilers can
/// vectorise loops of them, and no denormal operands, which some programs make the processor treat
/// as zeros.
template <int MantissaBits>
struct format16 {
  static constexpr int bias = (1 << (14 - MantissaBits)) - 1;
  static constexpr std::uint32_t infinity = 0x7FFFu >> MantissaBits << MantissaBits;

  /// condition ? a : b, by masks.
  template <class U>
  [[SUBFED_ALWAYS_INLINE]] static constexpr U select(bool condition, U a, U b) noexcept {
    const U mask = U{0} - static_cast<U>(condition);
    return static_cast<U>((a & mask) | (b & ~mask));
  }
  /// 2^exponent.
  static constexpr double power(int exponent) noexcept {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }

  /// Rounded once, to nearest, ties to even.
  [[SUBFED_ALWAYS_INLINE]] static constexpr std::uint16_t encode(double value) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t size = bits & 0x7FFFFFFFFFFFFFFFu;
    const auto high = static_cast<std::int32_t>(size >> 32);

    // Normal numbers: the exponent moves to the new bias, the mantissa is rounded as an integer.
    constexpr int shift = 52 - MantissaBits;
    constexpr std::uint64_t rebias = static_cast<std::uint64_t>(1023 - bias) << 52;
    const std::uint64_t rounded =
        size + ((std::uint64_t{1} << (shift - 1)) - 1) + (size >> shift & 1);
    const auto normal = static_cast<std::uint32_t>((rounded - rebias) >> shift);
    // Smaller ones: adding 2^52 steps leaves the number of steps in the last bits of the sum.
    constexpr double steps = power(52 + 1 - bias - MantissaBits);
    const auto denormal = static_cast<std::uint32_t>(
        std::bit_cast<std::uint64_t>(std::bit_cast<double>(size) + steps));

    constexpr std::int32_t first_normal = (1023 + 1 - bias) << 20;
    constexpr std::int32_t past_normal = (1023 + 1 + bias) << 20;
    std::uint32_t out = select(high < first_normal, denormal, normal) & 0xFFFFu;
    out = select(high >= past_normal, infinity, out);
    const std::int32_t any_low = static_cast<std::uint32_t>(size) != 0;
    out |= select((high | any_low) > 0x7FF00000, 1u << (MantissaBits - 1), 0u);  // NaN
    return static_cast<std::uint16_t>(out | static_cast<std::uint32_t>(bits >> 63 << 15));
  }

  /// Exact.
  [[SUBFED_ALWAYS_INLINE]] static constexpr double decode(std::uint16_t bits) noexcept {
    const std::int32_t size = bits & 0x7FFF;
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
    const bool denormal = size < (1 << MantissaBits);
    // A float of the same mantissa and exponent; for denormal numbers, their count of steps.
    std::uint32_t wide = (static_cast<std::uint32_t>(size) << (23 - MantissaBits)) +
                         (std::uint32_t{127 - bias} << 23);
    wide |= select(size >= static_cast<std::int32_t>(infinity), 0x7F800000u, 0u);
    wide = select(denormal, std::bit_cast<std::uint32_t>(static_cast<float>(size)), wide) | sign;
    constexpr auto step = std::bit_cast<std::uint64_t>(power(1 - bias - MantissaBits));
    constexpr auto one = std::bit_cast<std::uint64_t>(1.0);
    return static_cast<double>(std::bit_cast<float>(wide)) *
           std::bit_cast<double>(select(denormal, step, one));
  }
};

/// A 16-bit floating-point number that is only stored; sums are kept wider.
template <int MantissaBits>
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  [[SUBFED_ALWAYS_INLINE]] constexpr explicit float16(double value) noexcept
      : bits(format16<MantissaBits>::encode(value)) {}
  [[SUBFED_ALWAYS_INLINE]] constexpr explicit operator double() const noexcept {
    return format16<MantissaBits>::decode(bits);
  }
  constexpr explicit operator float() const noexcept {
    return static_cast<float>(format16<MantissaBits>::decode(bits));
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

/// A half or bfloat16 type of another library, recognised by its std::numeric_limits: Eigen::half
/// and Eigen::bfloat16, c10::Half and c10::BFloat16 (at::), half_float::half.
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
///   is_finite(x)  by the bits, so that it works under -ffast-math
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
  static constexpr int mantissa_bits = MantissaBits;
  [[SUBFED_ALWAYS_INLINE]] static constexpr accumulator load(value_type x) noexcept {
    return static_cast<double>(x);
  }
  [[SUBFED_ALWAYS_INLINE]] static constexpr value_type store(accumulator a) noexcept {
    return value_type(a);
  }
  static constexpr bool is_finite(value_type x) noexcept {
    constexpr unsigned exponent = 0x7FFFu >> MantissaBits << MantissaBits;
    return (x.bits & exponent) != exponent;
  }
};

/// Foreign half and bfloat16 types go through the same conversions as our own, so that a sum is
/// rounded once, and has the same bits whichever library the elements come from.
template <detail::foreign_float16 T>
struct scalar_traits<T> {
  using accumulator = double;
  static constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
  [[SUBFED_ALWAYS_INLINE]] static constexpr accumulator load(T x) noexcept {
    return detail::format16<mantissa_bits>::decode(std::bit_cast<std::uint16_t>(x));
  }
  [[SUBFED_ALWAYS_INLINE]] static constexpr T store(accumulator a) noexcept {
    return std::bit_cast<T>(detail::format16<mantissa_bits>::encode(a));
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
