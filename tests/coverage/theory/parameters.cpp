// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/parameters.hpp>

#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/close.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

using subfed::random_round;
using subfed::rolling_parameter_counts;
using subfed::unseen_parameter_probability;
using support::message_of;

TEST_CASE("two layers of 8 nodes, windows of 2: three of eight diagonals are held at all") {
  CHECK(rolling_parameter_counts(8, 2, 8, 2) == std::vector<std::int64_t>{2, 1, 0, 0, 0, 0, 0, 1});
  CHECK(rolling_parameter_counts(4, 2, 6, 3) == std::vector<std::int64_t>{3, 3});
  CHECK(rolling_parameter_counts(5, 5, 3, 1) == std::vector<std::int64_t>{5});
}

TEST_CASE("parameters between rolling windows are held as the scheme does, round by round") {
  for (std::int64_t extent1 = 1; extent1 <= 8; ++extent1) {
    for (std::int64_t extent2 = 1; extent2 <= 8; ++extent2) {
      const std::int64_t rounds = std::lcm(extent1, extent2);
      const std::int64_t g = std::gcd(extent1, extent2);
      for (std::int64_t kept1 = 1; kept1 <= extent1; ++kept1) {
        for (std::int64_t kept2 = 1; kept2 <= extent2; kept2 += 2) {
          INFO(kept1, " of ", extent1, " and ", kept2, " of ", extent2);
          std::int64_t counts[8][8] = {};
          for (std::int64_t j = 0; j < rounds; ++j) {
            const auto set = [&](std::int64_t extent, std::int64_t kept) {
              return subfed::rolling{}({.round = static_cast<std::uint64_t>(j),
                                        .extent = extent,
                                        .capacity = subfed::capacity::ratio(kept, extent)});
            };
            const auto second = set(extent2, kept2);
            for (const auto i : set(extent1, kept1)) {
              for (const auto k : second) ++counts[i][k];
            }
          }
          const auto found = rolling_parameter_counts(extent1, kept1, extent2, kept2);
          REQUIRE(static_cast<std::int64_t>(found.size()) == g);
          bool same = true;
          for (std::int64_t i = 0; i < extent1; ++i) {
            for (std::int64_t k = 0; k < extent2; ++k) {
              const auto d = static_cast<std::size_t>(((i - k) % g + g) % g);
              same = same && counts[i][k] == found[d];
            }
          }
          CHECK(same);
        }
      }
    }
  }
  CHECK(rolling_parameter_counts(4, 0, 4, 3) == std::vector<std::int64_t>(4, 0));
}

TEST_CASE("P(a parameter unseen) agrees with all pairs of sets") {
  for (std::int64_t kept1 = 0; kept1 <= 3; ++kept1) {
    for (std::int64_t kept2 = 0; kept2 <= 4; ++kept2) {
      double sets = 0;
      double unseen = 0;
      for (unsigned a = 0; a < 8; ++a) {
        for (unsigned b = 0; b < 16; ++b) {
          if (std::popcount(a) != kept1 || std::popcount(b) != kept2) continue;
          ++sets;
          unseen += (a & 1) == 0 || (b & 2) == 0 ? 1 : 0;
        }
      }
      const std::vector<random_round> both = {random_round(3, {kept1}), random_round(4, {kept2})};
      for (const std::int64_t rounds : {0, 1, 7}) {
        const double expected = std::pow(unseen / sets, static_cast<double>(rounds));
        CHECK(support::relative_error(unseen_parameter_probability(both, rounds), expected) <
              1e-13);
      }
    }
  }
  // A client is large or small in both groups at once: 1 - (1/2 1 + 1/2 1/16).
  const std::vector<random_round> drawn = {random_round::drawn(8, 1, {{8, 0.5}, {2, 0.5}}),
                                           random_round::drawn(4, 1, {{4, 0.5}, {1, 0.5}})};
  CHECK(unseen_parameter_probability(drawn, 1) == doctest::Approx(15.0 / 32));
  const std::vector<random_round> one = {random_round(8, {2, 3})};
  CHECK(unseen_parameter_probability(one, 5) ==
        doctest::Approx(subfed::unseen_probability(one[0], 5)).epsilon(1e-13));
}

TEST_CASE("parameters that all clients hold are never unseen, whatever shares are rounded to") {
  const std::vector<subfed::kept_share> shares(9, {.kept = 4, .share = 1.0 / 9});
  const std::vector<random_round> whole(2, random_round::drawn(4, 3, shares));
  CHECK(unseen_parameter_probability(whole, 1) == 0);
  const auto K = static_cast<double>(INT32_MAX);
  const std::vector<random_round> nearly(2, random_round(INT32_MAX, {INT32_MAX - 1}));
  const double one_missing = 2 / K - 1 / (K * K);
  CHECK(support::relative_error(unseen_parameter_probability(nearly, 1), one_missing) < 1e-14);
  const std::vector<random_round> nothing(2, random_round(4, {0, 0}));
  CHECK(unseen_parameter_probability(nothing, std::int64_t{1} << 60) == 1);
}

TEST_CASE("windows out of range and dimensions of different clients are refused") {
  CHECK(message_of([] { rolling_parameter_counts(4, 2, 0, 0); }) ==
        "subfed: rolling_parameter_counts: a window of 0 of 0 nodes, expected 0 <= L <= K < 2^31, "
        "K >= 1");
  CHECK(message_of([] { rolling_parameter_counts(4, 5, 4, 1); }) ==
        "subfed: rolling_parameter_counts: a window of 5 of 4 nodes, expected 0 <= L <= K < 2^31, "
        "K >= 1");
  CHECK(message_of([] { unseen_parameter_probability({}, 1); }) ==
        "subfed: unseen_parameter_probability: no dimensions, expected at least 1");
  const std::vector<random_round> fewer = {random_round(4, {1, 1}), random_round(4, {1})};
  const std::vector<random_round> other = {random_round::drawn(4, 1, {{1, 0.5}, {2, 0.5}}),
                                           random_round::drawn(4, 1, {{1, 0.25}, {2, 0.75}})};
  for (const auto& different : {fewer, other}) {
    CHECK(message_of([&] { unseen_parameter_probability(different, 1); }) ==
          "subfed: unseen_parameter_probability: dimensions with different clients or shares, "
          "expected the same ones");
  }
  CHECK(message_of([&] { unseen_parameter_probability(fewer, -1); }) ==
        "subfed: unseen_parameter_probability: -1 rounds, expected at least 0");
}
