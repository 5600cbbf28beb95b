// SPDX-License-Identifier: MIT
#include <subfed/coverage/parameters.hpp>

#include <subfed/coverage/text.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

using subfed::count_histogram;
using subfed::index_set;
using subfed::parameter_coverage;
using subfed::submodel;
using subfed::tensor_id;
using support::message_of;
using support::seeded;

TEST_CASE("a weight is held when the nodes at both of its ends are") {
  subfed::model net;
  const auto in = net.group("in", 3);
  const auto out = net.group("out", 4);
  const auto weight = net.tensor("weight", {out, in, 3, 3});
  const auto bias = net.tensor("bias", {out});
  parameter_coverage seen(net);
  seen.record(submodel(net, {index_set(3, {0, 1}), index_set(4, {3, 0})}));
  seen.record(submodel(net, {index_set(3, {1, 2}), index_set(4, {0, 1})}));
  seen.end_round();
  // out 0 has inputs 0 once, 1 twice, 2 once; out 3 inputs 0 and 1; out 1 inputs 1 and 2.
  CHECK(seen.histogram(weight) == count_histogram{{0, 5 * 9}, {1, 6 * 9}, {2, 1 * 9}});
  CHECK(seen.histogram(bias) == count_histogram{{0, 1}, {1, 2}, {2, 1}});
  CHECK(seen.histogram() == count_histogram{{0, 46}, {1, 56}, {2, 10}});
  CHECK(seen.summary().items == net.size());
  CHECK(seen.count(weight, std::vector<std::int64_t>{0, 1, 2, 2}) == 2);
  CHECK(seen.count(weight, std::vector<std::int64_t>{2, 1, 0, 0}) == 0);
  CHECK_FALSE(seen.summary().first_full_cover.has_value());
  CHECK(seen.holders().least == 1);
  CHECK(seen.holders().most == 2);
  CHECK(seen.holders(bias).shared_by_two == 1.0 / 4);
  seen.record(submodel::full(net));
  seen.record(submodel::full(net));
  CHECK(seen.rounds() == 1);  // the second round has not ended
  CHECK(seen.summary().unseen == 46);
  seen.end_round();
  CHECK(seen.first_cover(1) == std::optional<std::int64_t>(2));
  CHECK(seen.first_cover(2) == std::optional<std::int64_t>(2));
  CHECK_FALSE(seen.first_cover(3).has_value());
  CHECK(seen.distinct_submodels() == 3);
  CHECK(seen.holders(bias).held_again == 3.0 / 4);  // of 4 nodes, 3 in the round before
  seen.record(submodel(net, {index_set(3, {0}), index_set(4, {2})}));
  seen.end_round();
  CHECK(seen.rounds_since(bias) == count_histogram{{0, 1}, {1, 3}});
  CHECK(seen.rounds_since(weight) == count_histogram{{0, 9}, {1, 11 * 9}});
}

TEST_CASE("windows that roll together hold every node alike, but far nodes never together") {
  // Nodes a and b of two groups of K that roll alike are both in a window of L when they are less
  // than L apart, the shorter way round: 2 L - 1 of K for each a, and all of them from 2 L > K on.
  for (const std::int64_t kept : {1, 3, 5, 6, 8}) {
    INFO("L = ", kept);
    constexpr std::int64_t nodes = 11;
    subfed::model net;
    const auto in = net.group("in", nodes);
    const auto out = net.group("out", nodes);
    const auto square = net.tensor("square", {out, in});
    parameter_coverage seen(net);
    subfed::coverage by_node(net);
    for (std::uint64_t j = 0; j < 4 * nodes; ++j) {
      const auto sub = subfed::draw(net, subfed::rolling{},
                                    {.round = j, .capacity = subfed::capacity::ratio(kept, nodes)});
      seen.record(sub);
      by_node.record(sub);
      seen.end_round();
      by_node.end_round();
    }
    CHECK(by_node.summary().gini == 0);
    const std::int64_t together = std::min(2 * kept - 1, nodes);
    CHECK(seen.summary(square).unseen == nodes * (nodes - together));
    CHECK(seen.distinct_submodels() == nodes);
  }
}

namespace {

/// Dense counts of each element of each tensor, and after which round all had been held m times.
struct dense {
  std::vector<std::vector<std::int64_t>> counts;
  std::vector<std::optional<std::int64_t>> cover = std::vector<std::optional<std::int64_t>>(3);
  std::vector<std::int64_t> last;  // of all elements: round, or -1
  subfed::holder_summary holders;

