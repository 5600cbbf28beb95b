// SPDX-License-Identifier: MIT
#include <subfed/coverage/cohort_model.hpp>

#include <support/checks.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using subfed::capacity;
using subfed::capacity_assignment;
using subfed::capacity_mix;
using subfed::cohort_member;
using subfed::cohort_model;
using subfed::cohort_options;
using support::message_of;

namespace {

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum;
}

}  // namespace

TEST_CASE("a participation is a decimal, as a capacity is: 0.29 of 50 clients are 14.5, so 15") {
  const auto asked = [](std::int64_t clients, double participation) {
    return cohort_model({.clients = clients, .participation = participation}).asked();
  };
  CHECK(asked(50, 0.29) == 15);
  CHECK(asked(100, 0.565) == 57);
  CHECK(asked(100, 0.575) == 58);
  CHECK(asked(100, 0.564) == 56);
}

TEST_CASE("the presets are the paper's mixes") {
  const cohort_model income({.mix = capacity_mix::income()});
  CHECK(income.options().mix.classes.front().capacity.value() == 1);
  CHECK(income.options().mix.classes.back().capacity.value() == 1.0 / 16);
  CHECK(income.share(0) == doctest::Approx(0.103).epsilon(2e-3));
  CHECK(income.share(4) == doctest::Approx(0.543).epsilon(2e-3));
  double sum = 0;
  for (std::size_t c = 0; c < 5; ++c) sum += income.share(c);
  CHECK(sum == doctest::Approx(1));
  const cohort_model uniform({.mix = capacity_mix::uniform()});
  for (std::size_t c = 0; c < 5; ++c) CHECK(uniform.share(c) == doctest::Approx(0.2));
  CHECK(capacity_mix::two_classes(1.0, 0.25, 0.3).classes[0].share == 0.3);
  CHECK(capacity_mix::two_classes(1.0, 0.25, 0).classes.size() == 1);
  CHECK(capacity_mix::two_classes(1.0, 0.25, 1).classes[0].capacity.value() == 1);
}

TEST_CASE("a round's members are distinct, ascending, as many as asked, and always the same") {
  for (const double participation : {0.01, 0.1, 0.37, 0.99, 1.0}) {
    INFO("participation ", participation);
    const cohort_options options{
        .clients = 150, .participation = participation, .mix = capacity_mix::uniform(), .seed = 4};
    const cohort_model model(options), again(options);
    CHECK(model.asked() == static_cast<std::int64_t>(std::floor(150 * participation + 0.5)));
    for (const std::uint64_t round : {0u, 1u, 77u}) {
      const auto members = model.members(round);
      CHECK(static_cast<std::int64_t>(members.size()) == model.asked());
      for (std::size_t i = 0; i < members.size(); ++i) {
        CHECK(members[i].client < 150);
        if (i > 0) CHECK(members[i].client > members[i - 1].client);
        CHECK(members[i].client_class == model.class_of(members[i].client, round));
        CHECK(members[i].capacity == options.mix.classes[members[i].client_class].capacity);
      }
      CHECK(again.members(round) == members);
    }
    if (participation < 0.9) CHECK(model.members(0) != model.members(1));
  }
}

TEST_CASE("fixed classes have their shares of the clients, and keep them") {
  const cohort_model model({.clients = 1001, .mix = capacity_mix::income(), .seed = 9});
  std::vector<std::int64_t> numbers(5, 0);
  for (std::uint64_t c = 0; c < 1001; ++c) {
    ++numbers[model.class_of(c, 0)];
    CHECK(model.class_of(c, 0) == model.class_of(c, 12345));
  }
  CHECK(numbers == std::vector<std::int64_t>{103, 80, 153, 122, 543});
  // Not in blocks: neighbours are of the same class as often as any two clients are.
  std::int64_t same = 0;
  for (std::uint64_t c = 0; c + 1 < 1001; ++c)
    same += model.class_of(c, 0) == model.class_of(c + 1, 0);
  CHECK(same < 480);  // 0.35 * 1000 and eight standard deviations
  const cohort_model few({.clients = 3, .participation = 1, .mix = capacity_mix::uniform()});
  for (std::uint64_t c = 0; c < 3; ++c) CHECK(few.class_of(c, 0) < 5);
}

TEST_CASE("redrawn classes, members and dropouts are as frequent as they should be") {
  // Frequencies over 20000 rounds within 5.6 standard deviations: false alarm below 3e-8 each, and
  // the seed is fixed.
  constexpr std::int64_t rounds = 20000;
  const cohort_model model({.clients = 40,
                            .participation = 0.25,
                            .mix = capacity_mix::income(),
                            .capacities = capacity_assignment::redrawn,
                            .dropout = 0.2,
                            .seed = 11});
  std::vector<double> by_client(40, 0), by_class(5, 0);
  double both = 0;   // clients 3 and 4 in one round
  double again = 0;  // client 3 in two rounds in a row
  bool before = false;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rounds); ++r) {
    bool three = false, four = false;
    for (const cohort_member& m : model.members(r)) {
      ++by_client[static_cast<std::size_t>(m.client)];
      ++by_class[m.client_class];
      three = three || m.client == 3;
      four = four || m.client == 4;
    }
    both += three && four;
    again += three && before;
    before = three;
  }
  const auto near = [](double found, double trials, double p) {
    return std::fabs(found - trials * p) < 5.6 * std::sqrt(trials * p * (1 - p));
  };
  for (const double n : by_client) CHECK(near(n, rounds, 0.25 * 0.8));
  const double members = sum_of(by_class);
  CHECK(near(members, rounds * 10, 0.8));
  for (std::size_t c = 0; c < 5; ++c) CHECK(near(by_class[c], members, model.share(c)));
  CHECK(near(both, rounds, 10.0 / 40 * 9 / 39 * 0.64));
  CHECK(near(again, rounds - 1, 0.04));
}

