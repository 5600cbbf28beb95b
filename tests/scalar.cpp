// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/scalar.hpp>
#include <support/checks.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

using subfed::averageable;
using subfed::bfloat16;
using subfed::half;
using subfed::scalar_traits;

namespace {

struct not_averageable {};

/// A type of a user's own: a fixed-point number.
struct hundredths {
  std::int32_t count = 0;
};

/// What the 16 bits mean, from the definition of the format.
double meaning(std::uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7FFF) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const double one = exponent == 0 ? 0 : 1;
  const int power = exponent == 0 ? 1 - bias : exponent - bias;
  return sign * std::ldexp(one + std::ldexp(mantissa, -mantissa_bits), power);
}

template <class T>
constexpr int mantissa_bits = std::is_same_v<T, half> ? 10 : 7;

template <class T>
T from_bits(unsigned bits) {
  T out;
  out.bits = static_cast<std::uint16_t>(bits);
  return out;
}

/// Bits of infinity: the patterns below it, from 0 on, are the finite numbers in order.
template <class T>
constexpr unsigned infinity = 0x7FFFu >> mantissa_bits<T> << mantissa_bits<T>;

/// What a half and a bfloat16 type of another library look like.
template <int MantissaBits>
struct foreign {
  std::uint16_t x;
};

bool same_double(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

template <int MantissaBits>
struct std::numeric_limits<foreign<MantissaBits>> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr int digits = MantissaBits + 1;
  static constexpr int max_exponent = MantissaBits == 7 ? 128 : 16;
};

template <>
struct subfed::scalar_traits<hundredths> {
  using accumulator = double;
  static double load(hundredths x) { return x.count / 100.0; }
  static hundredths store(double a) { return {static_cast<std::int32_t>(std::lround(a * 100))}; }
  static bool is_finite(hundredths) { return true; }
};

TEST_CASE("floating-point types, the 16-bit ones and a user's own take part in averages") {
  static_assert(averageable<float> && averageable<double>);
  static_assert(averageable<half> && averageable<bfloat16>);
  static_assert(averageable<hundredths>);
  static_assert(!averageable<int> && !averageable<std::int64_t> && !averageable<bool>);
  static_assert(!averageable<not_averageable> && !averageable<float*>);
  static_assert(!averageable<long double> || sizeof(long double) == 8);
  static_assert(std::is_same_v<scalar_traits<float>::accumulator, double> &&
                std::is_same_v<scalar_traits<half>::accumulator, double>);
}

TEST_CASE_TEMPLATE("a 16-bit number is 16 bits and nothing else", T, half, bfloat16) {
  static_assert(sizeof(T) == 2 && std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> &&
                std::is_nothrow_default_constructible_v<T>);
  static_assert(!std::is_convertible_v<double, T> && !std::is_convertible_v<T, double>);
  CHECK(T().bits == 0);
  CHECK(from_bits<T>(0) != from_bits<T>(0x8000));
  CHECK(from_bits<T>(0x7FFF) == from_bits<T>(0x7FFF));
}

TEST_CASE("known numbers have their known bits") {
  CHECK(half(1.0).bits == 0x3C00);
  CHECK(half(-2.0).bits == 0xC000);
  CHECK(half(32.0).bits == 0x5000);
  CHECK(half(48000.0).bits == 0x79DC);
  CHECK(half(65504.0).bits == 0x7BFF);
  CHECK(half(0.0).bits == 0);
  CHECK(half(-0.0).bits == 0x8000);
  CHECK(half(std::ldexp(1.0, -24)).bits == 1);
  CHECK(half(std::ldexp(1.0, -14)).bits == 0x0400);
  CHECK(bfloat16(1.0).bits == 0x3F80);
  CHECK(bfloat16(1.0078125).bits == 0x3F81);
  CHECK(bfloat16(-0.0).bits == 0x8000);
  static_assert(half(0.5).bits == 0x3800 && static_cast<float>(bfloat16(0.5)) == 0.5f);
}

TEST_CASE("means of two neighbours round to even") {
  // Two clients at 1 and one step above; at one and two steps above.
  CHECK(bfloat16((1.0 + 1.0078125) / 2).bits == 0x3F80);
  CHECK(bfloat16((1.0078125 + 1.015625) / 2).bits == 0x3F82);
  CHECK(half((1.0 + 1.0009765625) / 2).bits == 0x3C00);
  CHECK(half((1.0009765625 + 1.001953125) / 2).bits == 0x3C02);
}

TEST_CASE_TEMPLATE("every pattern is read as its definition says and written back as it was", T,
                   half, bfloat16) {
  bool read = true;
  bool written = true;
  bool finite = true;
  bool kept_nan = true;
#if defined(__riscv)  // has a single NaN
  constexpr bool keeps_sign_of_nan = false;
#else
  constexpr bool keeps_sign_of_nan = true;
#endif
  for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
    const T x = from_bits<T>(bits);
    const double expected = meaning(x.bits, mantissa_bits<T>);
    const double found = scalar_traits<T>::load(x);
    finite = finite && scalar_traits<T>::is_finite(x) == std::isfinite(expected);
    if (std::isnan(expected)) {
      const T back = scalar_traits<T>::store(found);
      kept_nan = kept_nan && std::isnan(found) &&
                 std::isnan(meaning(back.bits, mantissa_bits<T>)) &&
                 (!keeps_sign_of_nan || (back.bits & 0x8000) == (x.bits & 0x8000));
      continue;
    }
    read = read && same_double(found, expected) &&
           same_double(static_cast<double>(static_cast<float>(x)), expected);
    written = written && scalar_traits<T>::store(found) == x;
  }
  CHECK(read);
  CHECK(written);
  CHECK(finite);
  CHECK(kept_nan);
}

