// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/index_set.hpp>
#include <support/checks.hpp>
#include <support/shapes.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

using subfed::basic_index_set;
using subfed::index_set;
using subfed::run;
using support::message_of;
using nodes_type = std::vector<std::int64_t>;

namespace {

template <class Index>
concept can_index = requires {
  typename basic_index_set<Index>;
};

template <class Index>
std::vector<Index> nodes_of(const basic_index_set<Index>& s) {
  return {s.begin(), s.end()};
}

std::vector<run> runs_of(const index_set& s) { return {s.runs().begin(), s.runs().end()}; }

/// The runs by definition: a run ends where the next node is not the one after it.
std::vector<run> dumb_runs(const nodes_type& nodes) {
  std::vector<run> out;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    if (p > 0 && nodes[p] == nodes[p - 1] + 1) {
      ++out.back().length;
    } else {
      out.push_back({static_cast<std::int64_t>(p), nodes[p], 1});
    }
  }
  return out;
}

}  // namespace

TEST_CASE("a set is a value: copies are cheap to take and equal") {
  static_assert(std::is_copy_constructible_v<index_set> && std::is_copy_assignable_v<index_set>);
  static_assert(std::is_nothrow_move_constructible_v<index_set>);
  static_assert(std::is_same_v<index_set, basic_index_set<std::int64_t>>);
  static_assert(can_index<std::uint8_t> && !can_index<double>);
  const index_set a(5, {4, 0});
  index_set b = a;
  CHECK(a == b);
  b = index_set(5, {0, 4});
  CHECK(a != b);
}

TEST_CASE("order is kept: unsorted {2, 0} of 3 nodes is legal") {
  const index_set s(3, {2, 0});
  CHECK(s.extent() == 3);
  CHECK(s.size() == 2);
  CHECK(s[0] == 2);
  CHECK(s[1] == 0);
  CHECK(nodes_of(s) == nodes_type{2, 0});
  CHECK(!s.is_ascending());
  CHECK(!s.is_full());
}

TEST_CASE("the windows of the worked example") {
  // [Rolex, Fig. 1]: nodes a .. e, two clients, three rounds.
  CHECK(nodes_of(index_set::window(5, 0, 4)) == nodes_type{0, 1, 2, 3});
  CHECK(nodes_of(index_set::window(5, 2, 3)) == nodes_type{2, 3, 4});
  CHECK(nodes_of(index_set::window(5, 1, 4)) == nodes_type{1, 2, 3, 4});
  CHECK(nodes_of(index_set::window(5, 3, 3)) == nodes_type{3, 4, 0});
  CHECK(nodes_of(index_set::window(5, 2, 4)) == nodes_type{2, 3, 4, 0});
  CHECK(nodes_of(index_set::window(5, 4, 3)) == nodes_type{4, 0, 1});
  CHECK(runs_of(index_set::window(5, 2, 4)) == std::vector<run>{{0, 2, 3}, {3, 0, 1}});
}

TEST_CASE("prefix and full are one run, a wrapping window two, an empty set none") {
  CHECK(runs_of(index_set::prefix(8, 3)) == std::vector<run>{{0, 0, 3}});
  CHECK(runs_of(index_set::full(8)) == std::vector<run>{{0, 0, 8}});
  CHECK(runs_of(index_set::window(8, 6, 3)) == std::vector<run>{{0, 6, 2}, {2, 0, 1}});
  CHECK(runs_of(index_set::window(8, 5, 3)) == std::vector<run>{{0, 5, 3}});
  CHECK(runs_of(index_set::window(8, 3, 8)) == std::vector<run>{{0, 3, 5}, {5, 0, 3}});
  CHECK(index_set::prefix(8, 0).runs().empty());
  CHECK(index_set::full(8).is_full());
  CHECK(!index_set::window(8, 3, 8).is_full());  // all nodes, but in another order
  CHECK(index_set(3, {0, 1, 2}) == index_set::full(3));
  CHECK(index_set(8, {6, 7, 0}) == index_set::window(8, 6, 3));
}

