// SPDX-License-Identifier: MIT
#include <subfed/coverage.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/block.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

using subfed::coverage;
using subfed::coverage_summary;
using subfed::cut;
using subfed::index_set;
using subfed::submodel;
using support::message_of;
using support::seeded;
using counts_type = std::vector<std::int64_t>;

namespace {

counts_type counts_of(const coverage& seen, subfed::group_id g) {
  const auto counts = seen.counts(g);
  return {counts.begin(), counts.end()};
}

/// Lets one client roll over a group for some rounds.
coverage rolled(const subfed::model& net, std::uint64_t rounds, subfed::capacity capacity,
                const subfed::rolling& scheme = {}) {
  coverage seen(net);
  for (std::uint64_t j = 0; j < rounds; ++j) {
    seen.record(subfed::draw(net, scheme, {.round = j, .capacity = capacity}));
    seen.end_round();
  }
  return seen;
}

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

TEST_CASE("rolling 3 of 8 nodes forward: counts after 5, 6 and 8 rounds") {
  subfed::model net;
  const auto g = net.group("g", 8);
  const auto capacity = subfed::capacity::ratio(3, 8);

  const coverage five = rolled(net, 5, capacity);
  CHECK(counts_of(five, g) == counts_type{1, 2, 3, 3, 3, 2, 1, 0});
  const coverage_summary s = five.summary(g);
  CHECK(s.nodes == 8);
  CHECK(s.min == 0);
  CHECK(s.max == 3);
  CHECK(s.mean == 15.0 / 8);
  CHECK(s.unseen == 1);
  CHECK(s.unseen_share == 1.0 / 8);
  CHECK_FALSE(s.first_full_cover.has_value());

  const coverage six = rolled(net, 6, capacity);
  CHECK(counts_of(six, g) == counts_type{1, 2, 3, 3, 3, 3, 2, 1});
  CHECK(six.summary(g).unseen == 0);
  CHECK(six.summary(g).first_full_cover == std::optional<std::int64_t>(6));  // K - L + 1

  const coverage eight = rolled(net, 8, capacity);
  CHECK(counts_of(eight, g) == counts_type(8, 3));
  CHECK(eight.summary(g).gini == 0);
  CHECK(eight.summary(g).first_full_cover == std::optional<std::int64_t>(6));
  CHECK(eight.rounds() == 8);
}

TEST_CASE("the released convention, backward with ceil, covers as fast") {
  subfed::model net;
  const auto g = net.group("g", 8);
  const coverage seen = rolled(net, 5, 0.375, subfed::rolling::released());
  CHECK(counts_of(seen, g) == counts_type{3, 2, 1, 0, 1, 2, 3, 3});
}

TEST_CASE("groups wrap and are counted by their own width") {
  subfed::model net;
  const auto four = net.group("four", 4);
  const auto six = net.group("six", 6);
  coverage seen(net);
  seen.record(subfed::draw(net, subfed::rolling{}, {.round = 5, .capacity = 0.5}));
  seen.end_round();
  CHECK(counts_of(seen, four) == counts_type{0, 1, 1, 0});
  CHECK(counts_of(seen, six) == counts_type{1, 1, 0, 0, 0, 1});
}

TEST_CASE(
    "rolling first covers after K - L + 1 rounds; in any K rounds each node is held L times") {
  for (std::int64_t k = 1; k <= 13; ++k) {
    for (std::int64_t l = 1; l <= k; ++l) {
      INFO("K = ", k, ", L = ", l);
      subfed::model net;
      const auto g = net.group("g", k);
      const auto capacity = subfed::capacity::ratio(l, k);
      const coverage seen = rolled(net, static_cast<std::uint64_t>(k), capacity);
      CHECK(counts_of(seen, g) == counts_type(static_cast<std::size_t>(k), l));
      CHECK(seen.summary(g).first_full_cover == std::optional<std::int64_t>(k - l + 1));
    }
  }
}

TEST_CASE("a static prefix never covers the last K - L nodes") {
  subfed::model net;
  const auto g = net.group("g", 10);
  coverage seen(net);
  for (std::uint64_t j = 0; j < 50; ++j) {
    seen.record(subfed::draw(net, subfed::prefix{}, {.round = j, .capacity = 0.3}));
    seen.end_round();
  }
  CHECK(counts_of(seen, g) == counts_type{50, 50, 50, 0, 0, 0, 0, 0, 0, 0});
  CHECK(seen.summary(g).unseen == 7);
  CHECK(seen.summary(g).gini == doctest::Approx(0.7));
  CHECK_FALSE(seen.summary(g).first_full_cover.has_value());
}

TEST_CASE("an ensemble of blocks covers in its first round") {
  subfed::model net;
  const auto g = net.group("g", 12);
  coverage seen(net);
  for (std::uint64_t client = 0; client < 4; ++client) {
    seen.record(subfed::draw(net, subfed::block{}, {.client = client, .capacity = 0.25}));
  }
  CHECK_FALSE(seen.summary(g).first_full_cover.has_value());  // the round has not ended
  seen.end_round();
  CHECK(seen.summary(g).first_full_cover == std::optional<std::int64_t>(1));
  CHECK(counts_of(seen, g) == counts_type(12, 1));
}

TEST_CASE("random sets leave as many nodes unseen as theory says") {
  // P(unseen after R rounds) = (1 - L / K)^R for one client; 4000 nodes, 5 standard deviations.
  subfed::model net;
  const auto g = net.group("g", 4000);
  coverage seen(net);
  for (std::uint64_t j = 0; j < 8; ++j) {
    seen.record(subfed::draw(net, subfed::random{}, {.seed = 3, .round = j, .capacity = 0.25}));
    seen.end_round();
  }
  const double p = std::pow(0.75, 8);
  CHECK(std::fabs(seen.summary(g).unseen_share - p) < 5 * std::sqrt(p * (1 - p) / 4000));
}

TEST_CASE("rounds since a node was held: 0 in the last round, -1 never") {
  subfed::model net;
  const auto g = net.group("g", 4);
  coverage seen(net);
  CHECK(seen.rounds_since(g) == counts_type{-1, -1, -1, -1});
  seen.record(submodel(net, {index_set(4, {2, 1})}));
  CHECK(seen.rounds_since(g) == counts_type{-1, 0, 0, -1});  // the round is going on
  seen.end_round();
  CHECK(seen.rounds_since(g) == counts_type{-1, 0, 0, -1});
  seen.record(submodel(net, {index_set(4, {1, 0})}));
  seen.end_round();
  CHECK(seen.rounds_since(g) == counts_type{0, 0, 1, -1});
  seen.end_round();
  CHECK(seen.rounds_since(g) == counts_type{1, 1, 2, -1});
  CHECK(seen.rounds() == 3);
}

TEST_CASE("several clients of a round are all counted") {
  subfed::model net;
  const auto g = net.group("g", 5);
  coverage seen(net);
  seen.record(submodel(net, {index_set(5, {0, 1, 2, 3})}));
  seen.record(submodel(net, {index_set(5, {2, 3, 4})}));
  seen.end_round();
  CHECK(counts_of(seen, g) == counts_type{1, 1, 2, 2, 1});
  CHECK(seen.summary(g).first_full_cover == std::optional<std::int64_t>(1));
}

TEST_CASE("of a restricted submodel only the nodes that take part are counted") {
  subfed::model net;
  const auto classes = net.group("classes", 4, cut::never);
  coverage seen(net);
  const auto full = submodel::full(net);
  seen.record(full.restricted(classes, index_set(4, {0, 2})));
  seen.record(full.restricted(classes, index_set(4, {2, 3})));
  seen.end_round();
  CHECK(counts_of(seen, classes) == counts_type{1, 0, 2, 1});
}

TEST_CASE("counts, evenness and first cover are those of a plain list, for any record") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const oracle::network plan = support::random_network(random);
    const auto net = support::model_of(plan);
    coverage seen(net);
    std::vector<counts_type> counts;
    std::vector<std::optional<std::int64_t>> cover(plan.groups.size());
    for (const auto extent : plan.groups) counts.emplace_back(static_cast<std::size_t>(extent), 0);
    const std::int64_t rounds = random.between(1, 6);
    for (std::int64_t round = 1; round <= rounds; ++round) {
      const std::int64_t clients = random.between(0, 3);
      for (std::int64_t c = 0; c < clients; ++c) {
        const auto holds = support::random_holding(random, plan);
        seen.record(support::submodel_of(net, holds));
        for (std::size_t g = 0; g < plan.groups.size(); ++g) {
          for (const auto node : holds.nodes[g]) {
            const auto& part = holds.taking_part[g];
            counts[g][static_cast<std::size_t>(node)] +=
                std::find(part.begin(), part.end(), node) != part.end();
          }
        }
      }
      seen.end_round();
      for (std::size_t g = 0; g < cover.size(); ++g) {
        const bool all = std::find(counts[g].begin(), counts[g].end(), 0) == counts[g].end();
        if (all && !cover[g]) cover[g] = round;
      }
    }
    counts_type joined;
    std::optional<std::int64_t> whole = 0;
    for (std::size_t g = 0; g < counts.size(); ++g) {
      const subfed::group_id id(g);
      CHECK(counts_of(seen, id) == counts[g]);
      const auto s = seen.summary(id);
      CHECK(s.nodes == plan.groups[g]);
      CHECK(s.unseen == std::count(counts[g].begin(), counts[g].end(), 0));
      CHECK(s.gini == doctest::Approx(gini_by_pairs(counts[g])).epsilon(1e-12));
      CHECK(s.first_full_cover == cover[g]);
      if (!counts[g].empty()) {
        CHECK(s.min == *std::min_element(counts[g].begin(), counts[g].end()));
        CHECK(s.max == *std::max_element(counts[g].begin(), counts[g].end()));
        const auto total = std::accumulate(counts[g].begin(), counts[g].end(), std::int64_t{0});
        CHECK(s.mean ==
              doctest::Approx(static_cast<double>(total) / static_cast<double>(plan.groups[g])));
      }
      joined.insert(joined.end(), counts[g].begin(), counts[g].end());
      whole = whole && cover[g] ? std::optional(std::max(*whole, *cover[g])) : std::nullopt;
    }
    CHECK(seen.summary().nodes == static_cast<std::int64_t>(joined.size()));
    CHECK(seen.summary().gini == doctest::Approx(gini_by_pairs(joined)).epsilon(1e-12));
    CHECK(seen.summary().first_full_cover == whole);
  }
}

