// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/random_round.hpp>

#include <support/checks.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using subfed::kept_share;
using subfed::random_round;
using support::message_of;

TEST_CASE("a round has a client for each number of nodes, or clients that draw theirs") {
  const random_round fixed(8, {2, 4, 0});
  CHECK(fixed.extent() == 8);
  CHECK(fixed.is_fixed());
  REQUIRE(fixed.clients().size() == 3);
  CHECK(fixed.clients()[1].size() == 1);
  CHECK(fixed.clients()[1][0].kept == 4);
  CHECK(fixed.clients()[1][0].share == 1);

  const std::vector<kept_share> mix = {{1, 0.25}, {8, 0.75}, {3, 0}};
  const auto drawn = random_round::drawn(8, 5, mix);
  CHECK_FALSE(drawn.is_fixed());
  REQUIRE(drawn.clients().size() == 5);
  CHECK(drawn.clients()[4].size() == 2);  // a share of 0 is none
  CHECK(random_round::drawn(8, 5, {{3, 1}}).is_fixed());
  CHECK(random_round::drawn(8, 0, mix).clients().empty());
}

TEST_CASE("shares that add up to 1 but for rounding are divided by their sum") {
  const auto ten = random_round::drawn(4, 1, std::vector<kept_share>(10, {2, 0.1}));
  double sum = 0;
  for (const auto& each : ten.clients()[0]) sum += each.share;
  CHECK(sum == doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("extents, numbers of nodes and shares out of range are refused") {
  CHECK(message_of([] { random_round(0, {1}); }) ==
        "subfed: random_round: the extent is 0, expected 1 to 2^31 - 1");
  CHECK(message_of([] { random_round(std::int64_t{1} << 31, {1}); }) ==
        "subfed: random_round: the extent is 2147483648, expected 1 to 2^31 - 1");
  CHECK(message_of([] {
          random_round(8, {1, 9});
        }) == "subfed: random_round: a client keeps 9 nodes, expected 0 to 8");
  CHECK(message_of([] { random_round(8, {-1}); }) ==
        "subfed: random_round: a client keeps -1 nodes, expected 0 to 8");
  CHECK(message_of([] {
          random_round::drawn(8, -1, {{1, 1}});
        }) == "subfed: random_round: -1 clients, expected at least 0");
  CHECK(message_of([] {
          random_round::drawn(8, 1, {{1, 0.5}, {2, 0.25}});
        }) == "subfed: random_round: the shares of a client add up to 0.75, expected 1");
  CHECK(message_of([] { random_round::drawn(8, 1, {}); }) ==
        "subfed: random_round: the shares of a client add up to 0, expected 1");
  CHECK(message_of([] {
          random_round::drawn(8, 1, {{1, 1.5}, {2, -0.5}});
        }) == "subfed: random_round: a share is 1.5, expected 0 to 1");
  CHECK(message_of([] {
          random_round::drawn(8, 1, {{1, std::nan("")}});
        }) == "subfed: random_round: a share is NaN, expected 0 to 1");
}
