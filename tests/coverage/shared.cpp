// SPDX-License-Identifier: MIT
#include <subfed/coverage/shared.hpp>

#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::shared_nodes;
using subfed::shared_parameters;
using subfed::submodel;

TEST_CASE("two windows share nodes, and the weights between shared nodes") {
  subfed::model net;
  const auto hidden = net.group("hidden", 8);
  net.tensor("weight", {hidden, 3});
  net.tensor("square", {hidden, hidden.repeat(2)});
  const submodel a(net, {index_set::window(8, 6, 5)});  // 6 7 0 1 2
  const submodel b(net, {index_set::window(8, 1, 6)});  // 1 2 3 4 5 6
  CHECK(shared_nodes(a, b, hidden) == 3);
  CHECK(shared_parameters(a, b) == 3 * 3 + 3 * 6);
  CHECK(shared_parameters(a, a) == a.size());
}

TEST_CASE(
    "what is shared is what two plain lists have in common, and does not depend on the order") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    support::seeded random(seed);
    const auto plan = support::random_network(random);
    const auto net = support::model_of(plan);
    const auto first = support::random_holding(random, plan);
    const auto second = support::random_holding(random, plan);
    const submodel a = support::submodel_of(net, first);
    const submodel b = support::submodel_of(net, second);
    std::int64_t parameters = 0;
    for (const auto& tensor : plan.tensors) {
      std::set<std::int64_t> own;
      for (const auto n : oracle::global_numbers(plan, tensor, first)) {
        if (n >= 0) own.insert(n);
      }
      for (const auto n : oracle::global_numbers(plan, tensor, second))
        parameters += own.count(n) != 0;
    }
    CHECK(shared_parameters(a, b) == parameters);
    CHECK(shared_parameters(b, a) == parameters);
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      const auto held = [&](const oracle::holding& h, std::int64_t n) {
        const auto has = [n](const auto& nodes) {
          return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
        };
        return has(h.nodes[g]) && has(h.taking_part[g]);
      };
      std::int64_t nodes = 0;
      for (std::int64_t n = 0; n < plan.groups[g]; ++n) nodes += held(first, n) && held(second, n);
      CHECK(shared_nodes(a, b, subfed::group_id(g)) == nodes);
    }
  }
}

TEST_CASE("submodels of different models share nothing: an error") {
  subfed::model net, other;
  const auto g = net.group("g", 3);
  other.group("g", 4);
  CHECK(support::message_of([&] { shared_nodes(submodel::full(net), submodel::full(other), g); }) ==
        "subfed: shared_nodes: the submodels are of different models");
  CHECK(support::message_of([&] {
          shared_parameters(submodel::full(net), submodel::full(other));
        }) == "subfed: shared_parameters: the submodels are of different models");
}

TEST_CASE("what stays with its client is shared by nobody") {
  subfed::model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g, 3});
  net.tensor("mean", {g}, subfed::role::statistic);
  net.tensor("head", {g, 5}, subfed::role::local);
  const submodel all = submodel::full(net);
  CHECK(shared_parameters(all, submodel(net, {index_set(4, {2, 0})})) == 2 * 3 + 2);
}

TEST_CASE("runs that touch are one: a full window that wraps is the full set") {
  using subfed::detail::node_ranges;
  using subfed::detail::ranges_of;
  CHECK(ranges_of(index_set::window(8, 3, 8).runs()) == node_ranges{{0, 8}});
  CHECK(ranges_of(index_set(8, {5, 6, 0, 7, 3, 4}).runs()) == node_ranges{{0, 1}, {3, 8}});
  CHECK(ranges_of(index_set(8, {}).runs()).empty());
}
