// SPDX-License-Identifier: MIT
/// The arithmetic of the device kernels: host and device give the same bits. No function here fuses
/// or reorders, and none needs a flag of nvcc.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/config.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace subfed::inline v0::cuda::detail {

/// The bits of one type as another of the same size (std::bit_cast is not a device function).
template <class To, class From>
SUBFED_HD To bits_as(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

/// A number of 16 bits by the bits of its mantissa, as used in kernels; half and bfloat16 of every
/// library become one of two types.
template <int MantissaBits>
struct stored16 {
  std::uint16_t bits;
};

/// Mantissa bits of a type of 16 bits, 0 for others. cuda/element.cuh adds CUDA's own two.
template <class T>
inline constexpr int mantissa_bits_of = 0;
template <int MantissaBits>
inline constexpr int mantissa_bits_of<subfed::detail::float16<MantissaBits>> = MantissaBits;
template <subfed::detail::foreign_float16 T>
inline constexpr int mantissa_bits_of<T> = std::numeric_limits<T>::digits - 1;

template <class T>
struct kernel_element {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || mantissa_bits_of<T> != 0,
                "subfed: the CUDA kernels know float, double, half and bfloat16 elements");
  using type = stored16<mantissa_bits_of<T>>;
};
template <>
struct kernel_element<float> {
  using type = float;
};
template <>
struct kernel_element<double> {
  using type = double;
};
/// float, double, stored16<10> or stored16<7>: the type that kernels are compiled for.
template <class T>
using kernel_element_t = typename kernel_element<std::remove_const_t<T>>::type;

/// The exact double of a number. The same function as scalar_traits<T>::load.
SUBFED_HD inline double load(float x) noexcept { return static_cast<double>(x); }
SUBFED_HD inline double load(double x) noexcept { return x; }
template <int MantissaBits>
SUBFED_HD double load(stored16<MantissaBits> x) noexcept {
  constexpr int exponent_bits = 15 - MantissaBits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t sign = static_cast<std::uint64_t>(x.bits >> 15) << 63;
  const std::uint64_t mantissa = x.bits & ((1u << MantissaBits) - 1u);
  const int exponent = static_cast<int>(x.bits >> MantissaBits) & ((1 << exponent_bits) - 1);
  std::uint64_t wide = mantissa << (52 - MantissaBits);
  if (exponent == (1 << exponent_bits) - 1) {
    wide |= std::uint64_t{0x7FF} << 52;
  } else if (exponent != 0) {
    wide |= static_cast<std::uint64_t>(exponent - bias + 1023) << 52;
  } else {
    const double step =
        bits_as<double>(static_cast<std::uint64_t>(1 - bias - MantissaBits + 1023) << 52);
    wide = bits_as<std::uint64_t>(static_cast<double>(mantissa) * step);
  }
  return bits_as<double>(sign | wide);
}

/// The nearest number, ties to even, rounded once. The same function as scalar_traits<T>::store.
SUBFED_HD inline void store(double value, float& out) noexcept { out = static_cast<float>(value); }
SUBFED_HD inline void store(double value, double& out) noexcept { out = value; }
template <int MantissaBits>
SUBFED_HD void store(double value, stored16<MantissaBits>& out) noexcept {
  constexpr int exponent_bits = 15 - MantissaBits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr unsigned infinity = ((1u << exponent_bits) - 1u) << MantissaBits;
  const auto bits = bits_as<std::uint64_t>(value);
  const auto sign = static_cast<unsigned>(bits >> 63 << 15);
  const std::uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const int scaled = exponent - 1023 + bias;
  int shift = 52 - MantissaBits;
  std::uint64_t number = static_cast<std::uint64_t>(scaled) << 52 | mantissa;
  unsigned found = 0;
  if (exponent == 0x7FF) {
    found = infinity | (mantissa != 0 ? 1u << (MantissaBits - 1) : 0u);
  } else if (scaled >= (1 << exponent_bits) - 1) {
    found = infinity;
  } else {
    if (scaled <= 0) {  // below the normal range: no hidden bit, a fixed step
      shift += 1 - scaled;
      number = std::uint64_t{1} << 52 | mantissa;
    }
    if (exponent != 0 && shift <= 54) {
      const std::uint64_t half_step = std::uint64_t{1} << (shift - 1);
      const std::uint64_t odd = number >> shift & 1;
      found = static_cast<unsigned>((number + half_step - 1 + odd) >> shift);
    }
  }
  out.bits = static_cast<std::uint16_t>(sign | found);
}

SUBFED_HD inline bool is_finite(double x) noexcept {
  return (bits_as<std::uint64_t>(x) & 0x7FF0000000000000u) != 0x7FF0000000000000u;
}

/// factor * x, rounded, never fused with what follows. Pre: the factor is finite.
SUBFED_HD inline double product(double factor, double x) noexcept {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(factor, x);
#else
  return subfed::detail::rounded_product(factor, x);
#endif
}
SUBFED_HD inline double sum(double a, double b) noexcept {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
SUBFED_HD inline double quotient(double a, double b) noexcept {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}

/// a + b in the element type: for 16-bit types the exact sum, rounded once.
SUBFED_HD inline float element_sum(float a, float b) noexcept { return a + b; }
SUBFED_HD inline double element_sum(double a, double b) noexcept { return sum(a, b); }
template <int MantissaBits>
SUBFED_HD stored16<MantissaBits> element_sum(stored16<MantissaBits> a,
                                             stored16<MantissaBits> b) noexcept {
  stored16<MantissaBits> out;
  store(sum(load(a), load(b)), out);
  return out;
}

}  // namespace subfed::inline v0::cuda::detail
