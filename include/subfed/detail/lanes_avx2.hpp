// SPDX-License-Identifier: MIT
/// Vectors of AVX2, FMA and F16C: the words that lane_words.inc and the kernels are written in. Single
/// instructions are named in assembler: <immintrin.h> takes half a second to compile.
#pragma once

#include <subfed/config.hpp>

#if SUBFED_VARIANTS

#include <subfed/scalar.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define SUBFED_WORD SUBFED_AVX2 __attribute__((always_inline)) inline

namespace subfed::inline v0::detail::avx2 {

inline constexpr int lanes = 4;  ///< of doubles

using doubles = double __attribute__((vector_size(32)));
using longs = std::int64_t __attribute__((vector_size(32)));
using floats = float __attribute__((vector_size(16)));
using ints = std::int32_t __attribute__((vector_size(16)));
using shorts = std::uint64_t __attribute__((vector_size(16)));  // in one half
using short_bits = std::uint64_t;                               // that half
using wide_floats = float __attribute__((vector_size(32)));     // twice as many
using wide_ints = std::int32_t __attribute__((vector_size(32)));
using wide_shorts = std::uint16_t __attribute__((vector_size(16)));

#include <subfed/detail/lane_memory.inc>

/// Stores numbers below 2^16.
SUBFED_WORD void store_shorts(void* to, ints x) noexcept {
  shorts out;
  __asm__("vpackusdw {%1, %1, %0|%0, %1, %1}" : "=x"(out) : "x"(x));
  store_bits(to, out);
}
/// The lower halves.
SUBFED_WORD ints lower(longs x) noexcept {
  const wide_ints parts = reinterpret_cast<wide_ints>(x);
  return __builtin_shufflevector(parts, parts, 0, 2, 4, 6);
}
SUBFED_WORD floats low(wide_floats x) noexcept { return floats{x[0], x[1], x[2], x[3]}; }
SUBFED_WORD floats high(wide_floats x) noexcept { return floats{x[4], x[5], x[6], x[7]}; }
SUBFED_WORD wide_floats joined(floats x, floats y) noexcept {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}

/// For each mask of eight bits, which element goes to a lane: the number of ones below it; the sign
/// where the mask has a zero.
struct expansion {
  alignas(8) std::int8_t from[256][8];

  constexpr expansion() : from{} {
    for (int mask = 0; mask < 256; ++mask) {
      std::int8_t next = 0;
      for (int lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) != 0) {
          from[mask][lane] = next++;
        } else {
          from[mask][lane] = -128;
        }
      }
    }
  }
};
inline constexpr expansion expansions;

SUBFED_WORD wide_ints expansion_of(unsigned mask) noexcept {
  const void* const row = expansions.from[mask];
  wide_ints from;
  __asm__("vpmovsxbd {%1, %0|%0, %1}" : "=x"(from) : "m"(*static_cast<const std::int64_t*>(row)));
  return from;
}

/// The lanes of the mask in turn get the elements of x in turn, all others -0.
SUBFED_WORD wide_floats expanded(wide_floats x, wide_ints from) noexcept {
  wide_floats out;
  __asm__("vpermps {%1, %2, %0|%0, %2, %1}" : "=x"(out) : "x"(x), "x"(from));
  const wide_floats nothing = -0.0f - wide_floats{};
  __asm__("vblendvps {%2, %1, %0, %0|%0, %0, %1, %2}" : "+x"(out) : "x"(nothing), "x"(from));
  return out;
}
SUBFED_WORD wide_floats expanded(wide_floats x, unsigned mask) noexcept {
  return expanded(x, expansion_of(mask));
}

/// Counts for each lane in how many masks it is. masks: how many there are; full: those of them that have
/// all lanes, which are not counted again.
SUBFED_WORD wide_ints begin_count(std::size_t masks, std::size_t) noexcept {
  return static_cast<std::int32_t>(masks) - wide_ints{};
}
SUBFED_WORD void count_lanes(wide_ints& count, unsigned mask) noexcept {
  count += expansion_of(mask) >> 31;
}

/// weights[i] += weight in the lanes of the mask.
SUBFED_WORD void add_weight(doubles& weights, double weight, unsigned mask) noexcept {
  const longs bit{1, 2, 4, 8};
  const longs held = ((static_cast<std::int64_t>(mask) - longs{}) & bit) == bit;
  weights += reinterpret_cast<doubles>(held & (std::bit_cast<std::int64_t>(weight) - longs{}));
}

/// Floats that, rounded to a narrower type, give what the doubles would: what is cut off stays visible
/// in the last bit.
SUBFED_WORD ints to_odd_floats(const doubles& x) noexcept {
  constexpr std::int64_t magnitude = 0x7FFFFFFFFFFFFFFF;
  const floats nearest = __builtin_convertvector(x, floats);
  const longs exact = reinterpret_cast<longs>(x);
  const longs rounded = reinterpret_cast<longs>(widened(nearest));
  const longs over = (rounded & magnitude) > (exact & magnitude);
  const longs differs = rounded != exact;
  const ints bits = reinterpret_cast<ints>(nearest) + lower(over);
  return bits | (lower(differs) & 1);
}
/// The same for types whose smallest number is a normal float: what is cut off are the last 29 bits.
SUBFED_WORD ints to_odd_normals(const doubles& x) noexcept {
  constexpr std::int64_t cut_off = 0x1FFFFFFF;
  const longs bits = reinterpret_cast<longs>(x);
  const longs odd = (bits | ((bits & cut_off) + cut_off)) & ~cut_off;
  return reinterpret_cast<ints>(__builtin_convertvector(reinterpret_cast<doubles>(odd), floats));
}

/// to |= a | b.
SUBFED_WORD void unite(wide_ints& to, const wide_ints& a, const wide_ints& b) noexcept {
  to |= a | b;
}
SUBFED_WORD bool any_of(const wide_ints& x, std::int32_t bits) noexcept {
  const wide_ints mask = bits - wide_ints{};
  bool any;
  __asm__("vptest {%2, %1|%1, %2}" : "=@ccnz"(any) : "x"(x), "x"(mask) :);
  return any;
}

/// Whether looked_up is faster than a division.
inline constexpr bool looks_up = false;
SUBFED_WORD doubles looked_up(const double* table, longs at) noexcept {
  return doubles{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
}
SUBFED_WORD longs widened(ints x) noexcept { return __builtin_convertvector(x, longs); }
/// Numbers below 2^31.
SUBFED_WORD doubles converted(longs x) noexcept {
  return __builtin_convertvector(lower(x), doubles);
}
SUBFED_WORD wide_ints widened(wide_shorts x) noexcept {
  return __builtin_convertvector(x, wide_ints);
}

#include <subfed/detail/lane_words.inc>

}  // namespace subfed::inline v0::detail::avx2

#undef SUBFED_WORD
#endif
