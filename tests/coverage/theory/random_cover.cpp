// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/random_cover.hpp>

#include <subfed/coverage/theory/chosen_indices.hpp>
#include <support/checks.hpp>
#include <support/close.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using subfed::first_cover;
using subfed::first_cover_moments;
using subfed::kept_share;
using subfed::random_round;
using support::message_of;
using support::relative_error;

namespace {

struct cover_row {
  std::int64_t extent;
  std::vector<std::int64_t> kept;
  double mean;
  double variance;
};
const cover_row golden[] = {
#include <golden/theory_cover.inc>
};

struct drawn_row {
  std::int64_t extent;
  std::int64_t clients;
  double mean;
  double variance;
};
constexpr drawn_row golden_drawn[] = {
#include <golden/theory_cover_drawn.inc>
};

struct tail_row {
  std::int64_t extent;
  std::int64_t kept;
  std::int64_t rounds;
  double beyond;
};
constexpr tail_row golden_tails[] = {
#include <golden/theory_cover_tails.inc>
};

struct times_row {
  std::int64_t extent;
  std::vector<std::int64_t> kept;
  std::int64_t times;
  double mean;
  double variance;
};
const times_row golden_times[] = {
#include <golden/theory_cover_times.inc>
};

/// Sum over i of (-1)^(i+1) C(K,i) q(i)^R, for small K.
double tail_by_exclusion(std::int64_t extent, std::int64_t kept, std::int64_t rounds) {
  double sum = 0;
  double binomial = 1;
  double q = 1;
  for (std::int64_t i = 1; i <= extent; ++i) {
    binomial *= static_cast<double>(extent - i + 1) / static_cast<double>(i);
    q *= static_cast<double>(extent - kept - i + 1) / static_cast<double>(extent - i + 1);
    if (q <= 0) q = 0;
    sum += (i % 2 == 0 ? -1 : 1) * binomial * (rounds == 0 ? 1 : std::pow(q, rounds));
  }
  return sum;
}

}  // namespace

TEST_CASE("2 of 3 nodes: covered in the second round with probability 2/3") {
  const auto t = first_cover(random_round(3, {2}));
  CHECK(t.after(0) == 1);
  CHECK(t.after(1) == doctest::Approx(1));
  CHECK(t.after(2) == doctest::Approx(1.0 / 3));
  CHECK(t.after(5) == doctest::Approx(1.0 / 81));
  CHECK(first_cover_moments(random_round(3, {2})).mean == doctest::Approx(2.5));
  CHECK(first_cover_moments(random_round(3, {2})).variance == doctest::Approx(0.75));
}

TEST_CASE("mean and variance of the first cover agree with inclusion and exclusion") {
  for (const cover_row& row : golden) {
    INFO("K = ", row.extent, ", L = ", row.kept[0], " of ", row.kept.size(), " clients");
    const random_round round(row.extent, row.kept);
    const auto found = first_cover_moments(round);
    CHECK(relative_error(found.mean, row.mean) < 1e-11);
    CHECK(std::fabs(found.variance - row.variance) < 1e-9 * row.variance + 1e-12);
    if (row.extent > 512) continue;
    const auto chain = first_cover(round).moments();
    CHECK(relative_error(chain.mean, row.mean) < 1e-11);
    CHECK(std::fabs(chain.variance - row.variance) < 1e-9 * row.variance + 1e-12);
  }
}

TEST_CASE("so they do when clients draw their capacities") {
  const std::vector<kept_share> mix = {{1, 0.5}, {3, 0.25}, {0, 0.25}};
  for (const drawn_row& row : golden_drawn) {
    INFO("K = ", row.extent, ", ", row.clients, " clients");
    const auto round = random_round::drawn(row.extent, row.clients, mix);
    for (const auto& found : {first_cover_moments(round), first_cover(round).moments()}) {
      CHECK(relative_error(found.mean, row.mean) < 1e-12);
      CHECK(relative_error(found.variance, row.variance) < 1e-11);
    }
  }
}

