// SPDX-License-Identifier: MIT
/// Vectors of AVX-512: the words of lanes_avx2.hpp, with twice as many lanes.
#pragma once

#include <subfed/config.hpp>

#if SUBFED_VARIANTS

#include <subfed/scalar.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define SUBFED_WORD SUBFED_AVX512 __attribute__((always_inline)) inline

namespace subfed::inline v0::detail::avx512 {

inline constexpr int lanes = 8;  ///< of doubles

using doubles = double __attribute__((vector_size(64)));
using longs = std::int64_t __attribute__((vector_size(64)));
using floats = float __attribute__((vector_size(32)));
using ints = std::int32_t __attribute__((vector_size(32)));
using shorts = std::uint16_t __attribute__((vector_size(16)));
using short_bits = shorts;
using wide_floats = float __attribute__((vector_size(64)));  // twice as many
using wide_ints = std::int32_t __attribute__((vector_size(64)));
using wide_shorts = std::uint16_t __attribute__((vector_size(32)));

#include <subfed/detail/lane_memory.inc>

/// Stores numbers below 2^16.
SUBFED_WORD void store_shorts(void* to, ints x) noexcept {
  shorts out;
  __asm__("vpmovdw {%1, %0|%0, %1}" : "=v"(out) : "v"(x));
  store_bits(to, out);
}
/// The lower halves.
SUBFED_WORD ints lower(longs x) noexcept {
  ints out;
  __asm__("vpmovqd {%1, %0|%0, %1}" : "=v"(out) : "v"(x));
  return out;
}
SUBFED_WORD floats low(wide_floats x) noexcept {
  return floats{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
}
SUBFED_WORD floats high(wide_floats x) noexcept {
  floats out;
  __asm__("vextractf64x4 {$1, %1, %0|%0, %1, 1}" : "=v"(out) : "v"(x));
  return out;
}
SUBFED_WORD wide_floats joined(floats x, floats y) noexcept {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/// The lanes of the mask in turn get the elements of x in turn, all others -0.
SUBFED_WORD wide_floats expanded(wide_floats x, unsigned mask) noexcept {
  wide_floats out = -0.0f - wide_floats{};
  __asm__("vexpandps {%1, %0%{%2%}|%0%{%2%}, %1}"
          : "+v"(out)
          : "v"(x), "Yk"(static_cast<std::uint16_t>(mask)));
  return out;
}

/// Counts for each lane in how many masks it is. masks: how many there are; full: those of them that have
/// all lanes, which are not counted again.
SUBFED_WORD wide_ints begin_count(std::size_t, std::size_t full) noexcept {
  return static_cast<std::int32_t>(full) - wide_ints{};
}
SUBFED_WORD void count_lanes(wide_ints& count, unsigned mask) noexcept {
  const wide_ints one = 1 - wide_ints{};
  __asm__("vpaddd {%1, %0, %0%{%2%}|%0%{%2%}, %0, %1}"
          : "+v"(count)
          : "v"(one), "Yk"(static_cast<std::uint16_t>(mask)));
}

/// weights[i] += weight in the lanes of the mask.
SUBFED_WORD void add_weight(doubles& weights, double weight, unsigned mask) noexcept {
  const doubles all = weight - doubles{};
  __asm__("vaddpd {%1, %0, %0%{%2%}|%0%{%2%}, %0, %1}"
          : "+v"(weights)
          : "v"(all), "Yk"(static_cast<std::uint8_t>(mask)));
}

/// Floats that, rounded to a narrower type, give what the doubles would: what is cut off stays visible
/// in the last bit.
SUBFED_WORD ints to_odd_floats(const doubles& x) noexcept {
  ints out;
  __asm__("vcvtpd2ps {%{rz-sae%}, %1, %0|%0, %1, %{rz-sae%}}" : "=v"(out) : "v"(x));
  const doubles back = widened(reinterpret_cast<floats>(out));
  std::uint8_t differs;
  __asm__("vpcmpneqq {%2, %1, %0|%0, %1, %2}" : "=Yk"(differs) : "v"(back), "v"(x));
  const ints one = 1 - ints{};
  __asm__("vpord {%1, %0, %0%{%2%}|%0%{%2%}, %0, %1}" : "+v"(out) : "v"(one), "Yk"(differs));
  return out;
}
/// The same for types whose smallest number is a normal float: what is cut off are the last 29 bits.
SUBFED_WORD ints to_odd_normals(const doubles& x) noexcept {
  ints out;
  __asm__("vcvtpd2ps {%{rz-sae%}, %1, %0|%0, %1, %{rz-sae%}}" : "=v"(out) : "v"(x));
  const longs cut_off = 0x1FFFFFFF - longs{};
  std::uint8_t differs;
  __asm__("vptestmq {%2, %1, %0|%0, %1, %2}" : "=Yk"(differs) : "v"(x), "v"(cut_off));
  const ints one = 1 - ints{};
  __asm__("vpord {%1, %0, %0%{%2%}|%0%{%2%}, %0, %1}" : "+v"(out) : "v"(one), "Yk"(differs));
  return out;
}

/// to |= a | b.
SUBFED_WORD void unite(wide_ints& to, const wide_ints& a, const wide_ints& b) noexcept {
  __asm__("vpternlogd {$0xFE, %2, %1, %0|%0, %1, %2, 0xFE}" : "+v"(to) : "v"(a), "v"(b));
}
SUBFED_WORD bool any_of(const wide_ints& x, std::int32_t bits) noexcept {
  const wide_ints mask = bits - wide_ints{};
  std::uint16_t any;
  __asm__("vptestmd {%2, %1, %0|%0, %1, %2}" : "=Yk"(any) : "v"(x), "v"(mask));
  return any != 0;
}

/// Whether looked_up is faster than a division.
inline constexpr bool looks_up = true;
/// The numbers in a table of 16 that the lanes name.
SUBFED_WORD doubles looked_up(const double* table, longs at) noexcept {
  const void* const at_0 = table;
  const void* const at_8 = table + 8;
  const doubles first = static_cast<const in_memory<doubles>*>(at_0)->x;
  const doubles second = static_cast<const in_memory<doubles>*>(at_8)->x;
  __asm__("vpermi2pd {%2, %1, %0|%0, %1, %2}" : "+v"(at) : "v"(first), "v"(second));
  return reinterpret_cast<doubles>(at);
}
/// Compilers do these in halves.
SUBFED_WORD longs widened(ints x) noexcept {
  longs out;
  __asm__("vpmovsxdq {%1, %0|%0, %1}" : "=v"(out) : "v"(x));
  return out;
}
SUBFED_WORD doubles converted(longs x) noexcept {
  doubles out;
  __asm__("vcvtqq2pd {%1, %0|%0, %1}" : "=v"(out) : "v"(x));
  return out;
}
SUBFED_WORD wide_ints widened(wide_shorts x) noexcept {
  wide_ints out;
  __asm__("vpmovzxwd {%1, %0|%0, %1}" : "=v"(out) : "v"(x));
  return out;
}

#include <subfed/detail/lane_words.inc>

}  // namespace subfed::inline v0::detail::avx512

#undef SUBFED_WORD
#endif
