// SPDX-License-Identifier: MIT
#include <subfed/systems/feddrop.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/prefix.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::keep_probabilities;
using subfed::sync_dropout;
using subfed::sync_threshold;
using support::message_of;

namespace {

struct golden_threshold {
  std::uint64_t seed, round, step;
  const char* group;
  std::int64_t node;
  std::uint64_t numerator;
};
constexpr golden_threshold golden[] = {
#include <golden/systems_thresholds.inc>
};

struct two_groups {
  subfed::model net;
  subfed::group_id a = net.group("a", 6);
  subfed::group_id whole = net.group("classes", 3, subfed::cut::never);
  subfed::group_id b = net.group("b", 4);

  keep_probabilities random_keep(support::seeded& random) const {
    keep_probabilities out(net);
    std::vector<double> values(10);
    for (double& p : values) p = random.one_in(6) ? (random.one_in(2) ? 0 : 1) : random.unit();
    out.assign(values);
    return out;
  }
};

}  // namespace

TEST_CASE("probabilities of groups that are cut lie in a row, those of others are always 1") {
  const two_groups net;
  keep_probabilities keep(net.net, 0.5);
  CHECK(keep.values().size() == 10);
  CHECK(keep.first(net.b) == 6);
  CHECK(keep[net.whole].empty());
  keep.assign(std::vector<double>{0, 1, 2e-3, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9});
  CHECK(keep[net.a][5] == 0.5);
  CHECK(keep[net.b].size() == 4);
  CHECK(keep[net.b][0] == 0.6);
}

TEST_CASE("a node is kept when its threshold is below its probability: {n : t_n < p[n]}") {
  const two_groups net;
  support::seeded random(5);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto keep = net.random_keep(random);
    const auto sub = subfed::draw(net.net, sync_dropout{keep, step}, {.seed = 8, .round = 3});
    for (const auto& [group, name] : {std::pair(net.a, "a"), std::pair(net.b, "b")}) {
      for (std::int64_t n = 0; n < net.net[group].extent; ++n) {
        const double p = keep[group][static_cast<std::size_t>(n)];
        const double t = sync_threshold(8, 3, step, name, n);
        CHECK(t >= 0);
        CHECK(t < 1);
        CHECK(sub[group].contains(n) == (t < p));
        if (p == 1) CHECK(sub[group].contains(n));
        if (p == 0) CHECK_FALSE(sub[group].contains(n));
      }
    }
    CHECK(sub[net.whole].is_full());
  }
}

TEST_CASE(
    "thresholds are new for each round, step, group and node, and the same for every client") {
  std::set<double> seen;
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (const char* group : {"a", "b"}) {
        for (std::int64_t n = 0; n < 5; ++n) seen.insert(sync_threshold(1, round, step, group, n));
      }
    }
  }
  CHECK(seen.size() == 3 * 3 * 2 * 5);
  const two_groups net;
  const sync_dropout scheme{keep_probabilities(net.net, 0.5)};
  CHECK(subfed::draw(net.net, scheme, {.seed = 1, .client = 4, .capacity = 0.1})[net.a] ==
        subfed::draw(net.net, scheme, {.seed = 1, .client = 9})[net.a]);
}

TEST_CASE("two clients keep together what the smaller of both probabilities keeps, at every draw") {
  // d_i d_j = 1[t < p_i] 1[t < p_j] = 1[t < min(p_i, p_j)]
  const two_groups net;
  support::seeded random(17);
  for (std::uint64_t step = 0; step < 50; ++step) {
    const auto one = net.random_keep(random), two = net.random_keep(random);
    keep_probabilities least(net.net);
    std::vector<double> values;
    for (std::size_t n = 0; n < 10; ++n)
      values.push_back((std::min)(one.values()[n], two.values()[n]));
    least.assign(values);
    const subfed::draw_key key{.seed = 2, .round = 7};
    const auto i = subfed::draw(net.net, sync_dropout{one, step}, key);
    const auto j = subfed::draw(net.net, sync_dropout{two, step}, key);
    const auto both = subfed::draw(net.net, sync_dropout{least, step}, key);
    for (const auto group : {net.a, net.b}) {
      for (std::int64_t n = 0; n < net.net[group].extent; ++n) {
        CHECK((i[group].contains(n) && j[group].contains(n)) == both[group].contains(n));
      }
    }
  }
}

