// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/cover_bounds.hpp>

#include <subfed/coverage/theory/chosen_indices.hpp>
#include <support/checks.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

using subfed::first_cover;
using subfed::first_cover_bounds;
using subfed::random_round;
using support::message_of;

TEST_CASE("the exact distribution lies between the bounds, R by R") {
  struct setting {
    std::int64_t extent;
    std::vector<std::int64_t> kept;
    std::int64_t times;
  };
  for (const setting& s :
       {setting{1, {1}, 1}, setting{2, {1}, 2}, setting{5, {2}, 3}, setting{9, {4, 1, 0}, 2},
        setting{12, {12}, 2}, setting{12, {3}, 4}, setting{30, {7, 7}, 2}, setting{200, {20}, 1},
        setting{512, {32, 64, 256}, 1}, setting{40, {10}, 2}}) {
    INFO("K = ", s.extent, ", L = ", s.kept[0], ", times ", s.times);
    const random_round round(s.extent, s.kept);
    const auto exact = first_cover(round, s.times);
    const auto bounds = first_cover_bounds(round, s.times);
    const auto rounds = static_cast<std::int64_t>(bounds.upper.beyond.size());
    REQUIRE(bounds.lower.beyond.size() == bounds.upper.beyond.size());
    for (std::int64_t r = 0; r < rounds; ++r) {
      const double slack = 1e-12 * exact.after(r) + 1e-15;
      CHECK(bounds.lower.after(r) <= exact.after(r) + slack);
      CHECK(bounds.upper.after(r) >= exact.after(r) - slack);
    }
    CHECK(exact.after(rounds) < 1e-15);
    const double mean = exact.moments().mean;
    CHECK(bounds.mean_at_least <= mean * (1 + 1e-12));
    CHECK(bounds.mean_at_most >= mean * (1 - 1e-12));
  }
}

TEST_CASE("two nodes' counts are those over all pairs of sets, listed") {
  // Four nodes, two clients of two nodes each: 6 x 6 equally likely pairs of sets.
  std::vector<std::array<int, 4>> sets;
  for (int bits = 0; bits < 16; ++bits) {
    const std::array<int, 4> held{bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1};
    if (held[0] + held[1] + held[2] + held[3] == 2) sets.push_back(held);
  }
  REQUIRE(sets.size() == 6);
  for (const int times : {1, 2}) {
    double one = 0, two = 0;
    for (const auto& a : sets) {
      for (const auto& b : sets) {
        const bool first = a[0] + b[0] < times, second = a[1] + b[1] < times;
        one += first;
        two += first && second;
      }
    }
    subfed::detail::pair_counts counts(times);
    counts.act(4, 2);
    counts.act(4, 2);
    CHECK(counts.one() == doctest::Approx(one / 36).epsilon(1e-14));
    CHECK(counts.two() == doctest::Approx(two / 36).epsilon(1e-14));
  }
}

TEST_CASE("the bounds come together as groups get wider") {
  double before = 1;
  for (const std::int64_t extent : {16, 64, 256, 4096, 65536}) {
    const auto bounds = first_cover_bounds(random_round(extent, {extent / 4}));
    const double width = bounds.mean_at_most / bounds.mean_at_least - 1;
    CHECK(width < before / 2);
    CHECK(bounds.mean_at_most > bounds.mean_at_least);
    before = width;
  }
  CHECK(before < 2e-4);
}

TEST_CASE("bounds of many times hold the exact mean of one node a round") {
  for (const std::int64_t times : {2, 10, 30}) {
    INFO("times ", times);
    const auto bounds = first_cover_bounds(random_round(100, {1}), times);
    const double mean = subfed::rounds_until_chosen(100, times).mean;
    CHECK(bounds.mean_at_least <= mean);
    CHECK(bounds.mean_at_most >= mean);
    CHECK(bounds.mean_at_most < 1.1 * bounds.mean_at_least);
  }
}

TEST_CASE("drawn capacities and times out of range are refused") {
  CHECK(message_of([] {
          first_cover_bounds(random_round::drawn(8, 2, {{1, 0.5}, {2, 0.5}}));
        }) == "subfed: first_cover_bounds: a client's L is drawn, expected a fixed one");
  CHECK(message_of([] { first_cover_bounds(random_round(8, {1}), 1001); }) ==
        "subfed: first_cover_bounds: held 1001 times, expected at most 1000");
  CHECK(message_of([] { first_cover_bounds(random_round(8, {1}), 0); }) ==
        "subfed: first_cover_bounds: held 0 times, expected at least 1");
  CHECK(message_of([] { first_cover_bounds(random_round(8, {0})); }) ==
        "subfed: first_cover_bounds: no client keeps a node, so they are never covered");
}
