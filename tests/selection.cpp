// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/selection.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

using subfed::index_set;
using subfed::run;
using subfed::selected_dimension;
using subfed::selection;
using support::message_of;

namespace {
using shape = std::vector<std::int64_t>;
}  // namespace

TEST_CASE("one index set a dimension gives the shapes of the global and the local tensor") {
  const selection chosen{index_set(5, {4, 0}), index_set::full(3), index_set::prefix(7, 4)};
  CHECK(chosen.rank() == 3);
  CHECK(chosen.global_extents() == shape{5, 3, 7});
  CHECK(chosen.local_extents() == shape{2, 3, 4});
  CHECK(chosen.name().empty());
  CHECK(chosen.dimension(0).runs == std::vector<run>{{0, 4, 1}, {1, 0, 1}});
}

TEST_CASE(
    "a depthwise convolution keeps its second axis, an ordinary one with one output does not") {
  const index_set kept(6, {4, 5, 0});
  const selection depthwise{kept, index_set::full(1), index_set::full(3), index_set::full(3)};
  CHECK(depthwise.global_extents() == shape{6, 1, 3, 3});
  CHECK(depthwise.local_extents() == shape{3, 1, 3, 3});
  const selection ordinary{index_set::full(1), index_set(4, {0, 2}), index_set::full(3),
                           index_set::full(3)};
  CHECK(ordinary.local_extents() == shape{1, 2, 3, 3});
}

TEST_CASE("the default selection is that of a rank-0 tensor") {
  const selection chosen;
  CHECK(chosen.rank() == 0);
  CHECK(chosen.global_extents().empty());
  CHECK(chosen.local_extents().empty());
}

TEST_CASE("empty sets and empty groups are dimensions too") {
  const selection chosen{index_set(3, {}), index_set()};
  CHECK(chosen.global_extents() == shape{3, 0});
  CHECK(chosen.local_extents() == shape{0, 0});
}

TEST_CASE("a dimension is whole when every node stands in its place") {
  CHECK(selected_dimension(index_set::full(4)).is_whole());
  CHECK(selected_dimension(index_set::full(0)).is_whole());
  CHECK(selected_dimension(index_set::full(1)).is_whole());
  CHECK(!selected_dimension(index_set::prefix(4, 3)).is_whole());
  CHECK(!selected_dimension(index_set::window(4, 1, 4)).is_whole());
  CHECK(!selected_dimension(index_set(4, {})).is_whole());
  // All positions are there, but one takes part in nothing.
  CHECK(!selected_dimension(4, 4, {{0, 0, 3}}).is_whole());
  CHECK(!selected_dimension(4, 4, {}).is_whole());
}

TEST_CASE("dimensions and a name may be given in the place of index sets") {
  const std::vector<selected_dimension> dimensions{index_set(4, {1, 2}),
                                                   selected_dimension(6, 3, {{1, 5, 1}})};
  const selection chosen(dimensions, "fc1.weight");
  CHECK(chosen.name() == "fc1.weight");
  CHECK(chosen.global_extents() == shape{4, 6});
  CHECK(chosen.local_extents() == shape{2, 3});
  CHECK(chosen.dimension(1).runs == std::vector<run>{{1, 5, 1}});
  static_assert(!std::is_convertible_v<std::vector<selected_dimension>, selection>);
}

TEST_CASE("a rank over 8 is refused") {
  const std::vector<selected_dimension> nine(9, selected_dimension(index_set::full(1)));
  CHECK(message_of([&] { selection{nine}; }) == "subfed: selection: the rank 9 is over 8");
  const std::vector<selected_dimension> eight(8, selected_dimension(index_set::full(1)));
  CHECK(selection(eight).rank() == 8);
}