TEST_CASE("the summary of all groups leaves out those that no scheme cuts") {
  subfed::model net;
  net.group("pixels", 100, cut::never);
  const auto g = net.group("hidden", 4);
  coverage seen(net);
  seen.record(subfed::draw(net, subfed::prefix{}, {.capacity = 0.5}));
  seen.end_round();
  CHECK(seen.summary().nodes == 4);
  CHECK(seen.summary().unseen == 2);
  CHECK(seen.summary().gini == seen.summary(g).gini);
}

TEST_CASE("a group without nodes, and a model without groups, are covered and even") {
  subfed::model net;
  const auto g = net.group("nobody", 0);
  coverage seen(net);
  CHECK(seen.summary(g).nodes == 0);
  CHECK(seen.summary(g).unseen_share == 0);
  seen.end_round();
  CHECK(seen.summary(g).gini == 0);
  CHECK(seen.summary(g).min == 0);
  CHECK(seen.summary(g).first_full_cover == std::optional<std::int64_t>(1));
  const coverage none{subfed::model()};
  CHECK(none.summary().nodes == 0);
}

TEST_CASE("a submodel of another model, or a group that is not there, is refused; counts stay") {
  subfed::model net;
  const auto g = net.group("g", 3);
  subfed::model other;
  other.group("g", 4);
  coverage seen(net);
  seen.record(submodel(net, {index_set(3, {1})}));
  CHECK(message_of([&] { seen.record(submodel::full(other)); }) ==
        "subfed: coverage: the submodel is of another model");
  CHECK(message_of([&] { seen.counts(subfed::group_id(1)); }) ==
        "subfed: model: group number 1 is not of this model, which has 1");
  CHECK(counts_of(seen, g) == counts_type{0, 1, 0});
  seen.record(submodel(net, {index_set(3, {1, 2})}));
  CHECK(counts_of(seen, g) == counts_type{0, 2, 1});
}
