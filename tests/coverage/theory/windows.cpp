// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/windows.hpp>

#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/close.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

using subfed::held_window;
using subfed::random_round;
using subfed::window_counts;
using subfed::window_first_cover;
using support::message_of;
using counts_type = std::vector<std::int64_t>;

namespace {

/// Counts what the scheme itself holds, round by round.
void walk(std::int64_t extent, const held_window& w, std::int64_t rounds, counts_type& counts) {
  if (w.kept == 0) return;
  const subfed::rolling scheme{.step = w.step, .phase = w.phase};
  for (std::int64_t j = 0; j < rounds; ++j) {
    const auto set = scheme({.round = static_cast<std::uint64_t>(j),
                             .extent = extent,
                             .capacity = subfed::capacity::ratio(w.kept, extent)});
    for (const std::int64_t n : set) ++counts[static_cast<std::size_t>(n)];
  }
}

counts_type walked(std::int64_t extent, const std::vector<held_window>& windows,
                   std::int64_t rounds) {
  counts_type counts(static_cast<std::size_t>(extent), 0);
  for (const held_window& w : windows) walk(extent, w, rounds, counts);
  return counts;
}

}  // namespace

TEST_CASE("rolling 3 of 8 nodes: counts after 5 and 8 rounds, first cover after 6") {
  const std::vector<held_window> w = {{3}};
  CHECK(window_counts(8, w, 5) == counts_type{1, 2, 3, 3, 3, 2, 1, 0});
  CHECK(window_counts(8, w, 8) == counts_type(8, 3));
  CHECK(window_first_cover(8, w) == std::optional<std::int64_t>(6));
  CHECK(window_first_cover(8, w, 3) == std::optional<std::int64_t>(8));
  CHECK(window_counts(8, w, 8'000'000'000'005) ==
        counts_type{3'000'000'000'001, 3'000'000'000'002, 3'000'000'000'003, 3'000'000'000'003,
                    3'000'000'000'003, 3'000'000'000'002, 3'000'000'000'001, 3'000'000'000'000});
}

TEST_CASE("one window of step 1: covered after K - L + 1 rounds, each held L times in K") {
  for (std::int64_t extent = 1; extent <= 12; ++extent) {
    for (std::int64_t kept = 1; kept <= extent; ++kept) {
      for (const std::int64_t step : {1, -1}) {
        const std::vector<held_window> w = {{kept, step, 5}};
        CHECK(window_first_cover(extent, w) == std::optional<std::int64_t>(extent - kept + 1));
        CHECK(window_counts(extent, w, extent) ==
              counts_type(static_cast<std::size_t>(extent), kept));
      }
    }
  }
}

TEST_CASE("static sets of mixed capacities hold the first nodes alone") {
  const std::vector<held_window> w = {{2, 0}, {4, 0}, {2, 0}};
  CHECK(window_counts(6, w, 10) == counts_type{30, 30, 10, 10, 0, 0});
  CHECK(window_first_cover(6, w) == std::nullopt);
  CHECK(window_first_cover(4, w) == std::optional<std::int64_t>(1));
  CHECK(window_first_cover(4, w, 7) == std::optional<std::int64_t>(7));
}

TEST_CASE("as many rounds as 63 bits hold: no sum on the way is over them") {
  // Red with the sanitizers where a start is added before another is taken away.
  const auto held = [](std::int64_t kept, std::int64_t step) {
    return window_counts(5, std::vector<held_window>{{.kept = kept, .step = step}}, INT64_MAX);
  };
  CHECK(held(5, 2) == counts_type(5, INT64_MAX));
  CHECK(held(5, 0) == counts_type(5, INT64_MAX));
  CHECK(held(0, 0) == counts_type(5, 0));
}

