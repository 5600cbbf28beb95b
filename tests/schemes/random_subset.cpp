// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/schemes/random_subset.hpp>
#include <support/checks.hpp>
#include <support/spelled.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using subfed::draw_request;
using subfed::index_set;
using subfed::rounding;
using subfed::seed_policy;
using support::message_of;

namespace {

struct golden_row {
  std::string_view policy;
  std::int64_t count;
  rounding round_to;
  std::int64_t minimum;
  draw_request where;
  std::string_view nodes;
};
constexpr golden_row golden[] = {
#include <golden/random.inc>
};

seed_policy policy_of(const golden_row& row) {
  if (row.policy == "per_client_and_round") return seed_policy::per_client_and_round();
  if (row.policy == "per_client") return seed_policy::per_client();
  if (row.policy == "pool") return seed_policy::pool(row.count);
  if (row.policy == "pool_per_round") return seed_policy::pool_per_round(row.count);
  REQUIRE(row.policy == "shared");
  return seed_policy::shared(row.count);
}

using nodes_type = std::vector<std::int64_t>;

nodes_type nodes_of(const index_set& s) { return {s.begin(), s.end()}; }

const seed_policy all_policies[] = {seed_policy::per_client_and_round(), seed_policy::per_client(),
                                    seed_policy::pool(5), seed_policy::pool_per_round(5),
                                    seed_policy::shared(3)};

/// Sum of (seen - expected)^2 / expected over equally likely cells.
template <class Cell>
double chi_square(const std::map<Cell, int>& seen, std::size_t cells) {
  double total = 0;
  for (const auto& [cell, n] : seen) total += n;
  const double expected = total / static_cast<double>(cells);
  double sum = expected * static_cast<double>(cells - seen.size());  // cells never seen
  for (const auto& [cell, n] : seen) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("random sets agree with the golden values, for every seed policy") {
  for (const golden_row& row : golden) {
    CAPTURE(row.policy);
    CAPTURE(row.count);
    CAPTURE(row.where.group);
    CAPTURE(row.where.extent);
    const subfed::random_subset which{policy_of(row), row.round_to, row.minimum};
    CHECK(support::spelled(which(row.where)) == row.nodes);
  }
}

TEST_CASE("a set has as many distinct nodes as the capacity keeps, ascending") {
  support::for_all("random", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(0, 70);
    const auto numerator = *rc::gen::inRange<std::int64_t>(1, 17);
    const auto mode = *rc::gen::element(rounding::floor, rounding::ceil, rounding::nearest);
    const auto minimum = *rc::gen::inRange<std::int64_t>(0, 3);
    const subfed::random_subset which{*rc::gen::elementOf(std::vector<seed_policy>(
                                          std::begin(all_policies), std::end(all_policies))),
                                      mode, minimum};
    const draw_request where{*rc::gen::arbitrary<std::uint64_t>(),
                             *rc::gen::arbitrary<std::uint64_t>(),
                             *rc::gen::arbitrary<std::uint64_t>(),
                             "group",
                             extent,
                             subfed::capacity::ratio(numerator, 16)};
    const index_set s = which(where);
    RC_ASSERT(s.extent() == extent);
    RC_ASSERT(s.size() == where.kept(mode, minimum));
    const nodes_type nodes = nodes_of(s);  // index_set refuses repeated nodes
    RC_ASSERT(std::is_sorted(nodes.begin(), nodes.end()));
    RC_ASSERT(which(where) == s);
    RC_ASSERT(subfed::random_subset(which)(where) == s);
  });
}

TEST_CASE("a smaller set of the same client and round is part of a larger one") {
  for (const seed_policy& seeds : all_policies) {
    const subfed::random_subset which{.seeds = seeds, .minimum = 0};
    for (std::uint64_t round = 0; round < 5; ++round) {
      index_set smaller(37, {});
      for (std::int64_t kept = 1; kept <= 37; ++kept) {
        const index_set larger = which({.seed = 5,
                                        .round = round,
                                        .client = 3,
                                        .group = "g",
                                        .extent = 37,
                                        .capacity = subfed::capacity::ratio(kept, 37)});
        REQUIRE(larger.size() == kept);
        bool nested = true;
        for (const std::int64_t node : smaller) nested = nested && larger.contains(node);
        CHECK(nested);
        smaller = larger;
      }
    }
  }
}

TEST_CASE("sets do not depend on the order of calls or on the thread that asks") {
  const auto ask = [](std::uint64_t client) {
    return subfed::random_subset{}(
        {.seed = 1, .round = 3, .client = client, .group = "g", .extent = 64, .capacity = 0.5});
  };
  std::array<index_set, 3> forward{ask(0), ask(1), ask(2)};
  std::array<index_set, 3> other;
  for (const std::size_t client : {2u, 0u, 1u}) other[client] = ask(client);
  CHECK(forward == other);
  CHECK(forward[0].size() == 32);

  std::vector<index_set> by_thread(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < by_thread.size(); ++t) {
    threads.emplace_back([&, t] { by_thread[t] = ask(t % 3); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < by_thread.size(); ++t) CHECK(by_thread[t] == forward[t % 3]);
}

TEST_CASE("seed, round, client and group each change the set, in their upper halves too") {
  const draw_request first{1, 2, 3, "conv1", 64, 0.5};
  const std::uint64_t upper = std::uint64_t{1} << 32;
  std::vector<draw_request> sites(10, first);
  sites[1].seed = 2;
  sites[2].round = 3;
  sites[3].client = 4;
  sites[4].group = "conv2";
  sites[5].group = "";
  sites[6].seed += upper;
  sites[7].round += upper;
  sites[8].client += upper;
  std::swap(sites[9].round, sites[9].client);
  std::set<nodes_type> sets;
  for (const draw_request& where : sites) sets.insert(nodes_of(subfed::random_subset{}(where)));
  CHECK(sets.size() == sites.size());
}

TEST_CASE("over 2000 rounds each node of a half is held 1000 times, give or take 5 sigma") {
  std::vector<int> held(64, 0);
  draw_request where{.seed = 20240229, .client = 4, .group = "g", .extent = 64, .capacity = 0.5};
  for (where.round = 0; where.round < 2000; ++where.round) {
    for (const std::int64_t node : subfed::random_subset{}(where))
      ++held[static_cast<std::size_t>(node)];
  }
  for (const int n : held) CHECK(std::abs(n - 1000) <= 112);
}

TEST_CASE("all subsets of a size are equally likely") {
  std::map<nodes_type, int> by_round;
  std::map<nodes_type, int> by_client;
  std::map<nodes_type, int> by_seed;
  std::map<nodes_type, int> by_shared;
  const auto ask = [](std::uint64_t seed, std::uint64_t round, std::uint64_t client,
                      const seed_policy& seeds = seed_policy::per_client_and_round()) {
    return nodes_of(subfed::random_subset{.seeds = seeds}({seed, round, client, "g", 5, 0.4}));
  };
  for (std::uint64_t i = 0; i < 4000; ++i) {
    ++by_round[ask(7, i, 0)];
    ++by_client[ask(7, 0, i)];
    ++by_seed[ask(i, 0, 0)];
    ++by_shared[ask(7, i, 0, seed_policy::shared())];
  }
  // C(5, 2) = 10 subsets, 9 degrees of freedom: p(33) is about 0.0001.
  for (const auto& seen : {by_round, by_client, by_seed, by_shared}) {
    CHECK(seen.size() == 10);
    CHECK(chi_square(seen, 10) < 33);
  }
}

TEST_CASE("sets of two groups, rounds, clients or seeds tell nothing about each other") {
  const auto ask = [](std::uint64_t seed, std::uint64_t round, std::uint64_t client,
                      std::string_view group) {
    return subfed::random_subset{}(
        {seed, round, client, group, 3, subfed::capacity::ratio(1, 3)})[0];
  };
  using pair = std::pair<std::int64_t, std::int64_t>;
  std::map<pair, int> groups;
  std::map<pair, int> rounds;
  std::map<pair, int> clients;
  std::map<pair, int> seeds;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::int64_t here = ask(i, i, i, "a");
    ++groups[{here, ask(i, i, i, "b")}];
    ++rounds[{here, ask(i, i + 1, i, "a")}];
    ++clients[{here, ask(i, i, i + 1, "a")}];
    ++seeds[{here, ask(i + 1, i, i, "a")}];
  }
  // 9 pairs, 8 degrees of freedom: p(31) is about 0.0001.
  for (const auto& seen : {groups, rounds, clients, seeds}) CHECK(chi_square(seen, 9) < 31);
}

TEST_CASE("per client: a set for every client, the same in all rounds") {
  const subfed::random_subset which{.seeds = seed_policy::per_client()};
  std::set<nodes_type> sets;
  for (std::uint64_t client = 0; client < 20; ++client) {
    const index_set first = which({4, 0, client, "g", 64, 0.5});
    for (const std::uint64_t round : {std::uint64_t{1}, std::uint64_t{1} << 40}) {
      CHECK(which({4, round, client, "g", 64, 0.5}) == first);
    }
    sets.insert(nodes_of(first));
  }
  CHECK(sets.size() == 20);
}

TEST_CASE("pool: every client keeps one of a few whole submodels, which are picked evenly") {
  const subfed::random_subset which{.seeds = seed_policy::pool(5)};
  const subfed::random_subset anew{.seeds = seed_policy::pool_per_round(5)};
  std::map<nodes_type, int> picked;
  std::map<nodes_type, std::set<nodes_type>> partners;
  std::set<nodes_type> of_both;
  for (std::uint64_t client = 0; client < 1000; ++client) {
    const nodes_type one = nodes_of(which({4, 0, client, "one", 64, 0.5}));
    ++picked[one];
    partners[one].insert(nodes_of(which({4, 0, client, "two", 32, 0.5})));
    for (const std::uint64_t round : {1u, 2u, 77u}) {
      CHECK(nodes_of(which({4, round, client, "one", 64, 0.5})) == one);
    }
    of_both.insert(one);
    of_both.insert(nodes_of(anew({4, client, 3, "one", 64, 0.5})));
  }
  CHECK(picked.size() == 5);
  CHECK(chi_square(picked, 5) < 23.5);  // 4 degrees of freedom: p about 0.0001
  for (const auto& [one, with] : partners) CHECK(with.size() == 1);  // groups pick together
  CHECK(of_both.size() == 5);  // one pool, however clients pick
}

TEST_CASE("pool per round: clients and rounds pick among a few whole submodels, evenly") {
  const subfed::random_subset which{.seeds = seed_policy::pool_per_round(5)};
  std::map<nodes_type, int> picked;
  std::map<nodes_type, std::set<nodes_type>> partners;
  for (std::uint64_t round = 0; round < 40; ++round) {
    for (std::uint64_t client = 0; client < 25; ++client) {
      const nodes_type one = nodes_of(which({4, round, client, "one", 64, 0.5}));
      ++picked[one];
      partners[one].insert(nodes_of(which({4, round, client, "two", 32, 0.5})));
    }
  }
  CHECK(picked.size() == 5);
  CHECK(chi_square(picked, 5) < 23.5);  // 4 degrees of freedom: p about 0.0001
  for (const auto& [one, with] : partners) CHECK(with.size() == 1);  // groups pick together
  CHECK(partners.size() == 5);

  const subfed::random_subset single{.seeds = seed_policy::pool(1)};
  CHECK(single({4, 0, 0, "g", 64, 0.5}) == single({4, 9, 7, "g", 64, 0.5}));
  CHECK(single({4, 0, 0, "g", 64, 0.5}) != single({5, 0, 0, "g", 64, 0.5}));
}

TEST_CASE("shared: one set for all clients of a round, changed every E rounds") {
  const subfed::random_subset every_round{.seeds = seed_policy::shared()};
  const index_set first = every_round({4, 0, 0, "g", 64, 0.5});
  for (std::uint64_t client = 1; client < 10; ++client) {
    CHECK(every_round({4, 0, client, "g", 64, 0.5}) == first);
  }
  CHECK(every_round({4, 1, 0, "g", 64, 0.5}) != first);

  const subfed::random_subset every_third{.seeds = seed_policy::shared(3)};
  std::set<nodes_type> sets;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const index_set here = every_third({4, round, round, "g", 64, 0.5});
    CHECK(here == every_third({4, round / 3 * 3, 0, "g", 64, 0.5}));
    sets.insert(nodes_of(here));
  }
  CHECK(sets.size() == 10);
  CHECK(every_third({4, 0, 0, "g", 64, 0.5}) != every_third({4, 0, 0, "h", 64, 0.5}));
}

TEST_CASE("a capacity of 1 keeps all nodes in their order, an empty group none") {
  CHECK(subfed::random_subset{}({.extent = 9}) == index_set::full(9));
  CHECK(subfed::random_subset{}({.extent = 0, .capacity = 0.5}) == index_set());
  CHECK(subfed::random_subset{}({.extent = 1, .capacity = 0.5}) == index_set::full(1));
  CHECK(subfed::random_subset{.minimum = 0}({.extent = 1, .capacity = 0.5}) == index_set(1, {}));
}

TEST_CASE("a pool or a number of rounds below 1 is refused") {
  CHECK(message_of([] { seed_policy::pool(0); }) ==
        "subfed: seed_policy: the pool size is 0, expected at least 1");
  CHECK(message_of([] { seed_policy::pool_per_round(0); }) ==
        "subfed: seed_policy: the pool size is 0, expected at least 1");
  CHECK(message_of([] { seed_policy::shared(0); }) ==
        "subfed: seed_policy: the number of rounds is 0, expected at least 1");
  CHECK(message_of([] { seed_policy::shared(-3); }) ==
        "subfed: seed_policy: the number of rounds is -3, expected at least 1");
  CHECK(message_of([] { subfed::random_subset{.minimum = -1}({.extent = 4}); }) ==
        "subfed: capacity: extent 4 and minimum -1 must not be negative");
}
