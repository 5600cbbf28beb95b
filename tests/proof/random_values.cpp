// SPDX-License-Identifier: MIT
#include <subfed/proof/random_values.hpp>

#include <support/checks.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

TEST_CASE(
    "random values: statistics are positive, counters one, no two nodes alike, none near zero") {
  subfed::model net;
  const auto g = net.group("g", 50);
  const auto w = net.tensor("w", {g, 4, 3});
  const auto gamma = net.tensor("gamma", {g});
  const auto var = net.tensor("var", {g}, subfed::role::statistic);
  const auto steps = net.tensor("steps", {}, subfed::role::counter);
  const auto scale = net.tensor("scale", {}, subfed::role::local);
  const auto values = subfed::random_values<double>(net, 5);
  double most = 0;
  for (const double x : values.elements().first(600)) most = (std::max)(most, std::abs(x));
  CHECK(most <= 0.5);  // sqrt(3 / 12)
  CHECK(most > 0.49);
  std::set<double> different;
  int negative = 0;
  for (std::int64_t n = 0; n < 50; ++n) {
    different.insert(values[gamma](n));
    negative += values[gamma](n) < 0;
    CHECK(std::abs(values[gamma](n)) >= 0.5);
    CHECK(std::abs(values[gamma](n)) <= 1.5);
    CHECK(values[var](n) >= 0.5);
    CHECK(values[var](n) <= 2);
  }
  CHECK(different.size() == 50);
  CHECK(negative > 10);
  CHECK(negative < 40);
  CHECK(values[steps]() == 1);
  CHECK(std::abs(values[scale]()) >= 0.5);
  CHECK(values[w](3, 2, 1) == subfed::random_values<double>(net, 5)[w](3, 2, 1));
  CHECK(values[w](3, 2, 1) != subfed::random_values<double>(net, 6)[w](3, 2, 1));
}

TEST_CASE("random values of empty tensors") {
  subfed::model net;
  const auto none = net.group("none", 0);
  net.tensor("w", {none, 4});
  net.tensor("v", {4, none});
  CHECK(subfed::random_values<float>(net, 1).elements().empty());
}