TEST_CASE_TEMPLATE("between two neighbours the nearer one is taken, in the middle the even one", T,
                   half, bfloat16) {
  bool nearer = true;
  bool even = true;
  bool mirrored = true;
  for (unsigned bits = 0; bits + 1 <= infinity<T>; ++bits) {
    const double low = meaning(static_cast<std::uint16_t>(bits), mantissa_bits<T>);
    // Rounding sees infinity as the number that would come next.
    const double high =
        bits + 1 < infinity<T>
            ? meaning(static_cast<std::uint16_t>(bits + 1), mantissa_bits<T>)
            : 2 * low - meaning(static_cast<std::uint16_t>(bits - 1), mantissa_bits<T>);
    const double middle = low + (high - low) / 2;
    nearer = nearer && T(std::nextafter(middle, low)).bits == bits &&
             T(std::nextafter(middle, high)).bits == bits + 1 &&
             T(std::nextafter(low, high)).bits == bits &&
             T(std::nextafter(high, low)).bits == bits + 1;
    even = even && T(middle).bits == (bits % 2 == 0 ? bits : bits + 1);
    mirrored = mirrored && T(-middle).bits == (T(middle).bits | 0x8000);
  }
  CHECK(nearer);
  CHECK(even);
  CHECK(mirrored);
}

TEST_CASE_TEMPLATE("what is too large becomes infinity, what is too small a zero of its sign", T,
                   half, bfloat16) {
  const double most = std::numeric_limits<double>::max();
  CHECK(T(most).bits == infinity<T>);
  CHECK(T(-most).bits == (infinity<T> | 0x8000));
  CHECK(T(std::numeric_limits<double>::infinity()).bits == infinity<T>);
  CHECK(T(-std::numeric_limits<double>::infinity()).bits == (infinity<T> | 0x8000));
  CHECK(T(1e-300).bits == 0);
  CHECK(T(-1e-300).bits == 0x8000);
  CHECK(T(std::numeric_limits<double>::denorm_min()).bits == 0);
  CHECK(T(-std::numeric_limits<double>::denorm_min()).bits == 0x8000);
}

TEST_CASE("a double that a float rounds first would be rounded twice") {
  // Above the middle of 1 and its neighbour by less than a float can tell.
  const double above = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  CHECK(bfloat16(above).bits == 0x3F81);
  CHECK(bfloat16(static_cast<double>(static_cast<float>(above))).bits == 0x3F80);
}

TEST_CASE_TEMPLATE("float and double keep every value and know what is finite by its bits", T,
                   float, double) {
  using traits = scalar_traits<T>;
  const T infinite = std::numeric_limits<T>::infinity();
  for (const T x : {T{0}, T{1}, T{-0.5}, std::numeric_limits<T>::max(),
                    std::numeric_limits<T>::lowest(), std::numeric_limits<T>::denorm_min()}) {
    CHECK(traits::is_finite(x));
    CHECK(traits::store(traits::load(x)) == x);
  }
  CHECK(std::signbit(traits::store(traits::load(T{-0.0}))));
  for (const T x : {infinite, -infinite, std::numeric_limits<T>::quiet_NaN(),
                    -std::numeric_limits<T>::quiet_NaN()}) {
    CHECK(!traits::is_finite(x));
  }
  CHECK(std::isnan(traits::store(traits::load(std::numeric_limits<T>::quiet_NaN()))));
}

TEST_CASE("a float is stored with one rounding, ties to even") {
  using traits = scalar_traits<float>;
  const double step = std::ldexp(1.0, -23);
  CHECK(traits::store(1 + step / 2) == 1.0f);
  CHECK(traits::store(1 + step * 1.5) == static_cast<float>(1 + 2 * step));
  CHECK(traits::store(1.0 / 3) == std::bit_cast<float>(0x3EAAAAABu));
}

TEST_CASE("half types of other libraries are known by their numeric limits") {
  static_assert(averageable<foreign<10>> && averageable<foreign<7>> && !averageable<foreign<9>>);
  static_assert(!averageable<std::uint16_t>);
  bool same = true;
  for (unsigned bits = 0; bits <= 0xFFFF; bits += 7) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    using as_half = scalar_traits<foreign<10>>;
    using as_bfloat16 = scalar_traits<foreign<7>>;
    const double h = as_half::load({pattern});
    const double b = as_bfloat16::load({pattern});
    same = same && same_double(h, scalar_traits<half>::load(from_bits<half>(bits))) &&
           same_double(b, scalar_traits<bfloat16>::load(from_bits<bfloat16>(bits))) &&
           as_half::is_finite({pattern}) == std::isfinite(h) &&
           as_bfloat16::is_finite({pattern}) == std::isfinite(b) &&
           as_half::store(h * 1.0009).x == half(h * 1.0009).bits &&
           as_bfloat16::store(b * 1.009).x == bfloat16(b * 1.009).bits;
  }
  CHECK(same);
}
