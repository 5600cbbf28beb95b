// SPDX-License-Identifier: MIT
/// The average of a tensor whose sums and weights are both kept for every element.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/terms.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// Gives the elements begin .. end-1 of the outermost dimension their new values; those without a
/// weight keep their bits. terms.sums and terms.weights are row-major.
template <class T>
part_report dense_average(const tensor_view<T>& global, const average_terms& terms,
                          std::int64_t begin, std::int64_t end) {
  using traits = scalar_traits<T>;
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
  const bool plain = terms.is_plain();
  part_report out;
  std::int64_t i = begin * slab;
  for_each_offset(part, [&](std::int64_t offset) {
    double weight = terms.weights[i];
    const double sum = terms.sum_at(i++);
    if (!(weight > 0)) return;
    if (terms.weights_exponent != 0) weight = scaled(weight, terms.weights_exponent);
    ++out.held;
    T& element = first[offset];
    const double old = plain || !takes_old(terms, weight) ? 0 : traits::load(element);
    double value = plain ? sum / weight : combined(terms, sum, weight, old);
    if ((!is_finite_double(value) || (!plain && loses_old(terms, weight, old))) &&
        is_finite_double(sum) && is_finite_double(old)) {
      value = careful_value(terms, wide_number(sum), wide_number(weight), old);
    }
    const T stored = traits::store(value);
    if (!traits::is_finite(stored) && is_finite_double(sum) && is_finite_double(old)) {
      out.count_overflow(i - 1);
    }
    if (terms.does == pass::writes) element = stored;
  });
  return out;
}

}  // namespace subfed::inline v0::detail
