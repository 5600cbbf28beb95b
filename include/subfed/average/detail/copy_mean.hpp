// SPDX-License-Identifier: MIT
/// The mean over one holder is its element: w x / w, rounded twice in double and then to a type of at most
/// 24 bits, is x for every weight of ordinary size. Only NaNs change: those of results are quiet, and in
/// 16-bit types they have no payload.
#pragma once

#include <subfed/average/detail/variants.hpp>
#include <subfed/config.hpp>
#include <subfed/scalar.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace subfed::inline v0::detail {

/// Whether conversions and sums keep the sign and the digits of a NaN. RISC-V has a single NaN.
#if defined(__riscv)
inline constexpr bool keeps_nans = false;
#else
inline constexpr bool keeps_nans = true;
#endif

/// Whether a mean over one holder is a copy.
template <class T>
inline constexpr bool copies_as_mean = has_lanes<T> && sizeof(T) <= 4 && keeps_nans;

/// Four elements of 16 bits, or two of 32, each with the bits of its mean.
template <class T>
[[SUBFED_ALWAYS_INLINE]] constexpr std::uint64_t mean_bits(std::uint64_t x) noexcept {
  if constexpr (sizeof(T) == 4) {
    constexpr std::uint64_t each = 0x0000000100000001u;
    // Above infinity, the sum reaches the sign.
    const std::uint64_t is_nan = (x & each * 0x7FFFFFFFu) + each * 0x007FFFFFu;
    return x | (is_nan & each << 31) >> 9;
  } else {
    constexpr std::uint64_t each = 0x0001000100010001u;
    constexpr int mantissa = scalar_traits<T>::mantissa_bits;
    constexpr std::uint64_t payload = (1u << mantissa) - 1;
    const std::uint64_t is_nan = ((x & each * 0x7FFFu) + each * payload) & each << 15;
    const std::uint64_t below_sign = is_nan - (is_nan >> 15);
    return (x & ~(below_sign & each * payload)) | is_nan >> (16 - mantissa);
  }
}

template <class T, class Word>
[[SUBFED_ALWAYS_INLINE]] inline void copy_word(const std::byte* from, std::byte* to) noexcept {
  Word x;
  std::memcpy(&x, from, sizeof(Word));
  x = static_cast<Word>(mean_bits<T>(x));
  std::memcpy(to, &x, sizeof(Word));
}

/// out[i] = from[i] as a mean. They do not overlap.
template <class T>
[[SUBFED_ALWAYS_INLINE]] inline void copy_mean(const T* from, T* out,
                                               std::int64_t length) noexcept {
  static_assert(has_lanes<T> && sizeof(T) <= 4);
  constexpr std::int64_t word = 8, line = 64;  // bytes
  const void* const first = from;
  void* const target = out;
  const auto* source = static_cast<const std::byte*>(first);
  auto* to = static_cast<std::byte*>(target);
  std::int64_t left = length * static_cast<std::int64_t>(sizeof(T));
  for (; left >= line; left -= line, source += line, to += line) {
    for (int k = 0; k < line; k += word) copy_word<T, std::uint64_t>(source + k, to + k);
  }
  for (; left >= word; left -= word, source += word, to += word) {
    copy_word<T, std::uint64_t>(source, to);
  }
  // The last word overlaps the one before it.
  if (left == 0) return;
  if (length * static_cast<std::int64_t>(sizeof(T)) >= word) {
    copy_word<T, std::uint64_t>(source + left - word, to + left - word);
    return;
  }
  if (left >= 4) {
    copy_word<T, std::uint32_t>(source, to);
    left -= 4;
    source += 4;
    to += 4;
  }
  if constexpr (sizeof(T) == 2) {
    if (left != 0) copy_word<T, std::uint16_t>(source, to);
  }
}

}  // namespace subfed::inline v0::detail
