// SPDX-License-Identifier: MIT
/// Counts of what is held in memory: 64 bits wide on every machine, unlike memory sizes.
#pragma once

#include <subfed/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace subfed::inline v0::detail {

/// The size for `count` contiguous values of T.
///
/// Throws  error when the machine cannot address that many.
template <class T>
std::size_t memory_size(std::int64_t count) {
  constexpr std::uint64_t most =
      static_cast<std::uint64_t>((std::numeric_limits<std::ptrdiff_t>::max)()) / sizeof(T);
  if (static_cast<std::uint64_t>(count) > most) {
    fail("subfed: " + std::to_string(count) + " values of " + std::to_string(sizeof(T)) +
         " bytes are more than this machine can address");
  }
  return static_cast<std::size_t>(count);
}

/// The same for a value of T for each element of a shape.
template <class T>
std::size_t memory_size(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) return 0;
  }
  for (const std::int64_t extent : extents) {
    if (count > (std::numeric_limits<std::int64_t>::max)() / extent) {
      fail("subfed: shape " + shape_text(extents) +
           " has more elements than this machine can address");
    }
    count *= extent;
  }
  return memory_size<T>(count);
}

}  // namespace subfed::inline v0::detail