TEST_CASE("the empty set of an empty group is full and empty at once") {
  const index_set none;
  CHECK(none.extent() == 0);
  CHECK(none.empty());
  CHECK(none.is_full());
  CHECK(none.begin() == none.end());
  CHECK(none == index_set::full(0));
  CHECK(none == index_set(0, {}));
  CHECK(none == index_set::window(0, 0, 0));
  CHECK(!none.contains(0));
  const index_set nothing(3, {});
  CHECK(nothing.empty());
  CHECK(!nothing.is_full());
  CHECK(nothing != none);
}

TEST_CASE("every position, node and run follows from the list of nodes") {
  support::for_all("index_set(extent, nodes)", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(0, 30);
    const nodes_type nodes = *support::gen_nodes(extent);
    const index_set s(extent, nodes);

    RC_ASSERT(s.extent() == extent);
    RC_ASSERT(s.size() == static_cast<std::int64_t>(nodes.size()));
    RC_ASSERT(s.empty() == nodes.empty());
    RC_ASSERT(nodes_of(s) == nodes);
    RC_ASSERT(std::distance(s.begin(), s.end()) == s.size());
    for (std::size_t p = 0; p < nodes.size(); ++p) {
      RC_ASSERT(s[static_cast<std::int64_t>(p)] == nodes[p]);
    }
    RC_ASSERT(runs_of(s) == dumb_runs(nodes));
    for (std::int64_t node = -2; node < extent + 2; ++node) {
      RC_ASSERT(s.contains(node) == (std::find(nodes.begin(), nodes.end(), node) != nodes.end()));
    }
    RC_ASSERT(s.is_ascending() == std::is_sorted(nodes.begin(), nodes.end()));
    nodes_type all(static_cast<std::size_t>(extent));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    RC_ASSERT(s.is_full() == (nodes == all));
    RC_ASSERT(s == index_set(extent, nodes));
    RC_ASSERT(s != index_set(extent + 1, nodes));
  });
}

TEST_CASE("every window is the list of its nodes") {
  for (std::int64_t extent = 0; extent <= 9; ++extent) {
    for (std::int64_t first = 0; first < (std::max)(extent, std::int64_t{1}); ++first) {
      for (std::int64_t count = 0; count <= extent; ++count) {
        nodes_type nodes;
        for (std::int64_t t = 0; t < count; ++t) nodes.push_back((first + t) % extent);
        const index_set s = index_set::window(extent, first, count);
        CHECK(s == index_set(extent, nodes));
        CHECK(s.is_ascending() == std::is_sorted(nodes.begin(), nodes.end()));
        CHECK(s.runs().size() <= 2);
      }
    }
  }
}

TEST_CASE("two sets are equal exactly when extent, nodes and order are") {
  support::for_all("operator==", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(1, 5);
    const nodes_type a = *support::gen_nodes(extent);
    const nodes_type b = *support::gen_nodes(extent);
    RC_ASSERT((index_set(extent, a) == index_set(extent, b)) == (a == b));
  });
}

TEST_CASE("a repeated node is refused with its value and both positions") {
  CHECK(message_of([] {
          index_set(3, {1, 1});
        }) == "subfed: index_set: node 1 is repeated, at positions 0 and 1");
  CHECK(message_of([] {
          index_set(9, {7, 2, 3, 4, 8, 3});
        }) == "subfed: index_set: node 3 is repeated, at positions 2 and 5");
  CHECK(message_of([] {
          index_set(9, {3, 4, 5, 0, 5});
        }) == "subfed: index_set: node 5 is repeated, at positions 2 and 4");
  CHECK(message_of([] {
          index_set(9, {1, 2, 3, 1, 2, 3});
        }) == "subfed: index_set: node 1 is repeated, at positions 0 and 3");
  CHECK(message_of([] {
          index_set(2, {0, 1, 0});
        }) == "subfed: index_set: node 0 is repeated, at positions 0 and 2");
}

TEST_CASE("a node outside the group is refused with its value and position") {
  CHECK(message_of([] { index_set(3, {3}); }) ==
        "subfed: index_set: node 3 at position 0 is outside [0, 3)");
  CHECK(message_of([] {
          index_set(3, {0, -1});
        }) == "subfed: index_set: node -1 at position 1 is outside [0, 3)");
  CHECK(message_of([] { index_set(0, {0}); }) ==
        "subfed: index_set: node 0 at position 0 is outside [0, 0)");
  CHECK(message_of([] {
          index_set(4, {0, 4});
        }) == "subfed: index_set: node 4 at position 1 is outside [0, 4)");
  CHECK(message_of([] { index_set(-1, {}); }) == "subfed: index_set: the extent -1 is negative");
}

