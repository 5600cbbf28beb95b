// SPDX-License-Identifier: MIT
#include <subfed/systems/nested.hpp>

#include <subfed/draw.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using support::message_of;

TEST_CASE("positions in the larger set: {4, 0, 1} inside of {3, 4, 0, 1}") {
  subfed::model net;
  const auto g = net.group("g", 5);
  const submodel held(net, {index_set(5, {3, 4, 0, 1})});
  const submodel smaller(net, {index_set(5, {4, 0, 1})}, {.seed = 1, .round = 2, .client = 3});
  const submodel inside = subfed::within(smaller, held);
  CHECK(inside[g] == index_set(4, {1, 2, 3}));
  CHECK(inside.origin() == smaller.origin());
  CHECK(inside.parent() == subfed::local_model(held));
  CHECK(subfed::within(held, held)[g].is_full());
}

TEST_CASE("the local model has the names, the couplings and the client's shapes") {
  subfed::model net;
  const auto h = net.group("h", 6);
  const auto whole = net.group("whole", 3, subfed::cut::never);
  net.tensor("w", {h.repeat(2), whole});
  net.tensor("v", {4, h.block(3)}, subfed::role::local);
  const auto held = subfed::draw(net, subfed::rolling{}, {.round = 5, .capacity = 0.5});
  const subfed::model local = subfed::local_model(held);
  CHECK(local.tensors()[0].role == subfed::role::parameter);
  CHECK(local.tensors()[1].role == subfed::role::local);
  REQUIRE(local.tensors().size() == 2);
  CHECK(local.tensors()[0].name == "w");
  CHECK(local.tensors()[0].extents == std::vector<std::int64_t>{6, 3});
  CHECK(local.tensors()[1].extents == std::vector<std::int64_t>{4, 9});
  CHECK(local.groups()[1].cut == subfed::cut::never);
}

TEST_CASE(
    "cutting the client's tensors gives what cutting the model gives, and so does putting back") {
  support::seeded random(3);
  int partial = 0;
  for (int trial = 0; trial < 60; ++trial) {
    subfed::model net;
    const std::int64_t extents[] = {random.between(1, 6), random.between(1, 5)};
    const auto a = net.group("a", extents[0]);
    const auto b = net.group("b", extents[1]);
    const auto w = net.tensor("w", {a.repeat(2), subfed::concat({b.block(2), 1})});
    std::vector<index_set> outer, inner;
    std::vector<std::vector<std::int64_t>> inner_nodes;
    for (const std::int64_t extent : extents) {
      const auto nodes = support::random_nodes(random, extent);
      std::vector<std::int64_t> some;
      for (const std::int64_t node : nodes) {
        if (random.one_in(2)) some.push_back(node);
      }
      random.shuffle(some);
      if (!some.empty() && some.size() < nodes.size()) ++partial;
      outer.emplace_back(extent, nodes);
      inner.emplace_back(extent, some);
      inner_nodes.push_back(some);
    }
    const submodel held(net, outer);
    submodel smaller(net, inner);
    if (random.one_in(3)) {
      std::vector<std::int64_t> keep;
      for (const std::int64_t node : inner_nodes[0]) {
        if (random.one_in(2)) keep.push_back(node);
      }
      smaller = smaller.restricted(a, index_set(extents[0], keep));
    }
    const submodel inside = subfed::within(smaller, held);

    const auto global_shape = net[w].extents;
    support::strided<int> global(support::row_major(global_shape));
    global.fill([](std::int64_t n) { return static_cast<int>(n) + 1; });
    support::strided<int> own(support::row_major(held.extents(w)));
    own.fill([](std::int64_t) { return 0; });
    subfed::slice(global.view(), held[w], own.view());
    support::strided<int> direct(support::row_major(smaller.extents(w)));
    direct.fill([](std::int64_t) { return -1; });
    support::strided<int> nested = direct;
    subfed::slice(global.view(), smaller[w], direct.view());
    CHECK(inside.extents(w) == smaller.extents(w));
    subfed::slice(own.view(), inside[w], nested.view());
    CHECK(nested.elements() == direct.elements());

    // Put back: through the client's tensors, and directly.
    nested.fill([](std::int64_t n) { return -2 - static_cast<int>(n); });
    support::strided<int> through = global;
    subfed::scatter(nested.view(), inside[w], own.view());
    subfed::scatter(own.view(), held[w], through.view());
    subfed::scatter(nested.view(), smaller[w], global.view());
    CHECK(through.elements() == global.elements());
  }
  CHECK(partial > 20);
}

TEST_CASE("a node that the larger submodel lacks is named") {
  subfed::model net;
  net.group("first", 2);
  net.group("g", 5);
  const submodel held(net, {index_set::full(2), index_set(5, {3, 4})});
  const submodel other(net, {index_set::full(2), index_set(5, {4, 1})});
  CHECK(message_of([&] { subfed::within(other, held); }) ==
        "subfed: within: node 1 of group 'g' is not held by the larger submodel");
  subfed::model different;
  CHECK(message_of([&] { subfed::within(submodel::full(different), held); }) ==
        "subfed: within: the two submodels are of different models");
}
