// SPDX-License-Identifier: MIT
/// Which elements of a row somebody has, as bits.
#pragma once

#include <subfed/index_set.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Which elements of an innermost loop a shape has, for vector loops over random sets.
struct element_masks {
  std::vector<std::uint16_t> masks;  ///< for every 16 elements
  std::vector<std::int32_t> starts;  ///< how many of its elements come before them
  std::int64_t size = 0;             ///< its elements

  bool empty() const noexcept { return masks.empty(); }
};

/// Sets the bits begin .. end-1.
inline void set_bits(std::vector<std::uint16_t>& masks, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t until = (std::min)(end, (i / 16 + 1) * 16);
    const unsigned below = (1u << (until - (i / 16) * 16)) - 1;
    const unsigned from = (1u << (i % 16)) - 1;
    std::uint16_t& mask = masks[static_cast<std::size_t>(i / 16)];
    mask = static_cast<std::uint16_t>(mask | (below & ~from));
    i = until;
  }
}

/// Of runs of a row of `extent` nodes, each `unit` elements. Empty where the elements are not in ascending
/// order, or too many.
inline element_masks masks_of(std::span<const run> runs, std::int64_t extent, std::int64_t unit) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (extent > most / unit) return {};
  element_masks out;
  out.masks.assign(static_cast<std::size_t>((extent * unit + 15) / 16), 0);
  std::int64_t node = 0;
  for (const run& r : runs) {
    if (r.position * unit != out.size || r.first < node) return {};
    out.size += r.length * unit;
    node = r.first + r.length;
    set_bits(out.masks, r.first * unit, node * unit);
  }
  std::int32_t before = 0;
  out.starts.reserve(out.masks.size());
  for (const std::uint16_t mask : out.masks) {
    out.starts.push_back(before);
    before += std::popcount(mask);
  }
  return out;
}

}  // namespace subfed::inline v0::detail
