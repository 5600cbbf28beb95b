// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/schemes/simple_ensemble.hpp>
#include <support/checks.hpp>
#include <support/spelled.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

using subfed::draw_request;
using subfed::index_set;
using subfed::simple_ensemble;
using support::message_of;

namespace {

struct golden_ensemble {
  std::uint64_t advance;
  draw_request where;
  std::string_view nodes;
};
constexpr golden_ensemble golden_ensembles[] = {
#include <golden/simple_ensemble.inc>
};

constexpr subfed::capacity third = subfed::capacity::ratio(1, 3);

}  // namespace

TEST_CASE("three members of an ensemble have a third of the nodes each") {
  CHECK(simple_ensemble{}({.client = 0, .extent = 6, .capacity = third}) == index_set(6, {0, 1}));
  CHECK(simple_ensemble{}({.client = 1, .extent = 6, .capacity = third}) == index_set(6, {2, 3}));
  CHECK(simple_ensemble{}({.client = 2, .extent = 6, .capacity = third}) == index_set(6, {4, 5}));
  CHECK(simple_ensemble{}({.client = 3, .extent = 6, .capacity = third}) == index_set(6, {0, 1}));
  CHECK(simple_ensemble{}({.round = 1, .client = 0, .extent = 6, .capacity = third}) ==
        index_set(6, {0, 1}));
  CHECK(simple_ensemble{.advance = 1}({.round = 1, .client = 0, .extent = 6, .capacity = third}) ==
        index_set(6, {2, 3}));
  CHECK(simple_ensemble{.advance = 2}({.round = 2, .client = 1, .extent = 6, .capacity = third}) ==
        index_set(6, {4, 5}));
  CHECK(simple_ensemble{}({.client = 9, .extent = 6}) == index_set::full(6));
  CHECK(simple_ensemble{}({.client = 9, .extent = 0, .capacity = third}) == index_set());
}

TEST_CASE("members agree with the golden values") {
  for (const golden_ensemble& row : golden_ensembles) {
    CAPTURE(row.advance);
    CAPTURE(row.where.round);
    CAPTURE(row.where.client);
    CHECK(support::spelled(simple_ensemble{.advance = row.advance}(row.where)) == row.nodes);
  }
}

TEST_CASE("as many clients in a row as there are members hold every node once, in any round") {
  support::for_all("simple ensemble", [] {
    const auto kept = *rc::gen::inRange<std::int64_t>(1, 8);
    const auto members = *rc::gen::inRange<std::int64_t>(1, 8);
    const auto first = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const simple_ensemble which{.advance = *rc::gen::inRange<std::uint64_t>(0, 20)};
    draw_request where{.round = *rc::gen::inRange<std::uint64_t>(0, 1000),
                       .extent = kept * members,
                       .capacity = subfed::capacity::ratio(1, members)};
    std::vector<int> held(static_cast<std::size_t>(kept * members), 0);
    for (std::uint64_t c = 0; c < static_cast<std::uint64_t>(members); ++c) {
      where.client = first + c;
      const index_set s = which(where);
      RC_ASSERT(s.size() == kept);
      RC_ASSERT(s.runs().size() == 1u);
      for (const std::int64_t node : s) ++held[static_cast<std::size_t>(node)];
    }
    for (const int n : held) RC_ASSERT(n == 1);
    // One client meets every member when its steps do not skip any.
    const simple_ensemble by_one{.advance = 1};
    std::fill(held.begin(), held.end(), 0);
    for (std::int64_t j = 0; j < members; ++j, ++where.round) {
      for (const std::int64_t node : by_one(where)) ++held[static_cast<std::size_t>(node)];
    }
    for (const int n : held) RC_ASSERT(n == 1);
  });
}

TEST_CASE("members that do not divide the group are refused by the group's name") {
  CHECK(
      message_of([] { simple_ensemble{}({.group = "hidden", .extent = 10, .capacity = third}); }) ==
      "subfed: simple_ensemble: group 'hidden' has 10 nodes, which members of 3 do not divide");
  CHECK(message_of([] {
          simple_ensemble{.minimum = 0}({.group = "hidden", .extent = 2, .capacity = third});
        }) ==
        "subfed: simple_ensemble: group 'hidden' has 2 nodes, which members of 0 do not divide");
}

TEST_CASE("members of groups beyond 2^32 nodes move on by what was asked for") {
  // Of 2^40 members: 2^39 + 3 a round, in round 5, is 5 * 2^39 + 15 = 2^39 + 15 mod 2^40.
  const std::int64_t members = std::int64_t{1} << 40;
  const draw_request where{.round = 5, .client = 2, .extent = members, .capacity = 1e-300};
  const index_set held = simple_ensemble{.advance = (std::uint64_t{1} << 39) + 3}(where);
  CHECK(held == index_set::window(members, (members / 2) + 17, 1));
  // The product of the step, -1 mod K, and of the round, -2, is 2; as a number it is beyond 2^64.
  const std::int64_t odd = 205891132094649;  // 3^30
  const auto K = static_cast<std::uint64_t>(odd);
  const draw_request far{.round = 5 * K - 2, .client = K + 1, .extent = odd, .capacity = 1e-300};
  CHECK(simple_ensemble{.advance = 7 * K - 1}(far) == index_set::window(odd, 3, 1));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();  // 2 most + 1
  CHECK(simple_ensemble{.advance = all}(
            {.round = all, .client = all, .extent = most, .capacity = 1e-300}) ==
        index_set::window(most, 2, 1));
}