  dense(const oracle::network& plan, const std::vector<std::vector<oracle::holding>>& rounds) {
    for (const auto& t : plan.tensors) {
      const auto elements = support::elements_of(oracle::global_shape(plan, t));
      counts.emplace_back(static_cast<std::size_t>(elements), 0);
    }
    double total = 0, shared = 0, pairs = 0, later = 0, twice = 0;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      std::vector<std::int64_t> here;  // holders of all elements
      for (std::size_t t = 0; t < counts.size(); ++t) {
        std::vector<std::int64_t> of_tensor(counts[t].size(), 0);
        for (const auto& h : rounds[r]) {
          for (const auto n : oracle::global_numbers(plan, plan.tensors[t], h)) {
            if (n >= 0) ++of_tensor[static_cast<std::size_t>(n)];
          }
        }
        for (std::size_t n = 0; n < of_tensor.size(); ++n) counts[t][n] += of_tensor[n];
        here.insert(here.end(), of_tensor.begin(), of_tensor.end());
      }
      const auto clients = static_cast<double>(rounds[r].size());
      pairs += clients * (clients - 1) / 2;
      last.resize(here.size(), -1);
      for (std::size_t n = 0; n < here.size(); ++n) {
        const auto h = static_cast<double>(here[n]);
        total += h;
        shared += h * (h - 1) / 2;
        if (here[n] == 0) continue;
        if (holders.least == 0 || here[n] < holders.least) holders.least = here[n];
        holders.most = std::max(holders.most, here[n]);
        const auto round = static_cast<std::int64_t>(r);
        later += r > 0;
        twice += r > 0 && last[n] == round - 1;
        last[n] = round;
      }
      for (std::size_t m = 1; m <= cover.size(); ++m) {
        bool all = true;
        for (const auto& own : counts) {
          for (const auto x : own) all = all && x >= static_cast<std::int64_t>(m);
        }
        if (all && !cover[m - 1]) cover[m - 1] = static_cast<std::int64_t>(r) + 1;
      }
    }
    std::size_t elements = 0;
    for (const auto& own : counts) elements += own.size();
    if (elements == 0) cover.assign(cover.size(), 0);
    if (elements == 0) return;
    holders.mean = total / static_cast<double>(elements * rounds.size());
    if (later > 0) holders.held_again = twice / later;
    if (pairs > 0) holders.shared_by_two = shared / pairs / static_cast<double>(elements);
  }
};

parameter_coverage recorded(const subfed::model& net,
                            const std::vector<std::vector<oracle::holding>>& rounds,
                            std::size_t begin, std::size_t end) {
  parameter_coverage seen(net);
  for (std::size_t r = begin; r < end; ++r) {
    for (const auto& h : rounds[r]) seen.record(support::submodel_of(net, h));
    seen.end_round();
  }
  return seen;
}

}  // namespace

TEST_CASE("counts, first covers and holders are those of dense tensors of counts; shards join") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto plan = support::random_network(random);
    const auto net = support::model_of(plan);
    std::vector<std::vector<oracle::holding>> rounds(
        static_cast<std::size_t>(random.between(1, 12)));
    for (auto& round : rounds) {
      const std::int64_t clients = random.between(0, 4);
      for (std::int64_t c = 0; c < clients; ++c) {
        oracle::holding h = support::random_holding(random, plan);
        if (random.one_in(3)) {  // often all of the model, so that covers happen
          for (std::size_t g = 0; g < plan.groups.size(); ++g) {
            h.nodes[g].clear();
            for (std::int64_t n = 0; n < plan.groups[g]; ++n) h.nodes[g].push_back(n);
            h.taking_part[g] = h.nodes[g];
          }
        }
        round.push_back(std::move(h));
      }
    }
    const dense expected(plan, rounds);
    const parameter_coverage seen = recorded(net, rounds, 0, rounds.size());
    count_histogram whole;
    for (std::size_t t = 0; t < expected.counts.size(); ++t) {
      count_histogram own;
      const auto shape = oracle::global_shape(plan, plan.tensors[t]);
      const auto indices = support::all_indices(shape);
      for (std::size_t n = 0; n < expected.counts[t].size(); ++n) {
        ++own[expected.counts[t][n]];
        ++whole[expected.counts[t][n]];
        if (n % 7 == 0) CHECK(seen.count(tensor_id(t), indices[n]) == expected.counts[t][n]);
      }
      CHECK(seen.histogram(tensor_id(t)) == own);
    }
    CHECK(seen.histogram() == whole);
    for (std::int64_t m = 1; m <= 3; ++m) {
      INFO("m = ", m);
      CHECK(seen.first_cover(m) == expected.cover[static_cast<std::size_t>(m - 1)]);
    }
    const auto holders = seen.holders();
    CHECK(holders.least == expected.holders.least);
    CHECK(holders.most == expected.holders.most);
    CHECK(holders.mean == doctest::Approx(expected.holders.mean).epsilon(1e-12));
    CHECK(holders.held_again == doctest::Approx(expected.holders.held_again).epsilon(1e-12));
    CHECK(holders.shared_by_two == doctest::Approx(expected.holders.shared_by_two).epsilon(1e-12));
    count_histogram since;
    for (const auto last : expected.last) ++since[last < 0 ? -1 : seen.rounds() - 1 - last];
    CHECK(seen.rounds_since() == since);

    const auto cut =
        static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(rounds.size())));
    parameter_coverage joined = recorded(net, rounds, 0, cut);
    joined.append(recorded(net, rounds, cut, rounds.size()));
    CHECK(to_text(joined) == to_text(seen));

    auto left = rounds, right = rounds;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      const auto half = static_cast<std::ptrdiff_t>(rounds[r].size() / 2);
      left[r].erase(left[r].begin() + half, left[r].end());
      right[r].erase(right[r].begin(), right[r].begin() + half);
    }
    parameter_coverage merged = recorded(net, left, 0, rounds.size());
    merged.merge(recorded(net, right, 0, rounds.size()));
    CHECK(to_text(merged) == to_text(seen));
    for (auto& round : rounds) random.shuffle(round);
    CHECK(recorded(net, rounds, 0, rounds.size()).histogram() == whole);
  }
}

