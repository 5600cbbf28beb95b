// SPDX-License-Identifier: MIT
#include <subfed/messages/fingerprint.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

using subfed::fingerprint;
using subfed::model;

TEST_CASE("models that differ in anything have other fingerprints") {
  std::set<std::uint64_t> all;
  int models = 0;
  const auto add = [&](const model& net) {
    all.insert(fingerprint(net));
    ++models;
  };
  const auto base = [](const char* group, std::int64_t extent, subfed::cut decides,
                       const char* tensor, subfed::role is, std::int64_t repeat,
                       std::int64_t block) {
    model net;
    const auto g = net.group(group, extent, decides);
    const auto h = net.group("other", extent);
    net.tensor(tensor, {g.repeat(repeat).block(block), 3}, is);
    net.tensor("b", {h});
    return net;
  };
  using subfed::cut;
  using subfed::role;
  add({});
  add(base("g", 4, cut::by_scheme, "w", role::parameter, 1, 1));
  add(base("f", 4, cut::by_scheme, "w", role::parameter, 1, 1));
  add(base("g", 5, cut::by_scheme, "w", role::parameter, 1, 1));
  add(base("g", 4, cut::never, "w", role::parameter, 1, 1));
  add(base("g", 4, cut::by_scheme, "v", role::parameter, 1, 1));
  add(base("g", 4, cut::by_scheme, "w", role::statistic, 1, 1));
  add(base("g", 4, cut::by_scheme, "w", role::parameter, 2, 1));
  add(base("g", 4, cut::by_scheme, "w", role::parameter, 1, 2));
  model concatenated = base("g", 4, cut::by_scheme, "w", role::parameter, 1, 1);
  concatenated.tensor("c", {subfed::concat({2, 3})});
  add(concatenated);
  model whole = base("g", 4, cut::by_scheme, "w", role::parameter, 1, 1);
  whole.tensor("c", {5});
  add(whole);
  CHECK(all.size() == static_cast<std::size_t>(models));
  CHECK(fingerprint(concatenated) == fingerprint(model(concatenated)));
}

TEST_CASE("a fingerprint is the same on every machine") {
  model net;
  const auto hidden = net.group("hidden", 64);
  net.tensor("fc1.weight", {hidden, 20});
  net.tensor("fc2.weight", {10, hidden});
  CHECK(fingerprint(net) == 0x1B412B30B21502D5u);
}
