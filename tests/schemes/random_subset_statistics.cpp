// SPDX-License-Identifier: MIT
// Whether random sets are as random as theory takes them to be: counts of many draws against what
// is expected of independent uniform sets. Seeds are fixed, so a green test stays green; had they
// been drawn, one of the checks here would be red by chance with a probability below 1e-6.
#include <subfed/schemes/random_subset.hpp>

#include <support/checks.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

using subfed::draw_request;
using subfed::index_set;
using subfed::seed_policy;

namespace {

/// Where draws come from that must be independent: draw i is that of round i, client i, ..
struct source {
  const char* name;
  draw_request (*at)(std::uint64_t i);
  seed_policy policy = seed_policy::per_client_and_round();
};

// The group's name must outlive the request.
std::string_view numbered(std::uint64_t i) {
  static std::vector<std::string> names;
  while (names.size() <= i) names.push_back("layer" + std::to_string(names.size()) + ".conv");
  return names[i];
}

const source sources[] = {
    {"rounds", [](std::uint64_t i) { return draw_request{.seed = 11, .round = i, .group = "g"}; }},
    {"clients",
     [](std::uint64_t i) { return draw_request{.seed = 12, .client = i, .group = "g"}; }},
    {"seeds", [](std::uint64_t i) { return draw_request{.seed = i, .round = 3, .group = "g"}; }},
    {"rounds and clients",
     [](std::uint64_t i) {
       return draw_request{.seed = 13, .round = i / 10, .client = i % 10, .group = "g"};
     }},
    {"rounds and groups",
     [](std::uint64_t i) {
       return draw_request{.seed = 14, .round = i / 4, .client = 5, .group = numbered(i % 4)};
     }},
    {"clients with a set each",
     [](std::uint64_t i) {
       return draw_request{.seed = 15, .round = 7, .client = i, .group = "g"};
     },
     seed_policy::per_client()},
    {"rounds with a set each",
     [](std::uint64_t i) {
       return draw_request{.seed = 16, .round = i, .client = i % 3, .group = "g"};
     },
     seed_policy::shared()},
    {"periods of 5 rounds",
     [](std::uint64_t i) { return draw_request{.seed = 17, .round = 5 * i + i % 5, .group = "g"}; },
     seed_policy::shared(5)},
};

index_set draw(const source& from, std::uint64_t i, std::int64_t extent, std::int64_t kept) {
  draw_request where = from.at(i);
  where.extent = extent;
  where.capacity = subfed::capacity::ratio(kept, extent);
  return subfed::random_subset{from.policy}(where);
}

/// Checks a sum that is chi-square distributed: P(X >= d + 2 sqrt(20 d) + 40) and
/// P(X <= d - 2 sqrt(20 d)) are below e^-20 each (Laurent and Massart 2000, Lemma 1); one of the 107
/// such checks of this file is red by chance with 4.4e-7. A sum too small is a fault as well: sets
/// that avoid each other.
void check_chi_square(double sum, double freedom) {
  CHECK(sum < freedom + 2 * std::sqrt(20 * freedom) + 40);
  CHECK(sum > freedom - 2 * std::sqrt(20 * freedom));
}

/// Sum of (seen - expected)^2 / expected.
double pearson(const std::vector<double>& seen, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    sum += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
  }
  return sum;
}

double binomial(std::int64_t n, std::int64_t k) {
  double out = 1;
  for (std::int64_t i = 0; i < k; ++i)
    out *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return k <= n ? out : 0;
}

/// A set as a word of bits.
std::uint64_t word_of(const index_set& s) {
  std::uint64_t word = 0;
  for (const std::int64_t n : s) word |= std::uint64_t{1} << n;
  return word;
}

}  // namespace