TEST_CASE("counts and first cover agree with the scheme walked round by round") {
  support::for_all("windows", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(1, 14);
    std::vector<held_window> windows;
    for (auto n = *rc::gen::inRange(0, 4); n > 0; --n) {
      windows.push_back({*rc::gen::inRange<std::int64_t>(0, extent + 1),
                         *rc::gen::inRange<std::int64_t>(-20, 21),
                         *rc::gen::inRange<std::int64_t>(-20, 21)});
    }
    const auto times = *rc::gen::inRange<std::int64_t>(1, 4);
    std::optional<std::int64_t> cover;
    for (std::int64_t rounds = 0; rounds <= 3 * extent && !cover; ++rounds) {
      const auto expected = walked(extent, windows, rounds);
      RC_ASSERT(window_counts(extent, windows, rounds) == expected);
      if (*std::min_element(expected.begin(), expected.end()) >= times) cover = rounds;
    }
    RC_ASSERT(window_first_cover(extent, windows, times) == cover);
  });
}

TEST_CASE("P(unseen) with drawn lengths agrees with all draws") {
  const std::int64_t extent = 6;
  const std::vector<subfed::kept_share> mix = {{1, 0.5}, {4, 0.25}, {0, 0.125}, {6, 0.125}};
  const auto round = random_round::drawn(extent, 2, mix);
  for (const std::int64_t step : {0, 1, 2, 5, -1}) {
    for (std::int64_t rounds = 0; rounds <= 3; ++rounds) {
      std::vector<double> expected(6, 0.0);
      const std::int64_t draws = 2 * rounds;
      for (std::int64_t way = 0; way < std::int64_t{1} << (2 * draws); ++way) {
        double p = 1;
        counts_type counts(6, 0);
        for (std::int64_t d = 0; d < draws; ++d) {
          const auto& [kept, share] = mix[static_cast<std::size_t>(way >> (2 * d) & 3)];
          p *= share;
          const std::int64_t j = d / 2;
          walk(extent, {kept, 0, j * step}, 1, counts);
        }
        for (std::size_t n = 0; n < 6; ++n) expected[n] += counts[n] == 0 ? p : 0;
      }
      const auto found = subfed::window_unseen_probabilities(round, step, rounds);
      for (std::size_t n = 0; n < 6; ++n) {
        INFO("step ", step, ", R = ", rounds, ", node ", n);
        CHECK(std::fabs(found[n] - expected[n]) < 1e-14);
      }
    }
  }
  // Full periods and a rest: as many factors as rounds.
  const auto long_run = subfed::window_unseen_probabilities(round, 4, 20);
  for (std::int64_t n = 0; n < 6; ++n) {
    double expected = 1;
    for (std::int64_t j = 0; j < 20; ++j) {
      const std::int64_t d = ((n - 4 * j) % 6 + 6) % 6;
      double missed = 0.125;
      if (d >= 1) missed += 0.5;
      if (d >= 4) missed += 0.25;
      expected *= missed * missed;
    }
    CHECK(support::relative_error(long_run[static_cast<std::size_t>(n)], expected) < 1e-13);
  }
}

TEST_CASE(
    "what cannot happen has probability 0 and what must happen 1, after any number of rounds") {
  // The three shares add up to 1 + 2^-52.
  const auto round = random_round::drawn(32, 1, {{3, 1.0 / 3}, {15, 0.1}, {11, 1 - 1.0 / 3 - 0.1}});
  for (const std::int64_t rounds : {std::int64_t{40}, std::int64_t{1} << 59}) {
    const auto found = subfed::window_unseen_probabilities(round, -16, rounds);
    for (std::size_t n = 0; n < 32; ++n) {
      INFO("node ", n, " after ", rounds, " rounds");
      if (n % 16 == 15) {
        CHECK(found[n] == 1);
      } else if (n % 16 < 3) {
        CHECK(found[n] == 0);
      } else {
        CHECK(found[n] < 0.13);
      }
    }
  }
  const double rare = 0x1p-40;
  const auto seldom = random_round::drawn(8, 1, {{2, 1 - rare}, {6, rare}});
  const auto found = subfed::window_unseen_probabilities(seldom, 0, std::int64_t{1} << 40);
  CHECK(found[1] == 0);
  CHECK(found[4] == doctest::Approx(std::exp(-1.0)).epsilon(1e-11));
  CHECK(found[7] == 1);

  const std::vector<subfed::kept_share> shares(9, {.kept = 3, .share = 1.0 / 9});
  const auto cover = subfed::rolling_first_cover(random_round::drawn(9, 2, shares));
  CHECK(cover.beyond == std::vector<double>(7, 1.0));
}

