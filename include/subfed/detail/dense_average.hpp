// SPDX-License-Identifier: MIT
/// The average of a tensor whose sums and weights are both kept for every element.
#pragma once

#include <subfed/detail/average_terms.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// Gives the elements begin .. end-1 of the outermost dimension their new values, and returns how
/// many have a weight; the others keep their bits. terms.sums and terms.weights are row-major.
template <class T>
std::int64_t dense_average(const tensor_view<T>& global, const average_terms& terms,
                           std::int64_t begin, std::int64_t end) {
  const std::int64_t slab = global.rank() == 0 ? 1 : global.size() / global.extent(0);
  std::array<std::int64_t, max_rank> extents{};
  std::copy(global.extents().begin(), global.extents().end(), extents.begin());
  T* first = global.data_handle();
  if (global.rank() != 0) {
    extents[0] = end - begin;
    first += begin * global.stride(0);
  }
  const auto rank = static_cast<std::size_t>(global.rank());
  const tensor_view<T> part(first, std::span<const std::int64_t>(extents.data(), rank),
                            global.strides());
  std::int64_t held = 0;
  std::int64_t i = begin * slab;
  for_each_offset(part, [&](std::int64_t offset) {
    const double weight = terms.weights[i];
    const double sum = terms.sums[i++];
    if (!(weight > 0)) return;
    ++held;
    T& element = first[offset];
    const double value = terms.is_plain()
                             ? sum / weight
                             : combined(terms, sum, weight, scalar_traits<T>::load(element));
    element = scalar_traits<T>::store(value);
  });
  return held;
}

}  // namespace subfed::inline v0::detail
