// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/check_description.hpp>

#include <subfed/graph/derive_model.hpp>
#include <subfed/graph/network_graph.hpp>
#include <subfed/layers.hpp>
#include <subfed/model.hpp>

#include <string>

namespace {

using subfed::check_description;

/// A layer of 4 channels, a norm, a flatten of 2 x 2 positions, two more layers of 6 nodes.
subfed::network_graph checked_network() {
  subfed::network_graph g;
  const auto x = g.input("x", {1, 3, 2, 2});
  const auto c = g.apply("Conv", {x, g.parameter("conv.weight", {4, 3, 1, 1})});
  const auto n = g.apply("Mul", {c, g.parameter("scale", {4, 1, 1})});
  const auto layer = [&](std::size_t from, const std::string& name, std::int64_t in,
                         std::int64_t out) {
    return g.apply("Gemm", {from, g.parameter(name + ".weight", {out, in})}, {{"transB", {1}}});
  };
  const auto f = g.apply("Flatten", {n});
  g.output(layer(layer(layer(f, "fc1", 16, 6), "fc2", 6, 6), "fc3", 6, 2));
  return g;
}
struct described_network {
  subfed::model net{};
  subfed::group_id c = net.group("c", 4);
  subfed::group_id h1 = net.group("h1", 6);
  subfed::group_id h2 = net.group("h2", 6);
};

TEST_CASE("check_description: a description by hand, and the derived one") {
  described_network d;
  d.net.tensor("conv.weight", {d.c, 3, 1, 1});
  d.net.tensor("scale", {d.c, 1, 1});
  d.net.tensor("fc1.weight", {d.h1, d.c.block(4)});
  d.net.tensor("fc2.weight", {d.h2, d.h1});
  d.net.tensor("fc3.weight", {2, d.h2});
  const auto found = check_description(checked_network(), d.net);
  CHECK(found.is_right());
  CHECK(found.missing.empty());
  CHECK(found.unknown.empty());
  CHECK(
      check_description(checked_network(), subfed::derive_model(checked_network()).net).is_right());
}
TEST_CASE("check_description: cutting less, and tying more, are right") {
  described_network d;
  d.net.tensor("conv.weight", {4, 3, 1, 1});
  d.net.tensor("scale", {4, 1, 1});
  d.net.tensor("fc1.weight", {d.h1, 16});
  d.net.tensor("fc2.weight", {d.h1, d.h1});
  d.net.tensor("fc3.weight", {2, d.h1});
  CHECK(check_description(checked_network(), d.net).is_right());
}
TEST_CASE("check_description: a flatten in the wrong order, and whole in one place") {
  described_network d;
  d.net.tensor("conv.weight", {d.c, 3, 1, 1});
  d.net.tensor("scale", {d.c, 1, 1});
  d.net.tensor("fc1.weight", {d.h1, d.c.repeat(4)});
  d.net.tensor("fc2.weight", {d.h2, 6});
  d.net.tensor("fc3.weight", {2, d.h2});
  const auto found = check_description(checked_network(), d.net);
  REQUIRE(found.wrong.size() == 2);
  CHECK(found.wrong[0] ==
        "with dimension 1 of fc1.weight, the group 'c' cannot be cut: it is of positions");
  CHECK(found.wrong[1] ==
        "the group 'h1' cannot be cut: dimension 1 of fc2.weight is described as whole");
}
TEST_CASE("check_description: a group of another model is found without a run") {
  subfed::model other;
  other.group("a", 2);
  const auto foreign = other.group("b", 6);  // has the number of h1
  described_network d;
  d.net.tensor("conv.weight", {d.c, 3, 1, 1});
  d.net.tensor("scale", {d.c, 1, 1});
  d.net.tensor("fc1.weight", {d.h1, d.c.block(4)});
  d.net.tensor("fc2.weight", {d.h2, d.h1});
  d.net.tensor("fc3.weight", {2, foreign});
  const auto found = check_description(checked_network(), d.net);
  REQUIRE(found.wrong.size() == 1);
  CHECK(found.wrong[0] ==
        "with dimension 1 of fc3.weight, the group 'h1' and the group 'h2' are the same nodes");
}
TEST_CASE("check_description: an output that is cut, and tensors of one side alone") {
  described_network d;
  const auto classes = d.net.group("classes", 2);
  d.net.tensor("conv.weight", {d.c, 3, 1, 1});
  d.net.tensor("fc1.weight", {d.h1, d.c.block(4)});
  d.net.tensor("fc2.weight", {d.h2, d.h1});
  d.net.tensor("fc3.weight", {classes, d.h2});
  d.net.tensor("fc4.weight", {classes, d.h2});
  const auto found = check_description(checked_network(), d.net);
  REQUIRE(found.wrong.size() == 1);
  CHECK(found.wrong[0] ==
        "with dimension 0 of fc3.weight, the group 'classes' cannot be cut: it reaches the output "
        "''");
  CHECK(found.missing == std::vector<std::string>{"scale"});
  CHECK(found.unknown == std::vector<std::string>{"fc4.weight"});
}
TEST_CASE("check_description: equal parts that a client could not divide are wrong") {
  subfed::network_graph g;
  const auto layer = [&](std::size_t from, const std::string& name, std::int64_t in,
                         std::int64_t out) {
    return g.apply("Gemm", {from, g.parameter(name, {out, in})}, {{"transB", {1}}});
  };
  const auto h = layer(g.input("x", {1, 3}), "w1", 3, 16);
  const auto halves = g.apply("Split", {h}, {{"axis", {1}}}, 2);
  g.output(layer(halves, "w2", 8, 2));
  g.output(layer(halves + 1, "w3", 8, 2));
  // Half of the nodes of b beside all of a first half of 8: a client would divide its 12 nodes in the middle.
  for (const std::int64_t block : {0, 1, 2}) {
    subfed::model net;
    const auto b = net.group("b", 8);
    const subfed::dimension a =
        block == 0 ? subfed::dimension(8) : net.group("a", 8 / block).block(block);
    net.tensor("w1", {subfed::concat({a, b}), 3});
    net.tensor("w2", {2, a});
    net.tensor("w3", {2, b});
    const auto found = check_description(g, net);
    REQUIRE(found.is_right() == (block == 1));
    if (block == 1) continue;
    CHECK(
        found.wrong.front() ==
        "the group 'b' cannot be cut: it is divided in equal parts, which could not be cut alike");
  }
}
TEST_CASE("check_description: other shapes are wrong") {
  described_network d;
  d.net.tensor("fc2.weight", {d.h2, 5});
  const auto found = check_description(checked_network(), d.net);
  REQUIRE(found.wrong.size() == 1);
  CHECK(found.wrong[0] == "fc2.weight is (6, 5) in the description and (6, 6) in the network");
}
TEST_CASE("check_description: a group whose nodes are taken one by one") {
  subfed::network_graph g;
  const auto x = g.input("x", {1, 3});
  const auto w = g.parameter("w", {3, 2});
  const auto y = g.apply("Split", {g.apply("MatMul", {x, w})}, {{"axis", {1}}}, 2);
  g.output(g.apply("MatMul", {y, g.parameter("v", {1, 2})}));
  g.output(g.apply("MatMul", {y + 1, g.parameter("u", {1, 2})}));
  subfed::model net;
  net.tensor("w", {3, net.group("h", 2)});
  const auto found = check_description(g, net);
  REQUIRE(found.wrong.size() == 1);
  CHECK(found.wrong[0] ==
        "with dimension 1 of w, the group 'h' cannot be cut: it is of single elements");
}

}  // namespace
