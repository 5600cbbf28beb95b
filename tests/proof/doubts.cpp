// SPDX-License-Identifier: MIT
#include <subfed/proof/doubts.hpp>

#include <proof/networks.hpp>
#include <support/checks.hpp>

#include <string>
#include <vector>

using subfed::doubt_kind;
using subfed::find_doubts;

TEST_CASE("right descriptions raise no doubts") {
  for (const auto& of : proof_networks::all()) {
    INFO(of.name);
    CHECK(find_doubts(of.net).empty());
  }
}

TEST_CASE("groups of no tensor, of one tensor, and that nobody reads") {
  subfed::model net;
  const auto none = net.group("none", 3);
  const auto lonely = net.group("lonely", 4);
  const auto written = net.group("written", 5);
  const auto state = net.group("state", 6);
  const auto classes = net.group("classes", 7, subfed::cut::never);
  const auto unused_classes = net.group("unused classes", 7, subfed::cut::never);
  net.tensor("a", {2, lonely});
  net.tensor("b.weight", {written, 2});
  net.tensor("b.bias", {written});
  net.tensor("recurrence", {state, state});
  net.tensor("c.weight", {classes, 2});
  const auto found = find_doubts(net);
  REQUIRE(found.size() == 4);
  CHECK(found[0] ==
        subfed::doubt{doubt_kind::no_tensor, none, "group 'none' of 3 nodes is of no tensor"});
  CHECK(found[1] == subfed::doubt{doubt_kind::one_tensor, lonely,
                                  "group 'lonely' of 4 nodes is of one tensor only, a; what else "
                                  "writes or reads its nodes is to be cut with it"});
  CHECK(found[2] ==
        subfed::doubt{doubt_kind::nobody_reads, written,
                      "group 'written' of 5 nodes is written by b.weight, b.bias and read by no "
                      "tensor; outputs are cut::never, and a reader is bound to it"});
  CHECK(found[3].group == unused_classes);
}

TEST_CASE("queries and keys, which no tensor reads, are no doubt") {
  subfed::model net;
  const auto heads = net.group("heads", 8);
  net.tensor("q_proj.weight", {heads.block(4), 32});
  CHECK(find_doubts(net).size() == 1);
  net.tensor("k_proj.weight", {heads.block(4), 32});
  CHECK(find_doubts(net).empty());
}
