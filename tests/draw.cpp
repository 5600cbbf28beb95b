// SPDX-License-Identifier: MIT
#include <subfed/draw.hpp>

#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::cut;
using subfed::draw;
using subfed::draw_request;
using subfed::index_set;
using support::message_of;

TEST_CASE("rolling, round 5 at half capacity: each group wraps by its own width") {
  subfed::model net;
  const auto four = net.group("four", 4);
  const auto six = net.group("six", 6);
  const auto sub = draw(net, subfed::rolling{}, {.round = 5, .capacity = 0.5});
  CHECK(sub[four] == index_set(4, {1, 2}));
  CHECK(sub[six] == index_set(6, {5, 0, 1}));
}

TEST_CASE("the scheme gets seed, round, client, group, extent and capacity") {
  subfed::model net;
  net.group("first", 3);
  net.group("second", 7);
  std::vector<draw_request> asked;
  const auto scheme = [&asked](const draw_request& where) {
    asked.push_back(where);
    return index_set::full(where.extent);
  };
  const subfed::draw_key key{.seed = 11, .round = 22, .client = 33, .capacity = 0.25};
  const auto sub = draw(net, scheme, key);
  REQUIRE(asked.size() == 2);
  for (const draw_request& where : asked) {
    CHECK(where.seed == 11);
    CHECK(where.round == 22);
    CHECK(where.client == 33);
    CHECK(where.capacity.value() == 0.25);
  }
  CHECK(asked[0].extent == 3);
  CHECK(asked[1].extent == 7);
  CHECK(asked[1].kept() == 1);
  CHECK(sub.origin() == key);
  CHECK(sub.parent() == net);
}

TEST_CASE("group names reach the scheme") {
  subfed::model net;
  const auto a = net.group("a", 4);
  const auto b = net.group("b", 4);
  const auto sub = draw(net,
                        [](const draw_request& where) {
                          return index_set(where.extent, {where.group == "a" ? 0 : 3});
                        },
                        {});
  CHECK(sub[a] == index_set(4, {0}));
  CHECK(sub[b] == index_set(4, {3}));
}

TEST_CASE("groups that are never cut are whole, and the scheme is not asked for them") {
  subfed::model net;
  const auto pixels = net.group("pixels", 5, cut::never);
  const auto hidden = net.group("hidden", 4);
  int calls = 0;
  const auto sub = draw(net,
                        [&calls](const draw_request& where) {
                          ++calls;
                          return index_set::prefix(where.extent, where.kept());
                        },
                        {.capacity = 0.5});
  CHECK(calls == 1);
  CHECK(sub[pixels] == index_set::full(5));
  CHECK(sub[hidden] == index_set(4, {0, 1}));
}

TEST_CASE("a tied group is asked for once, however many tensors use it") {
  subfed::model net;
  const auto g = net.group("g", 8);
  net.tensor("a", {g, g});
  net.tensor("b", {g.repeat(4), g.block(2)});
  int calls = 0;
  draw(net,
       [&calls](const draw_request& where) {
         ++calls;
         return index_set::full(where.extent);
       },
       {});
  CHECK(calls == 1);
}

TEST_CASE("a submodel is derived again from its origin, anywhere and in any order") {
  subfed::model net;
  const auto g = net.group("g", 64);
  const auto h = net.group("h", 64);
  std::vector<subfed::submodel> forward;
  for (std::uint64_t client = 0; client < 5; ++client) {
    forward.push_back(draw(net, subfed::random_subset{},
                           {.seed = 7, .round = 3, .client = client, .capacity = 0.5}));
  }
  for (std::size_t c = 5; c-- > 0;) {
    CHECK(draw(net, subfed::random_subset{}, forward[c].origin()).same_nodes(forward[c]));
  }
  CHECK_FALSE(forward[0].same_nodes(forward[1]));
  CHECK_FALSE(forward[0][g] == forward[0][h]);
  // A group declared later does not change the sets of the others.
  subfed::model longer = net;
  longer.group("i", 64);
  const auto again = draw(longer, subfed::random_subset{}, forward[2].origin());
  CHECK(again[g] == forward[2][g]);
  CHECK(again[h] == forward[2][h]);
}

TEST_CASE("a capacity so small that one node is left keeps one node of every group") {
  subfed::model net;
  const auto a = net.group("a", 1);
  const auto b = net.group("b", 300);
  const auto none = net.group("none", 0);
  const auto t = net.tensor("t", {a, b, 3});
  const auto sub = draw(net, subfed::prefix{}, {.capacity = 1e-9});
  CHECK(sub.extent(a) == 1);
  CHECK(sub.extent(b) == 1);
  CHECK(sub.extent(none) == 0);
  CHECK(sub.extents(t) == std::vector<std::int64_t>{1, 1, 3});
}

TEST_CASE("a model without groups has one submodel, itself") {
  subfed::model net;
  const auto t = net.tensor("t", {3});
  CHECK(draw(net, subfed::rolling{}, {.capacity = 0.1}).extents(t) == std::vector<std::int64_t>{3});
}

TEST_CASE("a scheme that gives a set of another extent is refused by the group's name") {
  subfed::model net;
  net.group("a", 3);
  CHECK(message_of([&] {
          draw(net, [](const draw_request&) { return index_set::full(5); }, {});
        }) == "subfed: draw: the scheme gave group 'a' a set of extent 5, expected 3");
}

TEST_CASE("what a scheme refuses comes through") {
  subfed::model net;
  net.group("a", 3);
  CHECK(message_of([&] {
          draw(net, [](const draw_request& where) { return index_set(where.extent, {0, 3}); }, {});
        }) == "subfed: index_set: node 3 at position 1 is outside [0, 3)");
}

TEST_CASE("a group may have a capacity of its own") {
  subfed::model net;
  const auto a = net.group("a", 8);
  const auto b = net.group("b", 8);
  const auto c = net.group("c", 8);
  const auto sub = draw(net, subfed::prefix{}, {.capacity = 0.25},
                        {{b, 0.5}, {c, subfed::capacity::ratio(1, 1)}});
  CHECK(sub.extent(a) == 2);
  CHECK(sub.extent(b) == 4);
  CHECK(sub.extent(c) == 8);
  // The others are as without the exceptions, also where sets are random.
  const auto with = draw(net, subfed::random_subset{}, {.seed = 3, .capacity = 0.5}, {{b, 0.25}});
  const auto without = draw(net, subfed::random_subset{}, {.seed = 3, .capacity = 0.5});
  CHECK(with[a] == without[a]);
  CHECK(with[c] == without[c]);
  CHECK(with.extent(b) == 2);
}

TEST_CASE(
    "a capacity of a group that is never cut, or a second one, is refused by the group's name") {
  subfed::model net;
  const auto a = net.group("a", 8);
  const auto pixels = net.group("pixels", 8, cut::never);
  CHECK(message_of([&] {
          draw(net, subfed::prefix{}, {}, {{pixels, 0.5}});
        }) == "subfed: draw: a capacity is given for group 'pixels', which is never cut");
  CHECK(message_of([&] {
          draw(net, subfed::prefix{}, {}, {{a, 0.5}, {a, 0.25}});
        }) == "subfed: draw: a capacity is given for group 'a', which has one already");
  CHECK(message_of([&] {
          draw(net, subfed::prefix{}, {}, {{subfed::group_id(7), 0.5}});
        }) == "subfed: model: group number 7 is not of this model, which has 2");
}