TEST_CASE("the distribution agrees with inclusion and exclusion, far into the tail") {
  subfed::round_distribution t;
  std::int64_t extent_of_t = 0;
  std::int64_t kept_of_t = 0;
  for (const tail_row& row : golden_tails) {
    INFO("K = ", row.extent, ", L = ", row.kept, ", R = ", row.rounds);
    if (row.extent != extent_of_t || row.kept != kept_of_t) {
      t = first_cover(random_round(row.extent, {row.kept}));
      extent_of_t = row.extent;
      kept_of_t = row.kept;
    }
    CHECK(relative_error(t.after(row.rounds), row.beyond) < 1e-11);
  }
  for (std::int64_t extent = 1; extent <= 9; ++extent) {
    for (std::int64_t kept = 1; kept <= extent; ++kept) {
      t = first_cover(random_round(extent, {kept}));
      for (std::int64_t rounds = 0; rounds < 40; ++rounds) {
        CHECK(std::fabs(t.after(rounds) - tail_by_exclusion(extent, kept, rounds)) < 1e-12);
      }
    }
  }
}

TEST_CASE("holding every node several times agrees with a chain over the counts of all nodes") {
  for (const times_row& row : golden_times) {
    INFO("K = ", row.extent, ", L = ", row.kept[0], ", times ", row.times);
    const auto found = first_cover(random_round(row.extent, row.kept), row.times).moments();
    CHECK(relative_error(found.mean, row.mean) < 1e-12);
    CHECK(std::fabs(found.variance - row.variance) < 1e-11 * row.variance + 1e-13);
  }
}

TEST_CASE("one node per round is the choice of one submodel per round") {
  for (const std::int64_t extent : {1, 2, 7, 100}) {
    const auto expected = subfed::rounds_until_chosen(extent);
    CHECK(relative_error(first_cover_moments(random_round(extent, {1})).mean, expected.mean) <
          1e-12);
  }
  for (std::int64_t times = 1; times <= 4; ++times) {
    const auto expected = subfed::rounds_until_chosen(6, times);
    const auto found = first_cover(random_round(6, {1}), times).moments();
    CHECK(relative_error(found.mean, expected.mean) < 1e-12);
    CHECK(relative_error(found.variance, expected.variance) < 1e-11);
  }
}

TEST_CASE("several clients of a round finish it in any order, and whole ones at once") {
  const auto one = first_cover_moments(random_round(40, {3, 10, 1}));
  const auto other = first_cover_moments(random_round(40, {10, 1, 3}));
  CHECK(relative_error(one.mean, other.mean) < 1e-13);
  CHECK(relative_error(one.variance, other.variance) < 1e-12);
  CHECK(first_cover_moments(random_round(40, {3, 40})).mean == doctest::Approx(1));
  CHECK(first_cover(random_round(40, {40}), 3).quantile(1) == 3);
  CHECK(first_cover(random_round(40, {0, 40}), 3).quantile(1) == 3);
}

TEST_CASE("what can never be covered, or has too many states, is refused") {
  CHECK(message_of([] {
          first_cover(random_round(3, {0, 0}));
        }) == "subfed: first_cover: no client keeps a node, so they are never covered");
  CHECK(message_of([] { first_cover_moments(random_round(3, {})); }) ==
        "subfed: first_cover_moments: no client keeps a node, so they are never covered");
  CHECK(message_of([] { first_cover(random_round(3, {1}), 0); }) ==
        "subfed: first_cover: held 0 times, expected at least 1");
  CHECK(message_of([] { first_cover(random_round(512, {1}), 3); }) ==
        "subfed: first_cover: 512 nodes held 3 times have more than 2^24 states; "
        "first_cover_bounds has no such limit");
  CHECK(message_of([] { first_cover(random_round(3, {1}), 1, 0); }) ==
        "subfed: first_cover: the tail is 0, expected (0, 1]");
}
