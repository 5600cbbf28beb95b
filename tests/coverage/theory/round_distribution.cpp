// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/round_distribution.hpp>

#include <support/checks.hpp>
#include <support/close.hpp>

#include <cmath>

using subfed::round_distribution;
using support::message_of;

TEST_CASE("a round of 1, 2 or 4 with probabilities 1/2, 1/4, 1/4") {
  const round_distribution t{{1, 0.5, 0.25, 0.25}};
  CHECK(t.after(-1) == 1);
  CHECK(t.after(0) == 1);
  CHECK(t.after(1) == 0.5);
  CHECK(t.after(3) == 0.25);
  CHECK(t.after(4) == 0);
  CHECK(t.after(1000) == 0);
  CHECK(t.quantile(0.1) == 1);
  CHECK(t.quantile(0.5) == 1);
  CHECK(t.quantile(0.51) == 2);
  CHECK(t.quantile(0.75) == 2);
  CHECK(t.quantile(0.76) == 4);
  CHECK(t.quantile(1) == 4);
  CHECK(t.moments().mean == 2);
  CHECK(t.moments().variance == 1.5);  // 1/2 (1)^2 + 1/4 (0)^2 + 1/4 (2)^2
}

TEST_CASE("a geometric number of rounds has mean 1 / p and variance (1 - p) / p^2") {
  round_distribution t;
  for (int r = 0; r < 2000; ++r) t.beyond.push_back(std::pow(0.95, r));
  CHECK(support::relative_error(t.moments().mean, 20) < 1e-13);
  CHECK(support::relative_error(t.moments().variance, 380) < 1e-12);
  CHECK(t.quantile(0.5) == 14);  // 0.95^13 = 0.513, 0.95^14 = 0.488
}

TEST_CASE("a probability outside (0, 1] has no quantile") {
  const round_distribution t{{1, 0.5}};
  for (const double p : {0.0, -1.0, 1.5, std::nan("")}) {
    CHECK(message_of([&] { t.quantile(p); }) == "subfed: round_distribution: the probability is " +
                                                    subfed::detail::text(p) + ", expected (0, 1]");
  }
}
