// SPDX-License-Identifier: MIT
#include <subfed/secure/secure_round.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>
#include <support/secure_rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

using subfed::index_set;
using subfed::secure_options;
using subfed::secure_participant;
using subfed::secure_round;
using subfed::submodel;
using support::message_of;
using support::seeded;

namespace {

struct round_setting {
  subfed::model net;
  subfed::group_id g = net.group("g", 8);
  subfed::group_id h = net.group("h", 4);
  subfed::tensor_id w = net.tensor("w", {g, h});
  secure_options options{.average = {.sums = subfed::fixed_point{.bound = 1, .clients = 10}},
                         .threshold = 4};

  secure_participant client(std::uint64_t number, double capacity = 0.5, double weight = 1) const {
    return {subfed::draw(net, subfed::random_subset{}, {.client = number, .capacity = capacity}),
            weight};
  }
  std::vector<secure_participant> five() const {
    return {client(4), client(1), client(9), client(2), client(3)};
  }
  std::string refusal(std::vector<secure_participant> all) const {
    return message_of([&] { secure_round(std::move(all), options); });
  }
};

}  // namespace

TEST_CASE("a parameter is released where the number of its holders says so") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("number ", n);
    seeded random(n);
    const support::cohort<float> group{random, support::random_network(random),
                                       random.between(3, 9), [](seeded&) { return 1.f; },
                                       [](seeded&) { return 1.0; }};
    secure_options options{.average = {.sums = subfed::fixed_point{.clients = 10}}};
    options.threshold = static_cast<std::int64_t>(group.clients.size()) / 2 + 1;
    options.expected_dropouts = random.between(0, 2);
    const secure_round round(support::participants_of(group.updates()), options);
    for (std::size_t t = 0; t < group.plan.tensors.size(); ++t) {
      std::vector<std::int64_t> holders(group.globals[t].elements().size(), 0);
      for (const auto& c : group.clients) {
        for (const std::int64_t number :
             oracle::global_numbers(group.plan, group.plan.tensors[t], c.holds)) {
          if (number >= 0) ++holders[static_cast<std::size_t>(number)];
        }
      }
      for (std::size_t i = 0; i < holders.size(); ++i) {
        CHECK(round.released().test(subfed::tensor_id(t), static_cast<std::int64_t>(i)) ==
              (holders[i] >= 3 + options.expected_dropouts));
      }
    }
  }
}

TEST_CASE("participants are in the order of their numbers, with the weights of fixed-point sums") {
  const round_setting setting;
  auto all = setting.five();
  all[0].weight = 1.0 / 3;
  const secure_round round(all, setting.options);
  CHECK(round.parent() == setting.net);
  std::vector<std::uint64_t> numbers;
  for (const auto& p : round.participants()) numbers.push_back(p.sub.origin().client);
  CHECK(numbers == std::vector<std::uint64_t>{1, 2, 3, 4, 9});
  CHECK(round.participants()[3].weight ==
        subfed::detail::fixed_weight(1.0 / 3, *setting.options.average.sums));
}

TEST_CASE("participants that do not fit together are refused by name") {
  round_setting setting;
  auto all = setting.five();
  all.push_back(setting.client(2));
  CHECK(setting.refusal(all) == "subfed: secure: client 2 is listed twice");
  all = setting.five();
  all[2].weight = 0;
  CHECK(setting.refusal(all) == "subfed: secure: client 9 has the weight 0");
  all[2].weight = -1;
  CHECK(
      setting.refusal(all).starts_with("subfed: secure: the weight of client 9 of round 0 is -1"));
  all[2].weight = 7;
  CHECK(setting.refusal(all).starts_with(
      "subfed: secure: the weights of the cohort add up to 11, more than the total_weight"));
  all[2].weight = 11;
  CHECK(
      setting.refusal(all).starts_with("subfed: secure: the weight of client 9 of round 0 is 11"));
  all = setting.five();
  subfed::model other;
  other.group("g", 8);
  all[2].sub = submodel(other, {index_set::full(8)}, {.client = 9});
  CHECK(setting.refusal(all) == "subfed: secure: client 9 has a submodel of another model");
  all = setting.five();
  all[2].sub = subfed::draw(setting.net, subfed::random_subset{}, {.round = 1, .client = 9});
  CHECK(setting.refusal(all) == "subfed: secure: client 9 has a submodel of round 1");
  setting.options.average.round = 6;
  CHECK(setting.refusal(setting.five()) == "subfed: secure: client 1 has a submodel of round 0");
  setting.options.average.round = 0;
  CHECK(setting.refusal(setting.five()) == "nothing was thrown");
  setting.options.private_rows = {setting.h, setting.h};
  CHECK(setting.refusal(setting.five()) == "subfed: secure: private_rows name group 'h' twice");
  setting.options.private_rows = {setting.h, setting.g};
  CHECK(setting.refusal(setting.five()) ==
        "subfed: secure: tensor 'w' has private rows in two places");
  CHECK(setting.refusal({}).find("the threshold is 4") != std::string::npos);
}

TEST_CASE("every part of the plan is in its bytes") {
  round_setting setting;
  std::set<std::vector<std::byte>> seen;
  const auto is_new = [&](const std::vector<secure_participant>& all) {
    return seen.insert(secure_round(all, setting.options).bytes()).second;
  };
  CHECK(is_new(setting.five()));
  auto all = setting.five();
  std::swap(all[0], all[1]);
  CHECK_FALSE(is_new(all));  // the order in which they are listed says nothing
  all[0].weight = 1.5;
  CHECK(is_new(all));
  all = setting.five();
  all[0] = setting.client(4, 0.25);  // a lie about a capacity
  CHECK(is_new(all));
  all = setting.five();
  all[0].sub = all[0].sub.with(setting.h, index_set(4, {0, 3}));  // or about nodes
  CHECK(is_new(all));
  all[0].sub = all[0].sub.restricted(setting.h, index_set(4, {3}));
  CHECK(is_new(all));
  all = setting.five();
  all.pop_back();
  CHECK(is_new(all));
  const secure_options before = setting.options;
  const auto changes = [&](auto&& change) {
    setting.options = before;
    change(setting.options);
    return is_new(setting.five());
  };
  CHECK(changes([](secure_options& o) { o.threshold = 5; }));
  CHECK(changes([](secure_options& o) { o.least_holders = 4; }));
  CHECK(changes([](secure_options& o) { o.expected_dropouts = 1; }));
  CHECK(changes([&](secure_options& o) { o.private_rows = {setting.h}; }));
  CHECK(changes([](secure_options& o) { o.average.sums->bound = 2; }));
  CHECK(changes([](secure_options& o) { o.average.content = subfed::content::deltas; }));
  setting.options = before;
  setting.net.tensor("b", {setting.g});
  CHECK(is_new(setting.five()));
}
