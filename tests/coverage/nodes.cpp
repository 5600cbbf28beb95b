// SPDX-License-Identifier: MIT
#include <subfed/coverage/nodes.hpp>

#include <subfed/coverage/text.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>
#include <support/far_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
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

}  // namespace

TEST_CASE("rolling 3 of 8 nodes forward: counts after 5, 6 and 8 rounds") {
  subfed::model net;
  const auto g = net.group("g", 8);
  const auto capacity = subfed::capacity::ratio(3, 8);

  const coverage five = rolled(net, 5, capacity);
  CHECK(counts_of(five, g) == counts_type{1, 2, 3, 3, 3, 2, 1, 0});
  const coverage_summary s = five.summary(g);
  CHECK(s.items == 8);
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

TEST_CASE("a simple ensemble covers in its first round") {
  subfed::model net;
  const auto g = net.group("g", 12);
  coverage seen(net);
  for (std::uint64_t client = 0; client < 4; ++client) {
    seen.record(subfed::draw(net, subfed::simple_ensemble{}, {.client = client, .capacity = 0.25}));
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
    seen.record(
        subfed::draw(net, subfed::random_subset{}, {.seed = 3, .round = j, .capacity = 0.25}));
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
  CHECK(seen.rounds_since(g) == counts_type{-1, -1, -1, -1});  // the round has not ended
  CHECK(counts_of(seen, g) == counts_type{0, 0, 0, 0});
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

TEST_CASE("holders, what is held again and what two clients share, by hand") {
  subfed::model net;
  const auto g = net.group("g", 5);
  coverage seen(net);
  CHECK(seen.holders(g).least == 0);
  seen.record(submodel(net, {index_set(5, {0, 1, 2})}));
  seen.record(submodel(net, {index_set(5, {2, 1})}));
  seen.end_round();
  CHECK(seen.holders(g).held_again == 0);
  CHECK(seen.holders(g).shared_by_two == 2.0 / 5);  // nodes 1 and 2
  seen.record(submodel(net, {index_set(5, {4, 2, 1})}));
  seen.end_round();
  const auto h = seen.holders(g);
  CHECK(h.mean == 8.0 / 10);
  CHECK(h.least == 1);
  CHECK(h.most == 2);
  CHECK(h.held_again == 2.0 / 3);     // of 1, 2, 4
  CHECK(h.shared_by_two == 2.0 / 5);  // one pair, in the first round
  const auto by_number = seen.holder_counts(g);
  CHECK(counts_type(by_number.begin(), by_number.end()) == counts_type{4, 4, 2});
}

TEST_CASE(
    "rolling sets hold L - step nodes again, and all clients of a round share their windows") {
  subfed::model net;
  const auto g = net.group("g", 20);
  for (const std::int64_t step : {1, 3, 7, 8, 15}) {
    coverage seen(net);
    for (std::uint64_t j = 0; j < 40; ++j) {
      for (std::uint64_t c = 0; c < 3; ++c) {
        seen.record(subfed::draw(net, subfed::rolling{.step = step},
                                 {.round = j, .client = c, .capacity = 0.4}));
      }
      seen.end_round();
    }
    INFO("step ", step);
    // A window of 8 of 20 meets the next one in front, and at the back when the step is over 12.
    const auto shared = std::max<std::int64_t>(8 - step, 0) + std::max<std::int64_t>(step - 12, 0);
    CHECK(seen.holders(g).held_again == doctest::Approx(static_cast<double>(shared) / 8));
    CHECK(seen.holders(g).least == 3);
    CHECK(seen.holders(g).shared_by_two == doctest::Approx(8.0 / 20));
  }
}

namespace {

/// Clients that each hold some nodes of each group, round after round.
struct record_book {
  oracle::network plan;
  subfed::model net;
  std::vector<std::vector<oracle::holding>> rounds;

  explicit record_book(seeded& random)
      : plan(support::random_network(random)), net(support::model_of(plan)) {
    rounds.resize(static_cast<std::size_t>(random.between(1, 7)));
    for (auto& round : rounds) {
      const std::int64_t clients = random.between(0, 3);
      for (std::int64_t c = 0; c < clients; ++c) {
        round.push_back(support::random_holding(random, plan));
      }
    }
  }
  coverage recorded(std::size_t begin, std::size_t end, std::int64_t times) const {
    coverage seen(net, times);
    for (std::size_t r = begin; r < end; ++r) {
      for (const auto& h : rounds[r]) seen.record(support::submodel_of(net, h));
      seen.end_round();
    }
    return seen;
  }
};

/// The nodes that a client has taking part, one flag a node.
std::vector<int> flags(const oracle::network& plan, const oracle::holding& h, std::size_t g) {
  std::vector<int> out(static_cast<std::size_t>(plan.groups[g]), 0);
  for (const auto node : h.nodes[g]) {
    const auto& part = h.taking_part[g];
    if (std::find(part.begin(), part.end(), node) != part.end()) {
      out[static_cast<std::size_t>(node)] = 1;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("all numbers are those of plain lists, for any record") {
  constexpr std::int64_t times = 3;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const record_book book(random);
    const coverage seen = book.recorded(0, book.rounds.size(), times);
    counts_type joined;
    std::vector<std::optional<std::int64_t>> whole(times, 0);
    for (std::size_t g = 0; g < book.plan.groups.size(); ++g) {
      const subfed::group_id id(g);
      const auto nodes = static_cast<std::size_t>(book.plan.groups[g]);
      counts_type counts(nodes, 0), since(nodes, -1), by_number(9, 0);
      std::vector<std::optional<std::int64_t>> cover(times);
      std::vector<int> before(nodes, 0);
      std::int64_t both = 0, later = 0, pairs = 0, shared = 0;
      for (std::size_t r = 0; r < book.rounds.size(); ++r) {
        std::vector<int> holders(nodes, 0);
        for (std::size_t c = 0; c < book.rounds[r].size(); ++c) {
          const auto own = flags(book.plan, book.rounds[r][c], g);
          for (std::size_t n = 0; n < nodes; ++n) holders[n] += own[n];
          for (std::size_t d = 0; d < c; ++d) {
            const auto other = flags(book.plan, book.rounds[r][d], g);
            for (std::size_t n = 0; n < nodes; ++n) shared += own[n] * other[n];
            ++pairs;
          }
        }
        for (std::size_t n = 0; n < nodes; ++n) {
          counts[n] += holders[n];
          if (since[n] >= 0) ++since[n];
          if (holders[n] > 0) since[n] = 0;
          ++by_number[static_cast<std::size_t>(holders[n])];
          if (r > 0) later += holders[n] > 0;
          if (r > 0) both += holders[n] > 0 && before[n] > 0;
        }
        before = holders;
        for (std::int64_t m = 1; m <= times; ++m) {
          auto& own = cover[static_cast<std::size_t>(m - 1)];
          const bool all =
              std::all_of(counts.begin(), counts.end(), [m](auto x) { return x >= m; });
          if (all && !own) own = static_cast<std::int64_t>(r) + 1;
        }
      }
      if (nodes == 0) std::fill(cover.begin(), cover.end(), 0);
      CHECK(counts_of(seen, id) == counts);
      CHECK(seen.rounds_since(id) == since);
      while (by_number.size() > 1 && by_number.back() == 0) by_number.pop_back();
      const auto found = seen.holder_counts(id);
      CHECK(counts_type(found.begin(), found.end()) == by_number);
      const auto h = seen.holders(id);
      CHECK(h.held_again ==
            (later > 0 ? static_cast<double>(both) / static_cast<double>(later) : 0));
      CHECK(h.shared_by_two ==
            doctest::Approx(pairs > 0 && nodes > 0
                                ? static_cast<double>(shared) / static_cast<double>(pairs) /
                                      static_cast<double>(nodes)
                                : 0));
      CHECK(seen.summary(id).items == book.plan.groups[g]);
      CHECK(seen.summary(id).first_full_cover == cover[0]);
      for (std::int64_t m = 1; m <= times; ++m) {
        auto& all = whole[static_cast<std::size_t>(m - 1)];
        const auto& own = cover[static_cast<std::size_t>(m - 1)];
        CHECK(seen.first_cover(id, m) == own);
        all = all && own ? std::optional(std::max(*all, *own)) : std::nullopt;
      }
      joined.insert(joined.end(), counts.begin(), counts.end());
    }
    for (std::int64_t m = 1; m <= times; ++m) {
      CHECK(seen.first_cover(m) == whole[static_cast<std::size_t>(m - 1)]);
    }
    CHECK(seen.complete() == whole[times - 1].has_value());
    CHECK(seen.summary().items == static_cast<std::int64_t>(joined.size()));
    CHECK(seen.summary().gini == subfed::evenness_of(joined).gini);
  }
}

TEST_CASE("neither the order of a round's clients nor their numbers count") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    record_book book(random);
    const std::string before = subfed::to_text(book.recorded(0, book.rounds.size(), 2));
    for (auto& round : book.rounds) random.shuffle(round);
    coverage seen(book.net, 2);
    std::uint64_t client = 1000;
    for (const auto& round : book.rounds) {
      for (const auto& h : round) {
        seen.record(support::submodel_of(book.net, h, {.client = --client}));
      }
      seen.end_round();
    }
    CHECK(subfed::to_text(seen) == before);
  }
}

TEST_CASE(
    "shards of rounds append, and shards of a round's clients merge, to what one would record") {
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const record_book book(random);
    const std::size_t end = book.rounds.size();
    const coverage one = book.recorded(0, end, 3);
    const auto cut = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(end)));
    coverage joined = book.recorded(0, cut, 3);
    joined.append(book.recorded(cut, end, 3));
    CHECK(subfed::to_text(joined) == subfed::to_text(one));
    CHECK(joined.complete() == one.complete());

    coverage central(book.net, 3);
    for (const auto& round : book.rounds) {
      coverage shards[] = {coverage(book.net, 3), coverage(book.net, 3)};
      for (const auto& h : round) {
        shards[random.between(0, 1)].record(support::submodel_of(book.net, h));
      }
      for (const auto& shard : shards) central.merge(shard);
      central.end_round();
    }
    CHECK(subfed::to_text(central) == subfed::to_text(one));

    coverage twice = one;
    twice.append(twice);
    CHECK(twice.rounds() == 2 * one.rounds());
    for (std::size_t g = 0; g < book.plan.groups.size(); ++g) {
      const auto counts = one.counts(subfed::group_id(g));
      const auto doubled = twice.counts(subfed::group_id(g));
      for (std::size_t n = 0; n < counts.size(); ++n) CHECK(doubled[n] == 2 * counts[n]);
    }
  }
}

TEST_CASE("the summary of all groups leaves out those that no scheme cuts") {
  subfed::model net;
  net.group("pixels", 100, cut::never);
  const auto g = net.group("hidden", 4);
  coverage seen(net);
  seen.record(subfed::draw(net, subfed::prefix{}, {.capacity = 0.5}));
  seen.end_round();
  CHECK(seen.summary().items == 4);
  CHECK(seen.summary().unseen == 2);
  CHECK(seen.summary().gini == seen.summary(g).gini);
}

TEST_CASE("a group without nodes, and a model without groups, are covered and even") {
  subfed::model net;
  const auto g = net.group("nobody", 0);
  coverage seen(net);
  CHECK(seen.summary(g).items == 0);
  CHECK(seen.summary(g).unseen_share == 0);
  seen.end_round();
  CHECK(seen.summary(g).gini == 0);
  CHECK(seen.summary(g).min == 0);
  CHECK(seen.summary(g).first_full_cover == std::optional<std::int64_t>(0));  // nothing to hold
  const coverage none{subfed::model()};
  CHECK(none.summary().items == 0);
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
  seen.end_round();
  CHECK(counts_of(seen, g) == counts_type{0, 1, 0});
}

TEST_CASE("what does not belong together is not joined, and covers are kept as often as asked") {
  subfed::model net;
  const auto g = net.group("g", 3);
  subfed::model other;
  other.group("g", 4);
  CHECK(message_of([&] { coverage(net, 0); }) ==
        "subfed: coverage: first covers are asked for up to 0 times, expected at least 1");
  coverage seen(net, 2);
  const std::string before = subfed::to_text(seen);
  CHECK(message_of([&] { seen.append(coverage(other, 2)); }) ==
        "subfed: coverage: the coverage to join is of another model");
  CHECK(message_of([&] { seen.merge(coverage(net, 1)); }) ==
        "subfed: coverage: the coverage to join keeps first covers up to 1 times, expected 2");
  coverage ended(net, 2);
  ended.end_round();
  CHECK(message_of([&] { seen.merge(ended); }) ==
        "subfed: coverage: the shard to merge has ended 1 rounds, expected none");
  for (const std::int64_t m : {0, 3}) {
    CHECK(message_of([&] { seen.first_cover(g, m); }) ==
          "subfed: coverage: the first cover " + std::to_string(m) +
              " times is asked for, but covers are kept for 1 to 2 times");
    CHECK(message_of([&] { seen.first_cover(m); }) != "nothing was thrown");
  }
  CHECK(subfed::to_text(seen) == before);
  seen.record(submodel::full(net));
  CHECK(message_of([&] { seen.append(ended); }) ==
        "subfed: coverage: 1 clients of a round that has not ended are recorded; end it before "
        "appending");
}

TEST_CASE("sums of coverage that would leave 64 bits are refused, and nothing is changed") {
  subfed::model net;
  const auto g = net.group("g", 3);
  const submodel full = submodel::full(net);
  coverage seen(net);
  seen.record(full);
  seen.record(full);
  seen.end_round();
  // 3 nodes: at most 2^62 / 3 clients, so 2 * 2^59 and no more.
  std::string message = "nothing was thrown";
  int doublings = 0;
  while (message == "nothing was thrown" && ++doublings < 100) {
    message = support::message_of([&] { seen.append(seen); });
  }
  CHECK(message ==
        "subfed: coverage: the clients of all rounds are over 2^62 / (nodes of the largest group)");
  CHECK(doublings == 60);
  CHECK(seen.clients() == std::int64_t{1} << 60);
  CHECK(seen.rounds() == std::int64_t{1} << 59);
  CHECK(seen.counts(g)[2] == std::int64_t{1} << 60);
  CHECK(seen.holders(g).mean == 2);

  coverage shard(net);
  shard.record(full);
  message = "nothing was thrown";
  for (doublings = 0; message == "nothing was thrown" && doublings < 100; ++doublings) {
    message = support::message_of([&] { shard.merge(shard); });
  }
  CHECK(message == "subfed: coverage: more than 2^31 clients take part in a round");
  CHECK(doublings == 32);
}

TEST_CASE("first covers of more numbers than memory can have are refused") {
  subfed::model net;
  net.group("small", 4);
  const std::int64_t many = std::int64_t{1} << 62;
  CHECK(
      support::message_of([&] { coverage(net, many); }) ==
      "subfed: coverage: first covers of 4 nodes of group 'small' up to 4611686018427387904 times "
      "are over 2^59 numbers");
  net.group("empty", 0);
  subfed::model wide;
  wide.group("wide", std::numeric_limits<std::int64_t>::max());
  CHECK(support::message_of([&] { coverage(wide, 1); }).find("are over 2^59 numbers") !=
        std::string::npos);
}

TEST_CASE("a model without nodes needs no memory for first covers" *
          doctest::skip(!support::has_far_addresses)) {
  subfed::model none;
  none.group("empty", 0);
  CHECK_NOTHROW(coverage(none, std::int64_t{1} << 62));
}
