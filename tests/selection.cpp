// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/selection.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
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
  CHECK(selected_dimension().is_whole());
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

TEST_CASE("runs that no two tensors of the shapes have are refused") {
  const auto refusal = [](std::int64_t global, std::int64_t local, std::vector<run> runs) {
    return message_of([&] {
      selection({index_set::full(2), selected_dimension(global, local, std::move(runs))});
    });
  };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(refusal(4, 4, {{0, 100000000, 4}}) ==
        "subfed: selection: the run {0, 100000000, 4} of dimension 1, from 4 to 4 elements, leaves "
        "it");
  for (const run& outside :
       {run{0, 1, 4}, run{1, 0, 4}, run{-1, 0, 2}, run{0, -1, 2}, run{0, most, 1}, run{most, 0, 1},
        run{0, 0, most}, run{most, most, most}, run{least, 0, 1}, run{0, least, 4}}) {
    CHECK(refusal(4, 4, {outside}).find("of dimension 1, from 4 to 4 elements, leaves it") !=
          std::string::npos);
  }
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{-1}, least}) {
    CHECK(refusal(4, 4, {{0, 0, length}}).find("is empty") != std::string::npos);
  }
  CHECK(refusal(4, 4, {{0, 0, 2}, {1, 2, 2}}) ==
        "subfed: selection: the run {1, 2, 2} of dimension 1, from 4 to 4 elements, meets another");
  CHECK(refusal(4, 4, {{2, 1, 2}, {0, 2, 2}}) ==
        "subfed: selection: the run {0, 2, 2} of dimension 1, from 4 to 4 elements, meets another");
  CHECK(refusal(-1, 4, {}) ==
        "subfed: selection: dimension 1 has the extents -1 and 4, expected none that is negative");
  CHECK(refusal(4, least, {}).find("expected none that is negative") != std::string::npos);
  CHECK(refusal(4, 4, {{2, 1, 2}, {0, 3, 1}, {1, 0, 1}}) == "nothing was thrown");
  CHECK(refusal(most, 1, {{0, most - 1, 1}}).find("has more than") == std::string::npos);
}

TEST_CASE("shapes whose extents cannot be multiplied are refused") {
  const std::int64_t huge = std::int64_t{1} << 40;
  const auto refused = [&](const std::string& global, const std::string& local) {
    return "subfed: selection: the shapes " + global + " and " + local +
           " have more than 2^63 - 1 elements, extents of 0 left out";
  };
  CHECK(message_of([&] {
          selection{index_set::prefix(huge, 2), index_set::prefix(huge, 2)};
        }) == refused("(1099511627776, 1099511627776)", "(2, 2)"));
  CHECK(message_of([&] {
          selection{index_set::full(huge), index_set(), index_set::full(huge)};
        }) == refused("(1099511627776, 0, 1099511627776)", "(1099511627776, 0, 1099511627776)"));
  const selected_dimension wide(1, huge, {});  // label rows
  CHECK(message_of([&] {
          selection(std::vector<selected_dimension>{wide, wide}, "w");
        }) ==
        "subfed: selection: of tensor 'w': the shapes (1, 1) and (1099511627776, 1099511627776) "
        "have more than 2^63 - 1 elements, extents of 0 left out");
  CHECK(selection{index_set::full(huge), index_set()}.rank() == 2);
}
