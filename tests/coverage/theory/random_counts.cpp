// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/random_counts.hpp>

#include <support/checks.hpp>
#include <support/close.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

using subfed::expected_counts;
using subfed::random_round;
using support::message_of;
using support::relative_error;

namespace {

struct golden_row {
  std::int64_t extent;
  std::vector<std::int64_t> kept;
  std::int64_t rounds;
  double mean;
  double variance;
  double unseen_share;
  double gini;
};
const golden_row golden[] = {
#include <golden/theory_counts.inc>
};

using counts_type = std::vector<std::int64_t>;

/// Calls f(counts) for every way in which the clients of some rounds can draw their sets.
template <class F>
void every_way(std::int64_t extent, const std::vector<std::int64_t>& draws, std::size_t at,
               counts_type& counts, const F& f) {
  if (at == draws.size()) return f(counts);
  for (std::uint32_t set = 0; set < 1u << extent; ++set) {
    if (std::popcount(set) != draws[at]) continue;
    for (std::size_t n = 0; n < counts.size(); ++n) counts[n] += set >> n & 1u;
    every_way(extent, draws, at + 1, counts, f);
    for (std::size_t n = 0; n < counts.size(); ++n) counts[n] -= set >> n & 1u;
  }
}

/// Means over all ways of what coverage_summary says of the counts, and of node 0's count.
struct brute_force {
  expected_counts expected = {};
  std::vector<double> held = {};

  brute_force(std::int64_t extent, const std::vector<std::int64_t>& draws)
      : held(draws.size() + 1, 0.0) {
    counts_type zero(static_cast<std::size_t>(extent), 0);
    double ways = 0;
    every_way(extent, draws, 0, zero, [&](const counts_type& counts) {
      ++ways;
      const auto K = static_cast<double>(extent);
      double total = 0;
      double square = 0;
      double apart = 0;
      for (const auto a : counts) {
        total += static_cast<double>(a);
        square += static_cast<double>(a * a);
        for (const auto b : counts) apart += static_cast<double>(std::max(a, b) - std::min(a, b));
      }
      expected.mean += total / K;
      expected.variance += square / K - total / K * (total / K);
      expected.unseen_share += static_cast<double>(std::count(counts.begin(), counts.end(), 0)) / K;
      expected.gini += total > 0 ? apart / (2 * K * total) : 0;
      ++held[static_cast<std::size_t>(counts[0])];
    });
    expected.mean /= ways;
    expected.variance /= ways;
    expected.unseen_share /= ways;
    expected.gini /= ways;
    for (double& each : held) each /= ways;
  }
};

}  // namespace

TEST_CASE("1 of 2 nodes for two rounds: counts are 2, 0 or 1, 1 equally often") {
  const random_round one_of_two(2, {1});
  const expected_counts after = subfed::random_counts(one_of_two, 2);
  CHECK(after.mean == doctest::Approx(1));
  CHECK(after.variance == doctest::Approx(0.5));
  CHECK(after.unseen_share == doctest::Approx(0.25));
  CHECK(after.gini == doctest::Approx(0.25));  // 1/2 or 0
  const auto held = subfed::held_probabilities(one_of_two, 2, 3);
  CHECK(held == std::vector<double>{0.25, 0.5, 0.25, 0});
}

TEST_CASE("expected counts agree with all ways to draw the sets") {
  const std::vector<std::vector<std::int64_t>> rounds = {{1}, {2}, {3}, {1, 2}, {0, 1}, {2, 2}};
  for (std::int64_t extent = 1; extent <= 4; ++extent) {
    for (const auto& kept : rounds) {
      if (*std::max_element(kept.begin(), kept.end()) > extent) continue;
      for (std::int64_t R = 0; R * static_cast<std::int64_t>(kept.size()) <= 4; ++R) {
        INFO("K = ", extent, ", L = ", kept[0], " of ", kept.size(), " clients, R = ", R);
        std::vector<std::int64_t> draws;
        for (std::int64_t j = 0; j < R; ++j) draws.insert(draws.end(), kept.begin(), kept.end());
        const brute_force all(extent, draws);
        const random_round round(extent, kept);
        const expected_counts found = subfed::random_counts(round, R);
        CHECK(found.mean == doctest::Approx(all.expected.mean).epsilon(1e-13));
        CHECK(std::fabs(found.variance - all.expected.variance) < 1e-13);
        CHECK(std::fabs(found.unseen_share - all.expected.unseen_share) < 1e-14);
        CHECK(std::fabs(found.gini - all.expected.gini) < 1e-13);
        CHECK(subfed::unseen_probability(round, R) == found.unseen_share);
        const auto most = static_cast<std::int64_t>(draws.size());
        const auto held = subfed::held_probabilities(round, R, most);
        for (std::size_t k = 0; k < all.held.size(); ++k) {
          CHECK(std::fabs(held[k] - all.held[k]) < 1e-14);
        }
      }
    }
  }
}

