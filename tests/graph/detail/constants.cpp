// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/detail/constants.hpp>

#include <subfed/graph/detail/rules.hpp>
#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using subfed::network_graph;
using numbers = std::vector<double>;
using extent_list = std::vector<std::int64_t>;

/// A graph whose operators read constants alone.
struct of_constants {
  network_graph g{};

  std::size_t reals(numbers elements, extent_list extents) {
    subfed::graph_value made{"", subfed::value_kind::constant, true, std::move(extents)};
    made.elements = std::move(elements);
    g.values.push_back(std::move(made));
    return g.values.size() - 1;
  }
  /// What the last operator computes. Pre: it has been evaluated.
  subfed::detail::traced_value last() const {
    subfed::detail::graph_walk walk(g);
    subfed::detail::walk_through(walk);
    return walk.values[g.nodes.back().outputs[0]];
  }
};

TEST_CASE("constants: what becomes a truth value is 0 or 1") {
  of_constants c;
  c.g.apply("Cast", {c.reals({0.5, 0, -2, 1}, {4})}, {{"to", {9}}});
  CHECK(c.last().elements == numbers{1, 0, 1, 1});
  c.g.apply("Cast", {c.reals({0.5, -2.5}, {2})}, {{"to", {7}}});
  CHECK(c.last().elements == numbers{0, -2});
}

TEST_CASE("constants: the remainder has the sign of the divisor, or as in C") {
  for (const std::int64_t fmod : {0, 1}) {
    of_constants c;
    c.g.apply("Mod", {c.g.integers({7, -7, 7, -7}), c.g.integers({3, 3, -3, -3})},
              {{"fmod", {fmod}}});
    CHECK(c.last().elements == (fmod != 0 ? numbers{1, -1, 1, -1} : numbers{1, 2, -2, -1}));
  }
}

TEST_CASE("constants: a reduction over no axes keeps its input, if it is told so") {
  for (const std::int64_t keeps : {0, 1}) {
    of_constants c;
    c.g.apply("ReduceSum", {c.g.integers({2, 3})}, {{"noop_with_empty_axes", {keeps}}});
    if (keeps == 0) CHECK(c.last().elements == numbers{5});
    if (keeps != 0) CHECK(c.last().extents == extent_list{2});
    CHECK(c.last().is_constant == (keeps == 0));
    c.g.apply("ReduceSum", {c.g.integers({2, 3}), c.g.integers({0})},
              {{"noop_with_empty_axes", {keeps}}});
    CHECK(c.last().elements == numbers{5});
  }
}

TEST_CASE("constants: a slice with a negative step begins at an element") {
  constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
  for (const auto& [begin, end, expected] :
       {std::tuple<std::int64_t, std::int64_t, numbers>{-9, -most, {4}},
        {-3, -most, {4}},
        {-2, -most, {5, 4}},
        {most, -most, {6, 5, 4}},
        {-1, 0, {6, 5}},
        {-9, 0, {}}}) {
    of_constants c;
    c.g.apply("Slice", {c.g.integers({4, 5, 6}), c.g.integers({begin}), c.g.integers({end}),
                        c.g.integers({0}), c.g.integers({-1})});
    CHECK(c.last().elements == expected);
    CHECK(c.last().extents == extent_list{static_cast<std::int64_t>(expected.size())});
  }
}

TEST_CASE("constants: a choice has the rank of the three that it is made of") {
  const auto chosen = [](extent_list condition, extent_list first, extent_list second) {
    of_constants c;
    c.g.apply("Where", {c.reals({1}, std::move(condition)), c.reals({7}, std::move(first)),
                        c.reals({8}, std::move(second))});
    CHECK(c.last().elements == numbers{7});
    return c.last().extents;
  };
  CHECK(chosen({}, {}, {}) == extent_list{});
  CHECK(chosen({1}, {}, {}) == extent_list{1});
  CHECK(chosen({}, {1}, {}) == extent_list{1});
  CHECK(chosen({}, {}, {1}) == extent_list{1});
  of_constants rows;
  rows.g.apply("Where", {rows.g.integers({1, 0}), rows.g.integers({7}), rows.g.integers({8})});
  CHECK(rows.last().elements == numbers{7, 8});
  CHECK(rows.last().extents == extent_list{2});
}

}  // namespace