TEST_CASE("the first node that is repeated is found, wherever its twin stands") {
  support::for_all("one repeated node", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(2, 20);
    nodes_type nodes = *support::gen_nodes(extent);
    RC_PRE(!nodes.empty());
    const auto from = *rc::gen::inRange<std::size_t>(0, nodes.size());
    const auto to = *rc::gen::inRange<std::size_t>(0, nodes.size() + 1);
    const std::int64_t node = nodes[from];
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(to), node);
    std::vector<std::size_t> at;
    for (std::size_t p = 0; p < nodes.size(); ++p) {
      if (nodes[p] == node) at.push_back(p);
    }
    RC_ASSERT(message_of([&] { index_set(extent, nodes); }) ==
              "subfed: index_set: node " + std::to_string(node) + " is repeated, at positions " +
                  std::to_string(at[0]) + " and " + std::to_string(at[1]));
  });
}

TEST_CASE("a window that does not fit its group is refused") {
  CHECK(message_of([] { index_set::window(4, 0, 5); }) ==
        "subfed: index_set: 5 nodes are requested of a group of 4");
  CHECK(message_of([] { index_set::prefix(4, -1); }) ==
        "subfed: index_set: -1 nodes are requested of a group of 4");
  CHECK(message_of([] { index_set::window(4, 4, 1); }) ==
        "subfed: index_set: the window's first node 4 is outside [0, 4)");
  CHECK(message_of([] { index_set::window(4, -1, 1); }) ==
        "subfed: index_set: the window's first node -1 is outside [0, 4)");
  CHECK(message_of([] { index_set::window(0, 1, 0); }) ==
        "subfed: index_set: the window's first node 1 is outside [0, 0)");
  CHECK(message_of([] { index_set::full(-2); }) == "subfed: index_set: the extent -2 is negative");
}

TEST_CASE_TEMPLATE("every integer type can be the index", Index, std::int8_t, std::uint8_t,
                   std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::uint64_t) {
  const std::vector<Index> nodes{4, 5, 0, 2};
  const basic_index_set<Index> s(Index{6}, nodes);
  CHECK(nodes_of(s) == nodes);
  CHECK(s.contains(Index{5}));
  CHECK(!s.contains(Index{3}));
  CHECK(s.runs().size() == 3);

  const index_set wide(s);
  CHECK(nodes_of(wide) == nodes_type{4, 5, 0, 2});
  CHECK(wide.extent() == 6);
  CHECK(wide.is_ascending() == s.is_ascending());
  CHECK(basic_index_set<Index>(wide) == s);
  CHECK(index_set(basic_index_set<Index>::full(Index{6})) == index_set::full(6));

  constexpr Index most = std::numeric_limits<Index>::max();
  const auto window = basic_index_set<Index>::window(most, static_cast<Index>(most - 1), Index{3});
  CHECK(nodes_of(window) == std::vector<Index>{static_cast<Index>(most - 1), Index{0}, Index{1}});
  CHECK(basic_index_set<Index>::full(most).size() == most);
  CHECK(message_of([&] { basic_index_set<Index>(Index{6}, std::vector<Index>{Index{6}}); }) ==
        "subfed: index_set: node 6 at position 0 is outside [0, 6)");
}

TEST_CASE("positions of a message are right where the index type cannot count them") {
  std::vector<std::int8_t> nodes;
  for (int n = 0; n < 300; ++n) nodes.push_back(static_cast<std::int8_t>(n % 100));
  nodes.back() = 101;
  CHECK(message_of([&] { basic_index_set<std::int8_t>(101, nodes); }) ==
        "subfed: index_set: node 101 at position 299 is outside [0, 101)");
  nodes.back() = 99;
  CHECK(message_of([&] { basic_index_set<std::int8_t>(101, nodes); }) ==
        "subfed: index_set: node 0 is repeated, at positions 0 and 100");
}

