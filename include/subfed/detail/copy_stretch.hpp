// SPDX-License-Identifier: MIT
/// Copies of one stretch of elements, past the cache where the result would not stay in it anyway.
#pragma once

#include <subfed/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// Where the written elements are to be afterwards.
enum class placement {
  cached,  ///< ordinary stores
  memory,  ///< stores past the cache: memory is written without being read first
};

/// Results from this size on would push each other out of a core's own cache; they go to memory.
inline constexpr std::int64_t past_cache_bytes = 1 << 20;

inline placement placement_of(std::int64_t elements, std::size_t element_size) noexcept {
  return elements >= past_cache_bytes / static_cast<std::int64_t>(element_size) ? placement::memory
                                                                                : placement::cached;
}

/// Makes elements that were written past the cache visible to other threads.
inline void end_of_copies(placement where) noexcept {
#if defined(__SSE2__)
  if (where == placement::memory) _mm_sfence();
#else
  static_cast<void>(where);
#endif
}

/// Copies whole cache lines of the destination past the cache, and the rest around them as usual.
inline void copy_past_cache(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
#if defined(__SSE2__)
  constexpr std::size_t line = 64;
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + line <= bytes; i += line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + i, from + i, bytes - i);
#else
  std::memcpy(to, from, bytes);
#endif
}

/// to[i to_stride] = from[i from_stride]; contiguous stretches as a block.
template <class T>
void copy_stretch(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                  std::int64_t length, placement where) noexcept {
  static_assert(std::is_trivially_copyable_v<T>,
                "subfed: elements of tensors are copied as bytes: their type is to be trivial");
  constexpr std::int64_t call_pays = 32;  // below, a call costs more than the loop
  constexpr std::int64_t past_cache_pays = 1024 / static_cast<std::int64_t>(sizeof(T));
  if (from_stride != 1 || to_stride != 1) {
    for (std::int64_t i = 0; i < length; ++i) to[i * to_stride] = from[i * from_stride];
  } else if (length < call_pays) {
    for (std::int64_t i = 0; i < length; ++i) to[i] = from[i];
  } else {
    const auto bytes = static_cast<std::size_t>(length) * sizeof(T);
    if (where == placement::memory && length >= past_cache_pays) {
      copy_past_cache(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to),
                      bytes);
    } else {
      std::memcpy(to, from, bytes);
    }
  }
}

}  // namespace subfed::inline v0::detail