TEST_CASE("what is of another model, or outside of a tensor, is refused") {
  subfed::model net, other;
  const auto g = net.group("g", 3);
  const auto t = net.tensor("t", {g, 2});
  other.group("g", 4);
  parameter_coverage seen(net);
  CHECK(message_of([&] { seen.record(submodel::full(other)); }) ==
        "subfed: parameter_coverage: the submodel is of another model");
  CHECK(message_of([&] { seen.append(parameter_coverage(other)); }) ==
        "subfed: parameter_coverage: the coverage to join is of another model");
  CHECK(message_of([&] {
          seen.count(t, std::vector<std::int64_t>{3, 0});
        }) == "subfed: parameter_coverage: index (3, 0) is asked of tensor 't' of shape (3, 2)");
  CHECK(message_of([&] { seen.count(t, std::vector<std::int64_t>{1}); }) ==
        "subfed: parameter_coverage: index (1,) is asked of tensor 't' of shape (3, 2)");
  CHECK(message_of([&] { seen.first_cover(0); }) ==
        "subfed: parameter_coverage: the first cover 0 times is asked for, expected at least 1");
  parameter_coverage ended(net);
  ended.end_round();
  CHECK(message_of([&] { seen.merge(ended); }) ==
        "subfed: parameter_coverage: the shard to merge has 1 rounds, expected 0");
  seen.record(submodel::full(net));
  CHECK(message_of([&] { seen.append(ended); }) ==
        "subfed: parameter_coverage: clients of a round that has not ended are recorded; end it "
        "before appending");
  seen.end_round();
  CHECK(seen.histogram() == count_histogram{{1, 6}});
}

TEST_CASE("a full window that wraps is the submodel of the full set") {
  subfed::model net;
  const auto g = net.group("g", 8);
  net.tensor("w", {g});
  parameter_coverage seen(net);
  seen.record(submodel(net, {index_set::window(8, 3, 8)}));
  seen.record(submodel(net, {index_set::full(8)}));
  seen.end_round();
  CHECK(seen.distinct_submodels() == 1);
  CHECK(seen.histogram() == count_histogram{{2, 8}});
}

TEST_CASE("all tensors together leave out those that stay with their client") {
  subfed::model net;
  const auto g = net.group("g", 3);
  const auto h = net.group("h", 2);
  const auto w = net.tensor("w", {g});
  net.tensor("mean", {g}, subfed::role::statistic);
  const auto head = net.tensor("head", {h, 5}, subfed::role::local);
  parameter_coverage seen(net);
  seen.record(submodel(net, {index_set::full(3), index_set(2, {1})}));
  seen.end_round();
  CHECK(seen.histogram() == count_histogram{{1, 6}});
  CHECK(seen.summary().items == 6);
  CHECK(seen.first_cover(1) == 1);  // nobody waits for the head
  CHECK(seen.rounds_since() == count_histogram{{0, 6}});
  CHECK(seen.histogram(w) == count_histogram{{1, 3}});
  CHECK(seen.histogram(head) == count_histogram{{0, 5}, {1, 5}});
}
