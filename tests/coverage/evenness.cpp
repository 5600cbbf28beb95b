// SPDX-License-Identifier: MIT
#include <subfed/coverage/evenness.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using subfed::count_histogram;
using subfed::evenness;
using subfed::evenness_of;
using counts_type = std::vector<std::int64_t>;

namespace {

/// Gini's coefficient by its first definition: the mean difference of all pairs over twice the
/// mean.
double gini_by_pairs(const counts_type& counts) {
  double differences = 0;
  double total = 0;
  for (const auto a : counts) {
    total += static_cast<double>(a);
    for (const auto b : counts) differences += static_cast<double>(a > b ? a - b : b - a);
  }
  return total == 0 ? 0 : differences / (2 * static_cast<double>(counts.size()) * total);
}

}  // namespace

TEST_CASE("evenness of 0, 1, 3 by hand") {
  const evenness e = evenness_of(counts_type{3, 0, 1});
  CHECK(e.items == 3);
  CHECK(e.min == 0);
  CHECK(e.max == 3);
  CHECK(e.mean == 4.0 / 3);
  CHECK(e.variance == doctest::Approx(14.0 / 9));
  CHECK(e.unseen == 1);
  CHECK(e.unseen_share == 1.0 / 3);
  CHECK(e.gini == doctest::Approx(0.5));
  // -(3/4 log 3/4 + 1/4 log 1/4) / log 3
  CHECK(e.entropy == doctest::Approx(0.5118595071429148));
}

TEST_CASE("equal counts are even, one that had it all is not, and nothing is even") {
  for (const std::int64_t n : {1, 2, 7, 100}) {
    INFO("n = ", n);
    const evenness equal = evenness_of(counts_type(static_cast<std::size_t>(n), 6));
    CHECK(equal.gini == 0);
    CHECK(equal.variance == 0);
    CHECK(equal.entropy == doctest::Approx(1));
    counts_type one(static_cast<std::size_t>(n), 0);
    one.back() = 9;
    CHECK(evenness_of(one).gini == doctest::Approx(1 - 1 / static_cast<double>(n)));
    CHECK(evenness_of(one).entropy == doctest::Approx(n == 1 ? 1 : 0));
    const evenness none = evenness_of(counts_type(static_cast<std::size_t>(n), 0));
    CHECK(none.gini == 0);
    CHECK(none.entropy == 1);
    CHECK(none.unseen_share == 1);
  }
  CHECK(evenness_of(counts_type{}).items == 0);
  CHECK(evenness_of(counts_type{}).unseen_share == 0);
}

TEST_CASE("evenness is what its definitions say, of a list as of its histogram") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    support::seeded random(seed);
    counts_type counts(static_cast<std::size_t>(random.between(1, 40)));
    for (auto& x : counts) x = random.between(0, random.one_in(2) ? 3 : 1000);
    const evenness e = evenness_of(counts);
    count_histogram histogram;
    for (const auto x : counts) ++histogram[x];
    histogram[1000000] = 0;  // no item
    const evenness h = evenness_of(histogram);
    CHECK(h.gini == e.gini);
    CHECK(h.entropy == e.entropy);
    CHECK(h.max == e.max);
    double total = 0, squares = 0, entropy = 0;
    for (const auto x : counts) total += static_cast<double>(x);
    const auto n = static_cast<double>(counts.size());
    for (const auto x : counts) {
      const auto p = static_cast<double>(x) / total;
      squares += std::pow(static_cast<double>(x) - total / n, 2);
      if (x > 0) entropy -= p * std::log(p);
    }
    CHECK(e.mean == doctest::Approx(total / n).epsilon(1e-14));
    CHECK(e.variance == doctest::Approx(squares / n).epsilon(1e-12));
    CHECK(e.gini == doctest::Approx(gini_by_pairs(counts)).epsilon(1e-12));
    if (n > 1 && total > 0)
      CHECK(e.entropy == doctest::Approx(entropy / std::log(n)).epsilon(1e-12));
  }
}

TEST_CASE("counts near 2^53 keep their evenness, and negative ones are refused") {
  const std::int64_t large = std::int64_t{1} << 52;
  CHECK(evenness_of(counts_type{large, 0}).gini == 0.5);
  CHECK(evenness_of(count_histogram{{1, large}}).items == large);
  CHECK(support::message_of([] {
          evenness_of(counts_type{2, -1});
        }) ==
        "subfed: evenness: 1 items were held -1 times, expected a number that is not negative");
  CHECK(support::message_of([] {
          evenness_of(count_histogram{{2, -3}});
        }) ==
        "subfed: evenness: -3 items were held 2 times, expected a number that is not negative");
}

TEST_CASE("more items than 64 bits count are refused") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(support::message_of([&] {
          subfed::evenness_of(subfed::count_histogram{{0, most}, {1, 1}});
        }) == "subfed: evenness: more than 2^63 - 1 items");
  CHECK(subfed::evenness_of(subfed::count_histogram{{0, most}, {1, 0}}).items == most);
}

TEST_CASE("rounding takes no Gini coefficient below 0") {
  const auto e = subfed::evenness_of(
      subfed::count_histogram{{82, 82}, {7089336938131489493, 7089336938131513954}});
  CHECK(e.gini >= 0);
  CHECK(e.gini < 1e-15);
}
