// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/view_traits.hpp>

#include <subfed/selection.hpp>
#include <subfed/slice.hpp>
#include <subfed/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

/// A tensor type of somebody else, which owns its elements.
struct grid {
  std::int64_t rows, columns;
  std::vector<float> cells;
};
/// A part of one, which does not.
struct window {
  float* first;
  std::int64_t size;
};

}  // namespace

namespace subfed::inline v0 {

template <>
struct view_traits<grid> {
  using element_type = float;
  static constexpr bool owns = true;
  template <class T, class G>
  requires std::convertible_to<decltype(std::declval<G&>().cells.data()), T*>
  static tensor_view<T> view(G& g) { return {g.cells.data(), {g.rows, g.columns}}; }
};
template <>
struct view_traits<window> {
  using element_type = float;
  static constexpr bool owns = false;
  template <class T>
  static tensor_view<T> view(const window& w) {
    return {w.first, {w.size}};
  }
};

}  // namespace subfed::inline v0

TEST_CASE("a specialisation makes a type viewable, as what it holds") {
  using subfed::viewable;
  using subfed::viewable_as;
  static_assert(viewable<grid> && viewable<const grid&> && viewable<window>);
  static_assert(!viewable<int> && !viewable<std::vector<grid>>);
  static_assert(viewable_as<grid, float> && viewable_as<const grid, const float>);
  static_assert(!viewable_as<const grid, float> && !viewable_as<grid, double>);
  static_assert(viewable<subfed::tensor_view<float>>);
}

TEST_CASE("a temporary that owns its elements is not borrowed") {
  using subfed::borrowed;
  static_assert(borrowed<grid&> && borrowed<const grid&> && !borrowed<grid>);
  static_assert(borrowed<window> && borrowed<window&> && borrowed<subfed::tensor_view<float>>);
}

TEST_CASE("verbs take what a specialisation shows") {
  const grid global{2, 3, {1, 2, 3, 4, 5, 6}};
  std::array<float, 2> row{};
  const subfed::selection chosen{subfed::index_set(2, {1}), subfed::index_set(3, {2, 0})};
  grid local{1, 2, std::vector<float>(2)};
  subfed::slice(global, chosen, local);
  CHECK(local.cells == std::vector<float>{6, 4});
  const subfed::selection nodes{subfed::index_set(3, {2, 0})};
  std::array<float, 3> whole{7, 8, 9};
  subfed::slice(window{whole.data(), 3}, nodes, window{row.data(), 2});
  CHECK(row == std::array<float, 2>{9, 7});
}
