// SPDX-License-Identifier: MIT
/// The order of the loops over a tensor.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <utility>

namespace subfed::inline v0::detail {

/// Sorts loops by their global strides: the largest, of any sign, becomes the outermost, so that a
/// column-major tensor is walked along its columns. Loops of one stride keep their order. No memory.
template <class Loop>
void sort_outer_first(std::span<Loop> loops) noexcept {
  for (std::size_t i = 1; i < loops.size(); ++i) {
    for (std::size_t k = i;
         k > 0 && std::abs(loops[k - 1].global_stride) < std::abs(loops[k].global_stride); --k) {
      std::swap(loops[k - 1], loops[k]);
    }
  }
}

}  // namespace subfed::inline v0::detail
