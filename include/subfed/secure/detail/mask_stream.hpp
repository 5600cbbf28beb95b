// SPDX-License-Identifier: MIT
/// The words of a mask, added where they belong: the stream is generated in windows, not element by
/// element.
#pragma once

#include <subfed/secure/mask_key.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

enum class mask_sign { plus, minus };

/// One key's stream. Runs come in any order; where they ascend with small gaps, one window serves many.
template <class Generator>
class mask_stream {
 public:
  mask_stream(Generator& generator, const mask_key& key, mask_sign sign) noexcept
      : generator_(generator), key_(key), sign_(sign) {}

  /// to[i to_stride] += or -= word first + i stride, for i = 0 .. length-1, modulo 2^64.
  void apply(std::uint64_t first, std::int64_t stride, std::uint64_t* to, std::int64_t to_stride,
             std::int64_t length) {
    if (stride != 1) {
      for (std::int64_t i = 0; i < length; ++i) {
        run(first + static_cast<std::uint64_t>(i * stride), to + i * to_stride, 1, 1);
      }
    } else {
      run(first, to, to_stride, static_cast<std::uint64_t>(length));
    }
  }

 private:
  static constexpr std::uint64_t block = 8;        ///< words that a generator makes at once
  static constexpr std::uint64_t capacity = 1024;  ///< words of a window: 8 KiB

  void run(std::uint64_t first, std::uint64_t* to, std::int64_t to_stride, std::uint64_t length) {
    for (bool inside = false; length != 0; inside = true) {
      if (first - begin_ >= size_) move_to(first, length, inside);
      const std::uint64_t* const words = window_.data() + (first - begin_);
      const std::uint64_t here = (std::min)(length, size_ - (first - begin_));
      const auto count = static_cast<std::int64_t>(here);
      if (sign_ == mask_sign::plus) {
        for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] += words[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] -= words[i];
      }
      first += here;
      to += count * to_stride;
      length -= here;
    }
  }

  /// A window that begins with the block of `first`. It is as long as this run, or twice as long as
  /// the last one where the run begins shortly after that: then more short runs will follow.
  void move_to(std::uint64_t first, std::uint64_t length, bool inside) {
    const std::uint64_t end = begin_ + size_;
    const std::uint64_t begin = first / block * block;
    const bool goes_on = !inside && size_ != 0 && begin >= end && begin - end <= 2 * block;
    std::uint64_t size = first - begin + (std::min)(length, capacity);
    if (goes_on) size = (std::max)(size, 2 * size_);
    size = (std::min)((size + block - 1) / block * block, capacity);
    generator_(key_, begin,
               std::span<std::uint64_t>(window_.data(), static_cast<std::size_t>(size)));
    begin_ = begin;
    size_ = size;
  }

  Generator& generator_;
  const mask_key& key_;
  mask_sign sign_;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
  std::array<std::uint64_t, capacity> window_;
};

}  // namespace subfed::inline v0::detail
