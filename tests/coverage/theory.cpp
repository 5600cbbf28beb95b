// SPDX-License-Identifier: MIT
// What clients of the library's own schemes hold, counted, against theory. Seeds are fixed, so a
// green test stays green; had they been drawn, one of the checks here would be red by chance with a
// probability below 1e-6: 6 distributions at 2e-8 each, 26 means at 6 standard errors, which a
// normal variable passes with 2e-9 and the skewest mean here with less than 2e-8.
#include <subfed/coverage/theory.hpp>

#include <subfed/philox.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>
#include <support/checks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::random_round;
using subfed::round_distribution;
using subfed::round_moments;

namespace {

using counts_type = std::vector<std::int64_t>;

void count(const index_set& s, counts_type& counts) {
  for (const std::int64_t n : s) ++counts[static_cast<std::size_t>(n)];
}

/// L of client c in round j of repetition `seed`, as the round says.
std::int64_t kept_by(const random_round& round, std::uint64_t seed, std::uint64_t j,
                     std::size_t c) {
  const auto& mix = round.clients()[c];
  double u = subfed::random_stream(seed, j, c, "capacity").next_unit();
  for (const auto& [kept, share] : mix) {
    if (u < share) return kept;
    u -= share;
  }
  return mix.back().kept;
}

/// One round of a scheme.
template <class Scheme>
void play(const Scheme& scheme, const random_round& round, std::uint64_t seed, std::uint64_t j,
          counts_type& counts) {
  for (std::size_t c = 0; c < round.clients().size(); ++c) {
    const std::int64_t kept = kept_by(round, seed, j, c);
    if (kept == 0) continue;
    count(scheme({.seed = seed,
                  .round = j,
                  .client = c,
                  .group = "g",
                  .extent = round.extent(),
                  .capacity = subfed::capacity::ratio(kept, round.extent())}),
          counts);
  }
}

/// First rounds after which every node was held `times` times, of many repetitions.
template <class Scheme>
std::vector<double> covers(const Scheme& scheme, const random_round& round, std::int64_t times,
                           std::uint64_t repetitions) {
  std::vector<double> out;
  for (std::uint64_t seed = 0; seed < repetitions; ++seed) {
    counts_type counts(static_cast<std::size_t>(round.extent()), 0);
    std::uint64_t j = 0;
    while (*std::min_element(counts.begin(), counts.end()) < times) {
      play(scheme, round, seed, j++, counts);
    }
    out.push_back(static_cast<double>(j));
  }
  return out;
}

/// 6 standard errors by the variance that theory gives.
void check_mean(const std::vector<double>& seen, const round_moments& expected) {
  double sum = 0;
  for (const double x : seen) sum += x;
  const auto n = static_cast<double>(seen.size());
  CHECK(std::fabs(sum / n - expected.mean) < 6 * std::sqrt(expected.variance / n) + 1e-12);
}

/// Dvoretzky, Kiefer, Wolfowitz and Massart: the largest distance of the distributions is over
/// sqrt(log(10^8) / (2 n)) with a probability below 2e-8, whatever the distribution.
void check_distribution(const std::vector<double>& seen, const round_distribution& expected) {
  const auto n = static_cast<double>(seen.size());
  double largest = 0;
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(expected.beyond.size()) + 2; ++r) {
    const auto beyond = std::count_if(seen.begin(), seen.end(),
                                      [r](double t) { return t > static_cast<double>(r); });
    const double distance = std::fabs(static_cast<double>(beyond) / n - expected.after(r));
    largest = std::max(largest, distance);
  }
  CHECK(largest < std::sqrt(std::log(1e8) / (2 * n)));
}

}  // namespace

TEST_CASE("random sets first cover all nodes when theory says, as a distribution") {
  struct setting {
    const char* what;
    random_round round;
    std::int64_t times;
  };
  const setting settings[] = {
      {"one client", random_round(24, {5}), 1},
      {"clients of mixed capacities", random_round(40, {2, 5, 20}), 1},
      {"capacities drawn anew, with dropout",
       random_round::drawn(16, 3, {{1, 0.5}, {8, 0.25}, {0, 0.25}}), 1},
      {"each node twice", random_round(12, {4}), 2},
      {"each node three times, drawn capacities", random_round::drawn(7, 2, {{2, 0.75}, {5, 0.25}}),
       3},
  };
  for (const setting& s : settings) {
    INFO(s.what);
    const auto expected = subfed::first_cover(s.round, s.times);
    const auto seen = covers(subfed::random_subset{}, s.round, s.times, 1500);
    check_distribution(seen, expected);
    check_mean(seen, expected.moments());
    if (s.times == 1) check_mean(seen, subfed::first_cover_moments(s.round));
  }
}

