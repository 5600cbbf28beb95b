// SPDX-License-Identifier: MIT
/// What is uploaded for a call: arrays one after the other in one block of bytes; they refer to
/// each other by their offsets in it.
#pragma once

#include <subfed/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::cuda::detail {

/// Stands for no array.
inline constexpr std::int64_t no_array = -1;

class packed_arrays {
 public:
  /// Offsets are multiples of this; the block must be at such an address too.
  static constexpr std::size_t alignment = 16;

  /// Appends a copy of the values. Returns their offset.
  template <class T>
  std::int64_t append(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignment);
    const std::size_t at = bytes_.size();
    const std::size_t size = values.size() * sizeof(T);
    bytes_.resize(at + (size + alignment - 1) / alignment * alignment);
    if (size != 0) std::memcpy(bytes_.data() + at, values.data(), size);
    return static_cast<std::int64_t>(at);
  }

  const std::byte* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// The array at an offset of packed arrays.
template <class T>
SUBFED_HD const T* array_at(const std::byte* base, std::int64_t offset) noexcept {
  return static_cast<const T*>(static_cast<const void*>(base + offset));
}

}  // namespace subfed::inline v0::cuda::detail