TEST_CASE("E[d_i d_j] = min(p_i, p_j), and not p_i p_j as without synchronisation") {
  subfed::model net;
  const auto g = net.group("g", 200);
  const keep_probabilities one(net, 0.3), two(net, 0.6);
  double both = 0, first = 0;
  constexpr int steps = 100;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto i = subfed::draw(net, sync_dropout{one, step}, {.seed = 5});
    const auto j = subfed::draw(net, sync_dropout{two, step}, {.seed = 5});
    first += static_cast<double>(i.extent(g));
    for (const std::int64_t n : i[g]) both += j[g].contains(n) ? 1 : 0;
  }
  const double draws = 200.0 * steps;
  const double deviation = std::sqrt(0.3 * 0.7 / draws);
  CHECK(std::fabs(both / draws - 0.3) < 4 * deviation);
  CHECK(std::fabs(first / draws - 0.3) < 4 * deviation);
}

TEST_CASE("what is kept is scaled by 1 / p, so that a node's expected value stays") {
  const two_groups net;
  keep_probabilities keep(net.net);
  keep.assign(std::vector<double>{0.5, 0.25, 1, 0.5, 0, 1, 0.1, 0.2, 0.4, 0.8});
  const subfed::submodel kept(net.net,
                              {index_set(6, {5, 0, 1}), index_set::full(3), index_set(4, {3})});
  CHECK(subfed::keep_scale(keep, kept, net.a) == std::vector<double>{1, 2, 4});
  CHECK(subfed::keep_scale(keep, kept, net.b) == std::vector<double>{1.25});
  CHECK(subfed::keep_scale(keep, kept, net.whole) == std::vector<double>{1, 1, 1});
}

TEST_CASE("weights start with variance 2 p / N") {
  CHECK(subfed::initial_deviation(0.5, 25) == 0.2);
  CHECK(subfed::initial_deviation(1, 2) == 1);
}

TEST_CASE("bad probabilities, foreign models and nodes of probability 0 are refused by name") {
  const two_groups net;
  for (const double bad : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(message_of([&] { keep_probabilities(net.net, bad); }).find("is outside [0, 1]") !=
          std::string::npos);
  }
  keep_probabilities keep(net.net, 0.5);
  CHECK(message_of([&] { keep.assign(std::vector<double>{1}); }) ==
        "subfed: keep_probabilities: 1 values are given for 10 nodes");
  std::vector<double> last_bad(10, 0.25);
  last_bad[9] = 2;
  CHECK(message_of([&] { keep.assign(last_bad); }) ==
        "subfed: keep_probabilities: 2 is outside [0, 1]");
  CHECK(keep.values()[0] == 0.5);
  subfed::model other;
  other.group("a", 7);
  CHECK(message_of([&] { subfed::draw(other, sync_dropout{keep}, {}); }) ==
        "subfed: sync_dropout: group 'a' has 7 nodes, expected 6 as in the model of the keep "
        "probabilities");
  CHECK(message_of([&] {
          subfed::keep_scale(keep, subfed::submodel::full(other), subfed::group_id(0));
        }) == "subfed: keep_scale: the submodel is of another model than the probabilities");
  CHECK(message_of([&] {
          subfed::keep_scale(keep_probabilities(net.net, 0), subfed::submodel::full(net.net),
                             net.b);
        }) == "subfed: keep_scale: node 0 of group 'b' is kept but has the keep probability 0");
  CHECK(message_of([&] {
          subfed::keep_scale(keep_probabilities(net.net, 0x1p-1040),
                             subfed::submodel::full(net.net), net.b);
        }).find("subfed: keep_scale: node 0 of group 'b' is kept but has the keep probability ") ==
        0);
  CHECK(message_of([] { subfed::initial_deviation(0, 4); }).find("a keep probability of 0") !=
        std::string::npos);
}

TEST_CASE("thresholds are the golden ones") {
  for (const golden_threshold& row : golden) {
    CHECK(sync_threshold(row.seed, row.round, row.step, row.group, row.node) ==
          static_cast<double>(row.numerator) * 0x1p-53);
  }
}