TEST_CASE("rolling windows of drawn capacities first cover all nodes when theory says") {
  const auto round = random_round::drawn(12, 2, {{1, 0.7}, {4, 0.2}, {9, 0.1}});
  const auto expected = subfed::rolling_first_cover(round);
  const auto seen = covers(subfed::rolling{}, round, 1, 1500);
  check_distribution(seen, expected);
  check_mean(seen, expected.moments());
}

TEST_CASE("submodels chosen one per round are all chosen when the lemmas say") {
  // An ensemble of I members of one node, one member a round.
  for (const std::int64_t times : {1, 4}) {
    const std::int64_t indices = 15;
    std::vector<double> seen;
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
      subfed::random_stream pick(seed, static_cast<std::uint64_t>(times), 0, "sub-model");
      counts_type counts(15, 0);
      std::int64_t rounds = 0;
      for (; *std::min_element(counts.begin(), counts.end()) < times; ++rounds) {
        count(subfed::simple_ensemble{}({.client = pick.below(15),
                                         .extent = indices,
                                         .capacity = subfed::capacity::ratio(1, indices)}),
              counts);
      }
      seen.push_back(static_cast<double>(rounds));
    }
    check_mean(seen, subfed::rounds_until_chosen(indices, times));
  }
}

TEST_CASE("counts of random sets are as uneven as theory says") {
  // Standard errors as estimated from the repetitions.
  const std::int64_t rounds = 12;
  for (const random_round& round : {random_round(30, {3}), random_round(50, {2, 6, 10}),
                                    random_round::drawn(20, 2, {{2, 0.5}, {10, 0.5}})}) {
    INFO("K = ", round.extent());
    const auto expected = subfed::random_counts(round, rounds);
    const auto held = subfed::held_probabilities(round, rounds, 2);
    std::vector<double> quantities[5];
    for (std::uint64_t seed = 0; seed < 800; ++seed) {
      counts_type counts(static_cast<std::size_t>(round.extent()), 0);
      for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(rounds); ++j) {
        play(subfed::random_subset{}, round, 1000 + seed, j, counts);
      }
      std::sort(counts.begin(), counts.end());
      const auto K = static_cast<double>(round.extent());
      double total = 0;
      double square = 0;
      double ranked = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const auto x = static_cast<double>(counts[i]);
        total += x;
        square += x * x;
        ranked += (2 * static_cast<double>(i) + 1 - K) * x;
      }
      quantities[0].push_back(total / K - expected.mean);
      quantities[1].push_back(square / K - total / K * (total / K) - expected.variance);
      const auto zeros = std::count(counts.begin(), counts.end(), 0);
      quantities[2].push_back(static_cast<double>(zeros) / K - expected.unseen_share);
      const auto twice = std::count(counts.begin(), counts.end(), 2);
      quantities[3].push_back(static_cast<double>(twice) / K - held[2]);
      // The Gini coefficient's numerator and denominator, where the latter varies too.
      quantities[4].push_back(ranked / K - expected.gini * total);
    }
    for (const auto& off : quantities) {
      INFO("quantity ", &off - quantities);
      double mean = 0;
      for (const double x : off) mean += x / 800;
      double variance = 0;
      for (const double x : off) variance += (x - mean) * (x - mean) / 799;
      CHECK(std::fabs(mean) < 6 * std::sqrt(variance / 800) + 1e-12);
    }
  }
}

TEST_CASE("rolling and static sets of mixed capacities hold every node as often as theory says") {
  const std::int64_t kept[] = {20, 10, 5, 3};
  const std::int64_t extent = 20;
  const auto site_of = [&](std::uint64_t j, std::uint64_t c) {
    return subfed::draw_request{.round = j,
                                .client = c,
                                .extent = extent,
                                .capacity = subfed::capacity::ratio(kept[c], extent)};
  };
  subfed::rolling backward = subfed::rolling::released();
  backward.step = 3;
  subfed::rolling spread;
  spread.client_phase = 7;
  spread.phase = 2;
  subfed::rolling overlapping;
  overlapping.window_overlap = 0.5;
  std::vector<subfed::held_window> windows[4];
  for (std::int64_t c = 0; c < 4; ++c) {
    windows[0].push_back({kept[c], -3, 0});
    windows[1].push_back({kept[c], 1, 2 + 7 * c});
    windows[2].push_back({kept[c], 1 + kept[c] / 2, 0});
    windows[3].push_back({kept[c], 0, 0});
  }
  for (const std::int64_t rounds : {0, 1, 7, 20, 33}) {
    counts_type counts[4];
    for (auto& each : counts) each.assign(extent, 0);
    for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(rounds); ++j) {
      for (std::uint64_t c = 0; c < 4; ++c) {
        count(backward(site_of(j, c)), counts[0]);
        count(spread(site_of(j, c)), counts[1]);
        count(overlapping(site_of(j, c)), counts[2]);
        count(subfed::prefix{}(site_of(j, c)), counts[3]);
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      INFO("scheme ", i, ", R = ", rounds);
      CHECK(subfed::window_counts(extent, windows[i], rounds) == counts[i]);
    }
  }
}
