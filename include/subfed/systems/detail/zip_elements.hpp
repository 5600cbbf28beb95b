// SPDX-License-Identifier: MIT
/// Several tensors of one shape, element by element.
#pragma once

#include <subfed/tensor_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace subfed::inline v0::detail {

/// Calls f(offsets) for every element of views of one shape, in row-major order; offsets[v] is its
/// offset in view v. Pre: the shapes are equal.
template <class F, class First, class... Rest>
void for_each_together(F&& f, const tensor_view<First>& first, const tensor_view<Rest>&... rest) {
  constexpr std::size_t views = 1 + sizeof...(Rest);
  if (first.size() == 0) return;
  const std::array<const std::int64_t*, views> strides{first.strides().data(),
                                                       rest.strides().data()...};
  const int rank = first.rank();
  const int last = rank - 1;
  const std::int64_t row = rank == 0 ? 1 : first.extent(last);
  std::array<std::int64_t, views> start{};
  std::int64_t index[max_rank]{};
  while (true) {
    std::array<std::int64_t, views> at = start;
    for (std::int64_t i = 0; i < row; ++i) {
      f(at);
      for (std::size_t v = 0; rank != 0 && v < views; ++v) at[v] += strides[v][last];
    }
    int r = last - 1;
    for (; r >= 0; --r) {
      const bool further = index[r] + 1 < first.extent(r);
      for (std::size_t v = 0; v < views; ++v) {
        start[v] += strides[v][r] * (further ? 1 : -index[r]);
      }
      index[r] = further ? index[r] + 1 : 0;
      if (further) break;
    }
    if (r < 0) return;
  }
}

}  // namespace subfed::inline v0::detail