TEST_CASE("every node is held as often as any other") {
  // Counts n_i of R draws have variance R b (1 - b), b = L / K, and a fixed sum, so that
  // (K - 1) / K sum (n_i - R b)^2 / (R b (1 - b)) is chi-square with K - 1.
  constexpr std::int64_t extent = 37;
  constexpr int draws = 3000;
  for (const std::int64_t kept : {1, 11, 36}) {
    for (const source& from : sources) {
      INFO(from.name, ", L = ", kept);
      std::vector<double> held(extent, 0.0);
      for (int i = 0; i < draws; ++i) {
        for (const std::int64_t n : draw(from, static_cast<std::uint64_t>(i), extent, kept)) {
          ++held[static_cast<std::size_t>(n)];
        }
      }
      const double b = static_cast<double>(kept) / extent;
      const double sum = pearson(held, std::vector<double>(extent, draws * b));
      check_chi_square(sum / (1 - b) * (extent - 1) / extent, extent - 1);
    }
  }
}

TEST_CASE("every pair of nodes is held together as often as any other") {
  // Also neighbours, whose keys come out of one block of random bits. A pair's count is binomial;
  // 6.5 standard deviations are passed with 8e-11, in one of 1128 pairs of 2 sources with 2e-7.
  constexpr std::int64_t extent = 48;
  constexpr std::int64_t kept = 20;
  constexpr int draws = 6000;
  for (const source& from : {sources[0], sources[3]}) {
    INFO(from.name);
    std::vector<double> held(extent * extent, 0.0);
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t word = word_of(draw(from, static_cast<std::uint64_t>(i), extent, kept));
      for (std::size_t a = 0; a < extent; ++a) {
        if ((word >> a & 1) == 0) continue;
        for (std::size_t b = 0; b < a; ++b) held[a * extent + b] += (word >> b & 1) != 0 ? 1 : 0;
      }
    }
    const double p = double{kept * (kept - 1)} / (extent * (extent - 1));
    double largest = 0;
    for (std::size_t a = 0; a < extent; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        largest = std::max(largest, std::fabs(held[a * extent + b] - draws * p));
      }
    }
    CHECK(largest < 6.5 * std::sqrt(draws * p * (1 - p)));
  }
}

TEST_CASE("all subsets of L of K nodes come equally often") {
  struct shape {
    std::int64_t extent;
    std::int64_t kept;
  };
  for (const shape& of : {shape{5, 1}, shape{5, 4}, shape{6, 3}, shape{7, 2}, shape{8, 4}}) {
    for (const source& from : sources) {
      const std::int64_t extent = of.extent;
      const std::int64_t kept = of.kept;
      INFO(from.name, ", ", kept, " of ", extent);
      const double subsets = binomial(extent, kept);
      const int draws = static_cast<int>(subsets) * 60;
      std::map<std::uint64_t, double> seen;
      for (int i = 0; i < draws; ++i) {
        ++seen[word_of(draw(from, static_cast<std::uint64_t>(i), extent, kept))];
      }
      double sum = 60 * (subsets - static_cast<double>(seen.size()));
      for (const auto& [word, n] : seen) sum += (n - 60) * (n - 60) / 60;
      check_chi_square(sum, subsets - 1);
    }
  }
}

TEST_CASE("draws that follow each other are independent: all pairs of subsets equally often") {
  // 2 of 4 nodes: 6 subsets, 36 pairs of draw i and draw i + lag. The statistic of a table of
  // overlapping pairs, less those of its margins, is chi-square with 25.
  constexpr int draws = 3600;
  for (const source& from : sources) {
    std::vector<std::uint64_t> words;
    for (int i = 0; i < draws; ++i) {
      words.push_back(word_of(draw(from, static_cast<std::uint64_t>(i), 4, 2)));
    }
    for (const std::size_t lag : {1u, 2u, 3u, 10u}) {
      INFO(from.name, ", lag ", lag);
      std::map<std::uint64_t, double> first;
      std::map<std::uint64_t, double> second;
      std::map<std::uint64_t, double> both;
      const std::size_t pairs = words.size() - lag;
      for (std::size_t i = 0; i < pairs; ++i) {
        ++first[words[i]];
        ++second[words[i + lag]];
        ++both[words[i] << 4 | words[i + lag]];
      }
      double sum = 0;
      for (const auto& [a, n] : first) {
        for (const auto& [b, m] : second) {
          const double expected = n * m / static_cast<double>(pairs);
          const double off = both[a << 4 | b] - expected;
          sum += off * off / expected;
        }
      }
      check_chi_square(sum, 25);
    }
  }
}

