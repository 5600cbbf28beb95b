// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/network_graph.hpp>

#include <support/checks.hpp>

namespace {

using subfed::network_graph;

TEST_CASE("network_graph: values have the numbers that are returned") {
  network_graph g;
  const auto x = g.input("x", {2, 6});
  const auto first = g.apply("Split", {x}, {{"axis", {1}}}, 2);
  CHECK(g.values[x].extents == std::vector<std::int64_t>{2, 6});
  CHECK(g.nodes[0].outputs == std::vector<std::size_t>{first, first + 1});
  CHECK(g.nodes[0].integer("axis", 0) == 1);
  CHECK(g.nodes[0].integer("num_outputs", 7) == 7);
  g.output(first);
  g.check();
}
TEST_CASE("network_graph: an order that cannot be computed is refused") {
  network_graph g;
  const auto x = g.input("x", {2});
  const auto y = g.apply("Relu", {x});
  const auto z = g.apply("Relu", {y});
  g.values[z].name = "z";
  CHECK(support::message_of([&] {
          network_graph turned = g;
          std::swap(turned.nodes[0].inputs, turned.nodes[1].inputs);
          turned.nodes[0].inputs = {z};
          turned.check();
        }) == "subfed: graph: an operator Relu reads 'z', which nothing before it computes");
  CHECK(support::message_of([&] {
          network_graph twice = g;
          twice.nodes.push_back(twice.nodes[1]);
          twice.check();
        }) == "subfed: graph: an operator Relu computes 'z', which is there before it");
  CHECK(support::message_of([&] {
          network_graph none = g;
          none.nodes[0].inputs = {99};
          none.check();
        }) == "subfed: graph: an operator Relu uses a value that is not there");
  CHECK(support::message_of([&] {
          network_graph none = g;
          none.output(99);
          none.check();
        }) == "subfed: graph: an output of the network is not computed");
}
TEST_CASE("network_graph: shapes that are none are refused") {
  network_graph g;
  g.parameter("w", {std::int64_t{1} << 40, std::int64_t{1} << 40});
  CHECK(support::message_of([&] { g.check(); }) ==
        "subfed: graph: the value 'w' has the shape (1099511627776, 1099511627776), which is "
        "negative "
        "or of more than 2^63 - 1 elements");
}
TEST_CASE("network_graph: a constant of no integers") {
  network_graph g;
  const auto none = g.integers({});
  CHECK(g.values[none].extents == std::vector<std::int64_t>{0});
  CHECK(g.values[none].is_uniform);
  CHECK_FALSE(g.values[g.integers({1, 2})].is_uniform);
  CHECK(g.values[g.integers({2, 2})].is_uniform);
}

}  // namespace