TEST_CASE("expected counts agree with fractions for wide groups and many rounds") {
  for (const golden_row& row : golden) {
    INFO("K = ", row.extent, ", L = ", row.kept[0], ", R = ", row.rounds);
    const auto found = subfed::random_counts(random_round(row.extent, row.kept), row.rounds);
    CHECK(relative_error(found.mean, row.mean) < 1e-12);
    CHECK(relative_error(found.variance, row.variance) < 1e-12);
    CHECK(relative_error(found.unseen_share, row.unseen_share) < 1e-12);
    CHECK(relative_error(found.gini, row.gini) < 1e-12);
  }
}

TEST_CASE("over very many rounds the Gini coefficient falls like that of normal counts") {
  // E|D| = sqrt(2 var D / pi) for a normal D, var D = 2 K / (K - 1) variance
  const auto found = subfed::random_counts(random_round(1000, {100}), 100000000);
  const double normal = std::sqrt(2 / 3.14159265358979 * 2 * 1000 / 999 * found.variance);
  CHECK(relative_error(found.gini, 999 * normal / (2 * 1000 * found.mean)) < 1e-6);
}

TEST_CASE("a client that draws its capacity holds a node as often as the mean share") {
  const auto drawn = random_round::drawn(10, 2, {{2, 0.5}, {4, 0.25}, {0, 0.25}});
  CHECK(subfed::unseen_probability(drawn, 3) == doctest::Approx(std::pow(0.8, 6)));
  CHECK(subfed::random_counts(drawn, 3).mean == doctest::Approx(1.2));
  // (2 8 / 2 + 4 6 / 4) / 100 a draw
  CHECK(subfed::random_counts(drawn, 3).variance == doctest::Approx(6 * 0.14));
  const auto held = subfed::held_probabilities(drawn, 3, 6);
  double binomial = std::pow(0.8, 6);
  for (std::size_t k = 0; k <= 6; ++k) {
    CHECK(held[k] == doctest::Approx(binomial).epsilon(1e-13));
    binomial *= static_cast<double>(6 - k) / static_cast<double>(k + 1) * 0.25;
  }
}

TEST_CASE("no rounds, no clients, and clients that hold everything") {
  CHECK(subfed::unseen_probability(random_round(3, {3}), 0) == 1);
  CHECK(subfed::unseen_probability(random_round(3, {1, 3}), 1) == 0);
  CHECK(subfed::unseen_probability(random_round(3, {}), 9) == 1);
  CHECK(subfed::random_counts(random_round(3, {3}), 5).gini == 0);
  CHECK(subfed::random_counts(random_round(3, {3}), 5).mean == 5);
  CHECK(subfed::random_counts(random_round(3, {}), 5).gini == 0);
  CHECK(subfed::held_probabilities(random_round(3, {}), 5, 0) == std::vector<double>{1});
  CHECK(subfed::unseen_probability(random_round(1000000000, {1}), 1) == 1 - 1e-9);
}

TEST_CASE("negative numbers of rounds and times are refused") {
  const random_round round(3, {1});
  CHECK(message_of([&] { subfed::unseen_probability(round, -1); }) ==
        "subfed: unseen_probability: -1 rounds, expected at least 0");
  CHECK(message_of([&] { subfed::random_counts(round, -2); }) ==
        "subfed: random_counts: -2 rounds, expected at least 0");
  CHECK(message_of([&] { subfed::held_probabilities(round, -3, 1); }) ==
        "subfed: held_probabilities: -3 rounds, expected at least 0");
  CHECK(message_of([&] { subfed::held_probabilities(round, 3, -1); }) ==
        "subfed: held_probabilities: up to -1 times, expected at least 0");
  CHECK(message_of([&] { subfed::held_probabilities(round, 3, std::int64_t{1} << 62); }) ==
        "subfed: 4611686018427387904 values of 8 bytes are more than this machine can address");
}