TEST_CASE("sets that follow each other overlap as independent ones do, also in wide groups") {
  // The overlap of independent sets is hypergeometric, and overlaps of successive draws are
  // independent of each other. Cells with less than 20 expected are joined.
  constexpr std::int64_t extent = 64;
  constexpr std::int64_t kept = 16;
  constexpr int draws = 2000;
  for (const source& from : sources) {
    INFO(from.name);
    std::vector<double> seen(kept + 1, 0.0);
    index_set before = draw(from, 0, extent, kept);
    for (int i = 1; i <= draws; ++i) {
      index_set now = draw(from, static_cast<std::uint64_t>(i), extent, kept);
      const std::uint64_t common = word_of(before) & word_of(now);
      std::size_t overlap = 0;
      for (std::uint64_t rest = common; rest != 0; rest &= rest - 1) ++overlap;
      ++seen[overlap];
      before = std::move(now);
    }
    std::vector<double> joined_seen(1, 0.0);
    std::vector<double> joined_expected(1, 0.0);
    double left = draws;
    for (std::int64_t d = 0; d <= kept; ++d) {
      const double expected =
          draws * binomial(kept, d) * binomial(extent - kept, kept - d) / binomial(extent, kept);
      if (joined_expected.back() >= 20 && left >= 20) {
        joined_seen.push_back(0);
        joined_expected.push_back(0);
      }
      joined_seen.back() += seen[static_cast<std::size_t>(d)];
      joined_expected.back() += expected;
      left -= expected;
    }
    REQUIRE(joined_seen.size() > 5);
    check_chi_square(pearson(joined_seen, joined_expected),
                     static_cast<double>(joined_seen.size() - 1));
  }
}

TEST_CASE("a node's rounds have no serial correlation") {
  // The correlation of a node's held or not with itself `lag` draws later, over n draws of constant
  // variance, is nearly normal with deviation 1 / sqrt(n); 6.5 deviations, 13 nodes, 5 lags, 8
  // sources: 4e-8.
  constexpr std::int64_t extent = 13;
  constexpr std::int64_t kept = 5;
  constexpr int draws = 3000;
  for (const source& from : sources) {
    std::vector<std::uint64_t> words;
    for (int i = 0; i < draws; ++i) {
      words.push_back(word_of(draw(from, static_cast<std::uint64_t>(i), extent, kept)));
    }
    const double b = double{kept} / extent;
    for (const std::size_t lag : {1u, 2u, 4u, 10u, 256u}) {
      for (std::size_t node = 0; node < extent; ++node) {
        INFO(from.name, ", lag ", lag, ", node ", node);
        double sum = 0;
        const std::size_t pairs = words.size() - lag;
        for (std::size_t i = 0; i < pairs; ++i) {
          sum += (static_cast<double>(words[i] >> node & 1) - b) *
                 (static_cast<double>(words[i + lag] >> node & 1) - b);
        }
        CHECK(std::fabs(sum) < 6.5 * b * (1 - b) * std::sqrt(static_cast<double>(pairs)));
      }
    }
  }
}

TEST_CASE("a pool's sets are picked equally often, whatever their number") {
  for (const std::int64_t size : {3, 96, 100}) {
    INFO("pool of ", size);
    const subfed::random_subset which{seed_policy::pool_per_round(size)};
    const subfed::random_subset kept{seed_policy::pool(size)};
    // 32 of 64 nodes: that two of the sets are the same has a probability of 1e-15.
    std::map<std::uint64_t, double> seen, seen_kept;
    const int draws = static_cast<int>(size) * 60;
    for (int i = 0; i < draws; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      ++seen[word_of(which({21, number / 10, number % 10, "g", 64, 0.5}))];
      ++seen_kept[word_of(kept({21, 7, number, "g", 64, 0.5}))];
    }
    for (const auto& counts : {seen, seen_kept}) {
      double sum = 60 * (static_cast<double>(size) - static_cast<double>(counts.size()));
      for (const auto& [word, n] : counts) sum += (n - 60) * (n - 60) / 60;
      check_chi_square(sum, static_cast<double>(size - 1));
    }
  }
}
