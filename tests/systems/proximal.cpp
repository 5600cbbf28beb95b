// SPDX-License-Identifier: MIT
#include <subfed/systems/proximal.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::tensor_view;
using support::message_of;

TEST_CASE("by hand: mu 0.5, weights (3, 1), start (1, 2)") {
  const std::vector<float> w{3, 1}, start{1, 2};
  std::vector<float> gradient{10, 20};
  const tensor_view<const float> vw(w.data(), {2}), vs(start.data(), {2});
  CHECK(subfed::proximal_term<float>(0.5, {vw}, {vs}) == 0.25 * (4 + 1));
  subfed::add_proximal<float>(0.5, {vw}, {vs}, {tensor_view<float>(gradient.data(), {2})});
  CHECK(gradient == std::vector<float>{11, 19.5f});
  subfed::add_proximal<float>(0, {vw}, {vs}, {tensor_view<float>(gradient.data(), {2})});
  CHECK(gradient == std::vector<float>{11, 19.5f});
}

TEST_CASE("the gradient is the derivative of the term, in any layout and rank") {
  support::seeded random(2);
  for (int trial = 0; trial < 60; ++trial) {
    const auto extents = support::random_extents(random, 4);
    support::strided<double> w(support::random_source_layout(random, extents));
    support::strided<double> start(support::random_source_layout(random, extents));
    support::strided<double> gradient(support::random_layout(random, extents));
    w.fill([&](std::int64_t) { return random.unit(); });
    start.fill([&](std::int64_t) { return random.unit(); });
    gradient.fill([](std::int64_t n) { return static_cast<double>(n); });
    const double mu = random.unit();
    const auto& cw = w;
    const auto& cs = start;
    subfed::add_proximal<double>(mu, {cw.view()}, {cs.view()}, {gradient.view()});
    double sum = 0;
    std::int64_t n = 0;
    for (const auto& index : support::all_indices(extents)) {
      const double apart = w(index) - start(index);
      CHECK(std::fabs(gradient(index) - (static_cast<double>(n++) + mu * apart)) < 1e-12);
      sum += apart * apart;
    }
    CHECK(subfed::proximal_term<double>(mu, {cw.view()}, {cs.view()}) ==
          doctest::Approx(mu / 2 * sum));
    CHECK(gradient.rest_untouched());
  }
}

TEST_CASE("wrong shapes and a negative mu are refused, and nothing is written") {
  const std::vector<double> w{1, 2};
  std::vector<double> gradient{5, 6};
  const tensor_view<const double> two(w.data(), {2}), one(w.data(), {1});
  const tensor_view<double> out(gradient.data(), {2});
  CHECK(message_of([&] { subfed::add_proximal<double>(-1, {two}, {two}, {out}); }) ==
        "subfed: proximal: mu is -1, expected a finite number that is not negative");
  CHECK(message_of([&] {
          subfed::proximal_term<double>(std::numeric_limits<double>::quiet_NaN(), {two}, {two});
        }).find("mu is NaN") != std::string::npos);
  CHECK(message_of([&] { subfed::add_proximal<double>(1, {two}, {one}, {out}); }) ==
        "subfed: proximal: the start tensor 'number 0' has shape (1,), expected (2,)");
  CHECK(message_of([&] { subfed::add_proximal<double>(1, {two}, {two}, {}); }) ==
        "subfed: proximal: 0 gradient tensors are given, expected 1");
  const tensor_view<double> broadcast(gradient.data(), {2}, {0});
  CHECK(message_of([&] {
          subfed::add_proximal<double>(1, {two}, {two}, {broadcast});
        }).find("several indices for one element") != std::string::npos);
  CHECK(gradient == std::vector<double>{5, 6});
}