TEST_CASE("an extent that the other index type cannot hold is refused") {
  const index_set wide = index_set::prefix(std::int64_t{1} << 40, 3);
  CHECK(message_of([&] { basic_index_set<std::int32_t>{wide}; }) ==
        "subfed: index_set: the extent 1099511627776 does not fit the index type, whose largest "
        "value is 2147483647");
  CHECK(
      message_of([&] { basic_index_set<std::int8_t>{index_set::full(128)}; }) ==
      "subfed: index_set: the extent 128 does not fit the index type, whose largest value is 127");
  CHECK(basic_index_set<std::int8_t>{index_set::full(127)}.size() == 127);
}

TEST_CASE("groups beyond 2^32 nodes need no memory for their windows") {
  const std::int64_t extent = std::int64_t{1} << 62;
  const index_set s = index_set::window(extent, extent - 2, extent - 1);
  CHECK(s.size() == extent - 1);
  CHECK(s[0] == extent - 2);
  CHECK(s[2] == 0);
  CHECK(s[extent - 2] == extent - 4);
  CHECK(s.contains(extent - 1));
  CHECK(!s.contains(extent - 3));
  CHECK(nodes_of(index_set(extent, {extent - 1, std::int64_t{1} << 33})) ==
        nodes_type{extent - 1, std::int64_t{1} << 33});
}

TEST_CASE("an iterator walks as a multi-pass iterator does") {
  const index_set s(6, {4, 5, 0});
  index_set::const_iterator it = s.begin();
  const index_set::const_iterator first = it++;
  CHECK(*first == 4);
  CHECK(*it == 5);
  CHECK(*++it == 0);
  CHECK(it != s.end());
  CHECK(++it == s.end());
  CHECK(*first == 4);
  CHECK(std::find(s.begin(), s.end(), 5) != s.end());
  CHECK(std::find(s.begin(), s.end(), 1) == s.end());
  CHECK(*std::ranges::max_element(s) == 5);
  static_assert(std::forward_iterator<index_set::const_iterator>);
}

TEST_CASE("an index set from runs is that of their nodes, in order") {
  using subfed::index_set;
  const auto s = index_set::from_runs(100, {{0, 40, 10}, {0, 50, 2}, {7, 3, 2}, {0, 0, 3}});
  CHECK(s == index_set(100, {40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 3, 4, 0, 1, 2}));
  CHECK(s.runs().size() == 3);
  CHECK(!s.is_ascending());
  CHECK(index_set::from_runs(0, {}) == index_set::full(0));
  CHECK(index_set::from_runs(5, {{0, 0, 2}, {0, 2, 3}}).is_full());
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK(index_set::from_runs(huge, {{0, 1, huge - 1}, {0, 0, 1}}).size() == huge);
}

TEST_CASE("an index set refuses runs that leave the group, are empty, or meet") {
  using subfed::index_set;
  const auto refused = [](std::int64_t extent, std::initializer_list<subfed::run> runs) {
    return support::message_of([&] { static_cast<void>(index_set::from_runs(extent, runs)); });
  };
  CHECK(refused(10, {{0, 8, 3}}) ==
        "subfed: index_set: a run of 3 nodes from 8 on is empty or leaves [0, 10)");
  CHECK(refused(10, {{0, 8, 0}}) ==
        "subfed: index_set: a run of 0 nodes from 8 on is empty or leaves [0, 10)");
  CHECK(refused(10, {{0, -1, 2}}) ==
        "subfed: index_set: a run of 2 nodes from -1 on is empty or leaves [0, 10)");
  CHECK(
      refused(10, {{0, 1, INT64_MAX}}) ==
      "subfed: index_set: a run of 9223372036854775807 nodes from 1 on is empty or leaves [0, 10)");
  CHECK(refused(10, {{0, 2, 3}, {0, 8, 2}, {0, 3, 2}}) ==
        "subfed: index_set: node 3 is repeated, at positions 1 and 5");
  CHECK(refused(10, {{0, 0, 6}, {0, 2, 5}}) ==
        "subfed: index_set: the runs have more nodes than the 10 of the group, so that one is "
        "repeated");
  CHECK(refused(-1, {}) == "subfed: index_set: the extent -1 is negative");
}
