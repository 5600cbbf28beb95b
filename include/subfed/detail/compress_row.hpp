// SPDX-License-Identifier: MIT
/// Copies of the elements of a row that masks select, in vectors.
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/instructions.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#if SUBFED_VARIANTS
#include <subfed/detail/lanes_avx2.hpp>
#include <subfed/detail/lanes_avx512.hpp>
#endif

namespace subfed::inline v0::detail {

/// Which elements of a row are selected, in blocks of 16 bits.
struct row_masks {
  std::span<const std::uint16_t> masks;
  std::int64_t size;      ///< of the row
  std::int64_t selected;  ///< how many of its elements
};

/// Whether compress_row is there for elements of this size.
inline bool can_compress(std::size_t element_size) noexcept {
  const instructions use = instructions_in_use();
  return (use == instructions::avx512 && (element_size == 4 || element_size == 2)) ||
         (use == instructions::avx2 && element_size == 4);
}

#if SUBFED_VARIANTS

/// The elements of one block, one by one. Returns where the next goes to.
template <int Size>
std::byte* compress_block(const std::byte* from, unsigned mask, std::byte* to) noexcept {
  for (unsigned left = mask; left != 0; left &= left - 1, to += Size) {
    std::memcpy(to, from + std::countr_zero(left) * Size, Size);
  }
  return to;
}

/// 16 elements at a time: whole vectors are stored, whose ends are overwritten by what follows. Size: 4 or 2.
template <int Size>
SUBFED_AVX512 void compress_row_avx512(const std::byte* from, const row_masks& row,
                                       std::byte* to) noexcept {
  using namespace avx512;
  using vector = std::conditional_t<Size == 4, wide_ints, wide_shorts>;
  const std::byte* const end = to + row.selected * Size;
  std::int64_t first = 0;
  const std::uint16_t* mask = row.masks.data();
  for (; first + 16 <= row.size && end - to >= 16 * Size; first += 16, ++mask) {
    const void* const source = from + first * Size;
    void* const target = to;
    vector x = static_cast<const in_memory<vector>*>(source)->x;
    wide_ints wide;
    if constexpr (Size == 4) {
      wide = x;
    } else {
      __asm__("vpmovzxwd {%1, %0|%0, %1}" : "=v"(wide) : "v"(x));
    }
    __asm__("vpcompressd {%0, %0%{%1%}%{z%}|%0%{%1%}%{z%}, %0}" : "+v"(wide) : "Yk"(*mask));
    if constexpr (Size == 4) {
      x = wide;
    } else {
      __asm__("vpmovdw {%1, %0|%0, %1}" : "=v"(x) : "v"(wide));
    }
    static_cast<in_memory<vector>*>(target)->x = x;
    to += std::popcount(*mask) * Size;
  }
  for (; first < row.size; first += 16, ++mask) {
    to = compress_block<Size>(from + first * Size, *mask, to);
  }
}

/// For each mask of eight bits, the numbers of its ones.
struct compression {
  alignas(8) std::int8_t from[256][8];

  constexpr compression() : from{} {
    for (int mask = 0; mask < 256; ++mask) {
      int next = 0;
      for (int lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) != 0) from[mask][next++] = static_cast<std::int8_t>(lane);
      }
    }
  }
};
inline constexpr compression compressions;

SUBFED_AVX2 inline void compress_row_avx2(const std::byte* from, const row_masks& row,
                                          std::byte* to) noexcept {
  using namespace avx2;
  constexpr int size = 4;
  const std::byte* const end = to + row.selected * size;
  std::int64_t first = 0;
  const std::uint16_t* mask = row.masks.data();
  for (; first + 16 <= row.size && end - to >= 16 * size; first += 16, ++mask) {
    for (int part = 0; part < 2; ++part) {
      const unsigned bits = (unsigned{*mask} >> (8 * part)) & 0xFFu;
      const void* const source = from + (first + 8 * part) * size;
      void* const target = to;
      const void* const table = compressions.from[bits];
      wide_ints lanes_of, x = static_cast<const in_memory<wide_ints>*>(source)->x;
      __asm__("vpmovsxbd {%1, %0|%0, %1}"
              : "=x"(lanes_of)
              : "m"(*static_cast<const std::int64_t*>(table)));
      __asm__("vpermd {%0, %1, %0|%0, %1, %0}" : "+x"(x) : "x"(lanes_of));
      static_cast<in_memory<wide_ints>*>(target)->x = x;
      to += std::popcount(bits) * size;
    }
  }
  for (; first < row.size; first += 16, ++mask) {
    to = compress_block<size>(from + first * size, *mask, to);
  }
}

/// Copies a row's selected elements one after the other.
///
/// Pre  can_compress(Size)
template <int Size>
void compress_row(const std::byte* from, const row_masks& row, std::byte* to) noexcept {
  if constexpr (Size == 4) {
    if (instructions_in_use() == instructions::avx2) return compress_row_avx2(from, row, to);
  }
  compress_row_avx512<Size>(from, row, to);
}

#else

template <int Size>
void compress_row(const std::byte*, const row_masks&, std::byte*) noexcept {}

#endif

}  // namespace subfed::inline v0::detail
