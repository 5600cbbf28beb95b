// SPDX-License-Identifier: MIT
/// Whether two views share memory, exactly.
#pragma once

#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Where the elements of a tensor begin, in bytes; with a stride of 0, each place once. Pre: the
/// tensor is not empty.
template <class V>
tensor_view<const std::byte> byte_starts(const V& view, std::int64_t width) {
  std::array<std::int64_t, max_rank> extents{};
  std::array<std::int64_t, max_rank> strides{};
  for (int r = 0; r < view.rank(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const bool moves = view.extent(r) != 1 && view.stride(r) != 0;
    extents[i] = moves ? view.extent(r) : 1;
    strides[i] = moves ? view.stride(r) * width : 0;
  }
  const auto rank = static_cast<std::size_t>(view.rank());
  return {reinterpret_cast<const std::byte*>(view.data_handle()),
          std::span<const std::int64_t>(extents.data(), rank),
          std::span<const std::int64_t>(strides.data(), rank)};
}

/// Whether all elements of one tensor are between those of the other, as with columns of one
/// matrix: their places are disjoint modulo the common divisor of all strides. False says nothing.
inline bool interleave(const tensor_view<const std::byte>& a, std::int64_t a_width,
                       const tensor_view<const std::byte>& b, std::int64_t b_width) noexcept {
  std::int64_t period = 0;
  for (const auto* view : {&a, &b}) {
    for (const std::int64_t stride : view->strides()) period = std::gcd(period, stride);
  }
  if (period == 0) return false;
  const auto place = [period](const tensor_view<const std::byte>& view) {
    const auto address = reinterpret_cast<std::uintptr_t>(view.data_handle());
    return static_cast<std::int64_t>(address % static_cast<std::uint64_t>(period));
  };
  const std::int64_t apart = place(b) - place(a);
  const std::int64_t after = apart < 0 ? apart + period : apart;  // from a's places to b's
  return a_width <= after && b_width <= period - after;
}

/// Whether an element of one tensor overlaps an element of the other; widths of elements in bytes.
/// Exact: views that interleave without touching (the two halves of each row of one matrix) do not
/// overlap. Pre: neither is empty.
///
/// Cost  O(rank), and a sort of one view's addresses where their address ranges intersect and no
///       common period of the strides separates them.
inline bool overlap_in_memory(const tensor_view<const std::byte>& a, std::int64_t a_width,
                              const tensor_view<const std::byte>& b, std::int64_t b_width) {
  const auto [a_low, a_high] = offset_range(a);
  const auto [b_low, b_high] = offset_range(b);
  const std::byte* const a_first = a.data_handle() + a_low;
  const std::byte* const a_last = a.data_handle() + a_high + a_width;
  const std::byte* const b_first = b.data_handle() + b_low;
  const std::byte* const b_last = b.data_handle() + b_high + b_width;
  const std::less<const std::byte*> before;
  if (!before(a_first, b_last) || !before(b_first, a_last)) return false;
  if (interleave(a, a_width, b, b_width)) return false;
  if (a.size() > b.size())
    return overlap_in_memory(b, b_width, a, a_width);  // the shorter list of places

  std::vector<const std::byte*> places;  // of a's elements, in order
  places.reserve(static_cast<std::size_t>(a.size()));
  for_each_offset(a, [&](std::int64_t o) { places.push_back(a.data_handle() + o); });
  std::sort(places.begin(), places.end(), before);
  bool met = false;
  for_each_offset(b, [&](std::int64_t o) {
    const std::byte* const from = b.data_handle() + o;
    // The first element of a that ends after `from` overlaps unless it begins after b's end.
    const auto at = std::upper_bound(places.begin(), places.end(), from, [&](auto* x, auto* place) {
      return before(x, place + a_width);
    });
    met = met || (at != places.end() && before(*at, from + b_width));
  });
  return met;
}

template <class T, class U>
bool overlap_in_memory(const tensor_view<T>& a, const tensor_view<U>& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  constexpr auto a_width = static_cast<std::int64_t>(sizeof(T));
  constexpr auto b_width = static_cast<std::int64_t>(sizeof(U));
  return overlap_in_memory(byte_starts(a, a_width), a_width, byte_starts(b, b_width), b_width);
}

}  // namespace subfed::inline v0::detail
