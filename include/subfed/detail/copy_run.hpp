// SPDX-License-Identifier: MIT
/// Copies of one run of elements; they bypass the cache where the result would not stay in it
/// anyway.
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/call_elements.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// Where the written elements should be afterwards.
enum class placement {
  cached,  ///< ordinary stores
  memory,  ///< stores that bypass the cache: memory is written without being read first
};

/// What one call writes evicts itself from the caches from this size on. It goes to memory then, but for
/// small tensors, which are often read again at once.
inline constexpr std::int64_t past_cache_bytes = 8 << 20;
inline constexpr std::int64_t small_tensor_bytes = 16 << 10;

/// The bytes of so many elements, or past_cache_bytes if there are more.
inline std::int64_t bytes_to_place(std::int64_t elements, std::size_t element_size) noexcept {
  const auto size = static_cast<std::int64_t>(element_size);
  return elements < past_cache_bytes / size ? elements * size : past_cache_bytes;
}

/// Where the elements of a tensor go, by its bytes and by those of all tensors that the call writes, both
/// from bytes_to_place().
inline placement placement_of(std::int64_t tensor, std::int64_t call) noexcept {
  return call >= past_cache_bytes && tensor >= small_tensor_bytes ? placement::memory
                                                                  : placement::cached;
}

/// Whether there are such stores.
#if defined(__SSE2__)
inline constexpr bool bypasses_cache = true;
#else
inline constexpr bool bypasses_cache = false;
#endif

/// Makes elements whose stores bypassed the cache visible to other threads.
inline void end_of_copies(placement where) noexcept {
#if defined(__SSE2__)
  if (where == placement::memory) _mm_sfence();
#else
  static_cast<void>(where);
#endif
}

/// Copies whole cache lines of the destination bypassing the cache, and the rest as usual.
inline void copy_past_cache(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
#if defined(__SSE2__)
  constexpr std::size_t line = 64;
  const std::size_t head =
      (std::min)(bytes, (line - reinterpret_cast<std::uintptr_t>(to) % line) % line);
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

/// to[i to_stride] = from[i from_stride]; contiguous runs as a block.
template <class T>
void copy_run(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
              std::int64_t length, placement where) noexcept {
  static_assert(
      std::is_trivially_copyable_v<T>,
      "subfed: elements of tensors are copied as bytes: their type must be trivially copyable");
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

/// The same with a conversion between floating-point types, rounded once.
template <class From, class To>
void copy_run(const From* from, std::int64_t from_stride, To* to, std::int64_t to_stride,
              std::int64_t length, placement) noexcept {
  const auto converted = [](From x) {
    return scalar_traits<To>::store(scalar_traits<From>::load(x));
  };
  if (from_stride != 1 || to_stride != 1) {
    for (std::int64_t i = 0; i < length; ++i) to[i * to_stride] = converted(from[i * from_stride]);
  } else {
    for (std::int64_t i = 0; i < length; ++i) to[i] = converted(from[i]);
  }
}

/// a + b as a double whose last bit records whether something was cut off. Rounded again to a
/// narrower type, it gives what the exact sum would.
inline double sum_to_round(double a, double b) noexcept {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  if ((bits & exponent) == exponent || !(error != 0) || (bits & 1) != 0) return sum;
  const bool further = (error > 0) == (sum > 0);
  return std::bit_cast<double>(further ? bits + 1 : bits - 1);
}

/// to[i to_stride] += from[i from_stride], in the element type; for half types and different types
/// the exact sum is rounded once.
template <class From, class To>
void add_run(const From* from, std::int64_t from_stride, To* to, std::int64_t to_stride,
             std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) {
    To& sum = to[i * to_stride];
    if constexpr (!std::is_same_v<From, To>) {
      const double a = scalar_traits<To>::load(sum);
      const double b = scalar_traits<From>::load(from[i * from_stride]);
      sum = scalar_traits<To>::store(std::is_same_v<To, double> ? a + b : sum_to_round(a, b));
    } else if constexpr (requires { sum += from[i]; }) {
      sum = static_cast<To>(sum + from[i * from_stride]);
    } else {
      using traits = scalar_traits<To>;
      sum = traits::store(traits::load(sum) + traits::load(from[i * from_stride]));
    }
  }
}

/// The element types of two tensors of one call, which are the same or are converted.
template <class Named, class V, class Other>
struct convertible_element {
  static_assert(viewable<V> && viewable<Other>,
                "subfed: not a tensor that subfed knows: include its header from subfed/adapt/, "
                "specialise subfed::view_traits, or make a tensor_view (lazy expressions of Eigen "
                "and xtensor have no elements yet: evaluate them first)");
  using type = element_beside_t<Named, V, Other>;
  using other = element_beside_t<Named, Other, V>;
  static_assert(
      !std::is_void_v<Named>,
      "subfed: one tensor is not of mixed types: leave the element type out, or name it, as "
      "in slice<float>(...)");
  static_assert(std::is_void_v<Named> || !std::is_void_v<type>,
                "subfed: the element type is known only at run time: name it, as in "
                "slice<float>(...)");
  static_assert(std::is_same_v<type, other> || (averageable<type> && averageable<other>),
                "subfed: the tensors of one call differ in element type");
};
template <class Named, class V, class Other>
using convertible_element_t = typename convertible_element<Named, V, Other>::type;

}  // namespace subfed::inline v0::detail