TEST_CASE("a cohort is asked for as many rounds as it is to stay, and drops out round by round") {
  const cohort_model two({.participation = 0.2, .cohort_rounds = 2, .seed = 4});
  const cohort_model one({.participation = 0.2, .seed = 4});
  for (std::uint64_t pair = 0; pair < 20; ++pair) {
    CHECK(two.members(2 * pair) == two.members(2 * pair + 1));
    CHECK(two.members(2 * pair) == one.members(pair));
    CHECK(two.members(2 * pair + 1) != two.members(2 * pair + 2));
  }
  const cohort_model leaky({.participation = 0.5, .cohort_rounds = 3, .dropout = 0.5, .seed = 4});
  CHECK(leaky.members(0) != leaky.members(1));
  const cohort_model redrawn({.participation = 0.5,
                              .cohort_rounds = 2,
                              .mix = capacity_mix::uniform(),
                              .capacities = capacity_assignment::redrawn,
                              .seed = 4});
  CHECK(redrawn.members(0) != redrawn.members(1));  // other capacities
}

TEST_CASE("all drop out, or none; one seed decides everything") {
  CHECK(cohort_model({.dropout = 1}).members(5).empty());
  CHECK(cohort_model({.dropout = 0}).members(5).size() == 10);
  CHECK(cohort_model({.seed = 1}).members(5) != cohort_model({.seed = 2}).members(5));
}

TEST_CASE(
    "shares are any positive weights, as numbers of people or the least and the largest double") {
  const auto shares = [](double first, double second) {
    const cohort_model cohort({.mix = {{{capacity(1.0), first}, {capacity(0.5), second}}}});
    return std::pair(cohort.share(0), cohort.share(1));
  };
  CHECK(shares(3.6e9, 1.2e9) == std::pair(0.75, 0.25));
  CHECK(shares(1e308, 1e308) == std::pair(0.5, 0.5));
  CHECK(shares(5e-324, 5e-324) == std::pair(0.5, 0.5));
  CHECK(shares(0.1, 0.7) == std::pair(0.1 / (0.1 + 0.7), 0.7 / (0.1 + 0.7)));
  const std::pair<double, double> apart = shares(1e308, 5e-324);
  CHECK(apart.first == 1);
  CHECK(apart.second < 1e-300);
  const cohort_model fixed({.mix = {{{capacity(0.5), 5e-324}, {capacity(1.0), 1e308}}},
                            .capacities = subfed::capacity_assignment::fixed});
  for (std::uint64_t c = 0; c < 100; ++c) CHECK(fixed.class_of(c, 0) == 1);
}

TEST_CASE("options that cannot be meant are refused") {
  const auto refusal = [](cohort_options o) { return message_of([&] { cohort_model model(o); }); };
  const std::string start = "subfed: cohort_model: ";
  CHECK(refusal({.clients = 0}) == start + "the number of clients is 0, expected 1 to 2^31");
  CHECK(refusal({.participation = 0}) ==
        start + "the participation is 0, expected more than 0 and at most 1");
  CHECK(refusal({.participation = std::numeric_limits<double>::quiet_NaN()}) ==
        start + "the participation is NaN, expected more than 0 and at most 1");
  CHECK(refusal({.clients = 10, .participation = 0.01}) ==
        start + "a participation of 0.01 asks none of 10 clients");
  CHECK(refusal({.cohort_rounds = 0}) ==
        start + "a cohort is asked for 0 rounds, expected at least 1");
  CHECK(refusal({.dropout = 1.5}) == start + "the dropout is 1.5, expected 0 to 1");
  CHECK(refusal({.mix = {{}}}) == start + "the mix has no capacity");
  CHECK(refusal({.mix = {{{capacity(0.5), -1}}}}) ==
        start + "the share of capacity 0.5 is -1, expected a positive number");
  CHECK(refusal({.mix = {{{capacity(0.5), 0}}}}) ==
        start + "the share of capacity 0.5 is 0, expected a positive number");
  for (const double share :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(refusal({.mix = {{{capacity(0.5), share}}}}) != "nothing was thrown");
  }
  CHECK(message_of([] { capacity_mix::two_classes(1.0, 0.5, 1.5); }) ==
        "subfed: capacity_mix: the share of large clients is 1.5, expected 0 to 1");
}

TEST_CASE("a client or a class that does not exist is refused") {
  const subfed::cohort_model cohort(
      {.clients = 3, .participation = 1, .mix = capacity_mix::uniform()});
  CHECK(cohort.class_of(2, 0) < 5);
  CHECK(message_of([&] { cohort.class_of(3, 0); }) ==
        "subfed: cohort_model: client 3 is asked for, but there are 3");
  CHECK(message_of([&] { cohort.class_of(0xFFFFFFFFFFFFFFFF, 0); }) ==
        "subfed: cohort_model: client 18446744073709551615 is asked for, but there are 3");
  CHECK(message_of([&] { cohort.share(5); }) ==
        "subfed: cohort_model: class number 5 is asked for, but the mix has 5");
}
