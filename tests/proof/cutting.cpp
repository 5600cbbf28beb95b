// SPDX-License-Identifier: MIT
#include <subfed/proof/cutting.hpp>

#include <proof/networks.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <map>
#include <string>

namespace {

std::map<std::string, double> differences(const proof_networks::network& of) {
  std::map<std::string, double> out;
  for (const auto& d : subfed::cut_differences<double>(of.net, of.forward)) {
    out[of.net[d.group].name] = d.difference;
  }
  return out;
}

}  // namespace

TEST_CASE("cutting is masking where no layer computes over the nodes of a group") {
  for (const auto& of : {proof_networks::mlp(), proof_networks::residual(),
                         proof_networks::branches(), proof_networks::lstm()}) {
    INFO(of.name);
    for (const auto& found : differences(of)) {
      INFO(found.first);
      CHECK(found.second < 1e-12);
    }
    const auto values = subfed::random_values<double>(of.net, 4);
    const auto sub = draw(of.net, subfed::rolling{}, {.round = 2, .capacity = 0.7});
    CHECK(subfed::cut_difference<double>(sub, values, of.forward) < 1e-12);
  }
}

TEST_CASE("cutting is not masking in front of a layer norm, by group") {
  using proof_networks::heads_are;
  for (const auto kind : {heads_are::inside, heads_are::whole, heads_are::rotary}) {
    const auto found = differences(proof_networks::attention(kind));
    REQUIRE(found.size() == 2);
    CHECK(found.at("heads") < 1e-12);
    CHECK(found.at("d") > 1e-3);
  }
}

TEST_CASE("groups that are never cut or too small are left out; other outputs are refused") {
  subfed::model net;
  net.tensor("w", {net.group("one", 1), net.group("classes", 3, subfed::cut::never)});
  const auto sum = [](const proof_networks::views& all) {
    return proof_networks::numbers{all[0](0, 0)};
  };
  CHECK(subfed::cut_differences<double>(net, sum).empty());
  const auto a = net.group("a", 2);
  net.tensor("v", {a});
  const auto copy = [](const proof_networks::views& all) {
    return proof_networks::numbers(static_cast<std::size_t>(all[1].extent(0)), 1.0);
  };
  CHECK(support::message_of([&] {
          static_cast<void>(subfed::cut_differences<double>(net, copy));
        }) == "subfed: cut_difference: the forward function gave 1 outputs, and 2 before");
}