TEST_CASE("the first cover by rolling windows of drawn lengths agrees with all draws") {
  const std::int64_t extent = 5;
  const std::vector<subfed::kept_share> mix = {{1, 0.5}, {3, 0.25}, {4, 0.25}};
  const auto t = subfed::rolling_first_cover(random_round::drawn(extent, 1, mix));
  std::vector<double> beyond(7, 0.0);
  for (std::int64_t way = 0; way < 3 * 3 * 3 * 3 * 3 * 3; ++way) {
    double p = 1;
    counts_type counts(5, 0);
    std::int64_t rest = way;
    for (std::size_t j = 0; j < 6; ++j, rest /= 3) {
      if (*std::min_element(counts.begin(), counts.end()) == 0) {
        // summed over what comes later, p is the probability of the draws so far
        double later = 1;
        for (std::size_t l = j; l < 6; ++l) later *= 1.0 / 3;
        beyond[j] += p * later;
      }
      const auto& [kept, share] = mix[static_cast<std::size_t>(rest % 3)];
      p *= share;
      walk(extent, {kept, 0, static_cast<std::int64_t>(j)}, 1, counts);
    }
  }
  for (std::int64_t r = 0; r < 6; ++r) {
    CHECK(std::fabs(t.after(r) - beyond[static_cast<std::size_t>(r)]) < 1e-13);
  }
  const auto fixed = subfed::rolling_first_cover(random_round(8, {3, 2}));
  CHECK(fixed.quantile(1) == 6);
  CHECK(fixed.moments().mean == 6);
  CHECK(subfed::rolling_first_cover(random_round(8, {8})).moments().mean == 1);
}

TEST_CASE("extents, lengths, rounds and times out of range are refused") {
  CHECK(message_of([] { window_counts(0, {}, 1); }) ==
        "subfed: window_counts: the extent is 0, expected 1 to 2^31 - 1");
  const std::vector<held_window> wide = {{2}, {5}};
  CHECK(message_of([&] { window_counts(4, wide, 1); }) ==
        "subfed: window_counts: a window keeps 5 nodes, expected 0 to 4");
  CHECK(message_of([&] { window_first_cover(4, wide); }) ==
        "subfed: window_first_cover: a window keeps 5 nodes, expected 0 to 4");
  CHECK(message_of([&] { window_counts(5, wide, -1); }) ==
        "subfed: window_counts: -1 rounds, expected at least 0");
  CHECK(message_of([&] { window_counts(5, wide, INT64_MAX); }) ==
        "subfed: window_counts: 9223372036854775807 rounds of 2 windows are over 2^63 - 1");
  CHECK(message_of([&] { window_first_cover(5, wide, 0); }) ==
        "subfed: window_first_cover: held 0 times, expected 1 to 2^62 / K");
  CHECK(message_of([&] { window_first_cover(5, wide, INT64_MAX); }) ==
        "subfed: window_first_cover: held 9223372036854775807 times, expected 1 to 2^62 / K");
  CHECK(message_of([] { subfed::window_unseen_probabilities(random_round(5, {1}), 1, -1); }) ==
        "subfed: window_unseen_probabilities: -1 rounds, expected at least 0");
  CHECK(message_of([] {
          subfed::rolling_first_cover(random_round::drawn(5, 3, {{0, 0.5}, {2, 0.5}}));
        }) ==
        "subfed: rolling_first_cover: there may be rounds in which no client keeps a node, "
        "expected a client that always does");
}
