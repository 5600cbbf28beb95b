// SPDX-License-Identifier: MIT
/// The order in which the updates of a cohort are added, which does not depend on the order in which
/// they arrived.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/options.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// -1, 0 or 1.
template <class X>
int compare(const X& a, const X& b) noexcept {
  return a < b ? -1 : b < a ? 1 : 0;
}

inline int compare_runs(std::span<const run> a, std::span<const run> b) noexcept {
  if (const int c = compare(a.size(), b.size())) return c;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const int c = compare(a[i].first, b[i].first)) return c;
    if (const int c = compare(a[i].length, b[i].length)) return c;
  }
  return 0;
}

/// By the nodes that are held and those that take part, group by group. Pre: of one model.
inline int compare_nodes(const submodel& a, const submodel& b) {
  for (std::size_t g = 0; g < a.parent().groups().size(); ++g) {
    const group_id group(g);
    if (const int c = compare_runs(a[group].runs(), b[group].runs())) return c;
    if (const int c = compare_runs(a.runs(group), b.runs(group))) return c;
  }
  return 0;
}

/// By the bits of the elements, in row-major order. Pre: of the same shape.
template <class E>
int compare_elements(const tensor_view<const E>& a, const tensor_view<const E>& b) {
  if (a.size() == 0) return 0;
  std::array<std::int64_t, max_rank> index{};
  const auto rank = static_cast<std::size_t>(a.rank());
  for (;;) {
    std::int64_t at_a = 0;
    std::int64_t at_b = 0;
    for (std::size_t r = 0; r < rank; ++r) {
      at_a += index[r] * a.strides()[r];
      at_b += index[r] * b.strides()[r];
    }
    const E x = a.data_handle()[at_a];
    const E y = b.data_handle()[at_b];
    if constexpr (std::is_integral_v<E>) {
      if (const int c = compare(x, y)) return c;
    } else if constexpr (sizeof(E) == 2) {
      if (const int c = compare(std::bit_cast<std::uint16_t>(x), std::bit_cast<std::uint16_t>(y))) {
        return c;
      }
    } else if constexpr (sizeof(E) == 4) {
      if (const int c = compare(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y))) {
        return c;
      }
    } else if constexpr (sizeof(E) == 8) {
      if (const int c = compare(std::bit_cast<std::uint64_t>(x), std::bit_cast<std::uint64_t>(y))) {
        return c;
      }
    } else {
      // For other types only the value that goes into the sums counts.
      if (const int c = compare(std::bit_cast<std::uint64_t>(scalar_traits<E>::load(x)),
                                std::bit_cast<std::uint64_t>(scalar_traits<E>::load(y)))) {
        return c;
      }
    }
    std::size_t r = rank;
    while (r-- > 0) {
      if (++index[r] < a.extents()[r]) break;
      index[r] = 0;
    }
    if (r == static_cast<std::size_t>(-1)) return 0;
  }
}

template <class U>
int compare_tensors(const tensor_view<const U>& a, const tensor_view<const U>& b) {
  if constexpr (std::is_void_v<U>) {
    if (const int c = compare(static_cast<int>(a.format().kind), static_cast<int>(b.format().kind)))
      return c;
    if (const int c = compare(a.format().bits, b.format().bits)) return c;
    return a.visit([&]<class E>(const tensor_view<const E>& typed) {
      return compare_elements<E>(typed, b.template as<E>());
    });
  } else {
    return compare_elements<U>(a, b);
  }
}

/// Whether elements of updates may be read.
enum class content_ties { by_content, as_given };

/// By the clients' numbers; those with the same number by round, weight, nodes and content. Content
/// is read only where all else is equal.
template <content_ties Ties, class Update>
std::vector<const Update*> in_order(std::span<const Update> updates) {
  std::vector<const Update*> out;
  for (const Update& u : updates) out.push_back(&u);
  std::stable_sort(out.begin(), out.end(), [](const Update* a, const Update* b) {
    const draw_key& x = a->sub.origin();
    const draw_key& y = b->sub.origin();
    if (x.client != y.client) return x.client < y.client;
    if (x.round != y.round) return x.round < y.round;
    if (a->weight != b->weight) return a->weight < b->weight;
    if (const int c = compare_nodes(a->sub, b->sub)) return c < 0;
    if constexpr (Ties == content_ties::by_content) {
      for (std::size_t t = 0; t < a->tensors.size(); ++t) {
        if (a->sub.parent().tensors()[t].is_local()) continue;  // of any shape
        if (const int c = compare_tensors(a->tensors[t], b->tensors[t])) return c < 0;
      }
    }
    return false;
  });
  return out;
}

}  // namespace subfed::inline v0::detail
