// SPDX-License-Identifier: MIT
#include <subfed/proof/coarse_ties.hpp>

#include <proof/networks.hpp>
#include <support/checks.hpp>

#include <cmath>
#include <string>
#include <vector>

using proof_networks::named_views;
using proof_networks::numbers;
using proof_networks::views;

TEST_CASE("descriptions that tie no more than they have to have no coarse ties") {
  for (const auto& of : proof_networks::all()) {
    INFO(of.name);
    CHECK(subfed::find_coarse_ties<double>(of.net, of.forward).empty());
  }
}

TEST_CASE("two independent groups that are described as one are told apart") {
  subfed::model net;
  const auto h = net.group("h", 6);  // of both hidden layers
  subfed::linear(net, "fc1", {.in = 4, .out = h});
  subfed::linear(net, "fc2", {.in = h, .out = 5});
  subfed::linear(net, "fc3", {.in = 5, .out = h});
  subfed::linear(net, "fc4", {.in = h, .out = 3});
  const auto forward = [net](const views& all) {
    const named_views v{net, all};
    return proof_networks::on_inputs(4, [&](numbers x) {
      for (const char* layer : {"fc1", "fc2", "fc3", "fc4"}) {
        x = proof_networks::linear(v, layer, x);
        for (double& y : x) y = std::tanh(y);
      }
      return x;
    });
  };
  CHECK(subfed::prove_description<double>(net, forward).verdict() == subfed::verdict::right);
  const auto found = subfed::find_coarse_ties<double>(net, forward);
  REQUIRE(found.size() == 2);
  CHECK(found[0].group == h);
  const auto named = [&](const subfed::coarse_tie& tie) {
    std::string out;
    for (const auto& use : tie.apart) out += net[use.tensor].name + " ";
    return out;
  };
  CHECK(named(found[0]) == "fc1.weight fc1.bias fc2.weight ");
  CHECK(named(found[1]) == "fc3.weight fc3.bias fc4.weight ");
}
