// SPDX-License-Identifier: MIT
#include <subfed/systems/proximal.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::model;
using subfed::role;
using subfed::tensor_view;
using support::message_of;

TEST_CASE("by hand: mu 0.5, weights (3, 1), start (1, 2)") {
  model net;
  net.tensor("w", {2});
  const std::vector<float> w{3, 1}, start{1, 2};
  std::vector<float> gradient{10, 20};
  const tensor_view<const float> vw(w.data(), {2}), vs(start.data(), {2});
  CHECK(subfed::proximal_term<float>(net, 0.5, {vw}, {vs}) == 0.25 * (4 + 1));
  subfed::add_proximal<float>(net, 0.5, {vw}, {vs}, {tensor_view<float>(gradient.data(), {2})});
  CHECK(gradient == std::vector<float>{11, 19.5f});
  subfed::add_proximal<float>(net, 0, {vw}, {vs}, {tensor_view<float>(gradient.data(), {2})});
  CHECK(gradient == std::vector<float>{11, 19.5f});
}

TEST_CASE("the gradient is the derivative of the term, in any layout and rank") {
  support::seeded random(2);
  for (int trial = 0; trial < 60; ++trial) {
    const auto extents = support::random_extents(random, 4);
    model net;
    net.tensor("w", std::vector<subfed::dimension>(extents.begin(), extents.end()));
    support::strided<double> w(support::random_source_layout(random, extents));
    support::strided<double> start(support::random_source_layout(random, extents));
    support::strided<double> gradient(support::random_layout(random, extents));
    w.fill([&](std::int64_t) { return random.unit(); });
    start.fill([&](std::int64_t) { return random.unit(); });
    gradient.fill([](std::int64_t n) { return static_cast<double>(n); });
    const double mu = random.unit();
    const auto& cw = w;
    const auto& cs = start;
    subfed::add_proximal<double>(net, mu, {cw.view()}, {cs.view()}, {gradient.view()});
    double sum = 0;
    std::int64_t n = 0;
    for (const auto& index : support::all_indices(extents)) {
      const double apart = w(index) - start(index);
      CHECK(std::fabs(gradient(index) - (static_cast<double>(n++) + mu * apart)) < 1e-12);
      sum += apart * apart;
    }
    CHECK(subfed::proximal_term<double>(net, mu, {cw.view()}, {cs.view()}) ==
          doctest::Approx(mu / 2 * sum));
    CHECK(gradient.rest_untouched());
  }
}

TEST_CASE("wrong shapes and a negative mu are refused, and nothing is written") {
  model net;
  net.tensor("w", {2});
  const std::vector<double> w{1, 2};
  std::vector<double> gradient{5, 6};
  const tensor_view<const double> two(w.data(), {2}), one(w.data(), {1});
  const tensor_view<double> out(gradient.data(), {2});
  CHECK(message_of([&] { subfed::add_proximal<double>(net, -1, {two}, {two}, {out}); }) ==
        "subfed: proximal: mu is -1, expected a finite number that is not negative");
  CHECK(message_of([&] {
          subfed::proximal_term<double>(net, std::numeric_limits<double>::quiet_NaN(), {two},
                                        {two});
        }).find("mu is NaN") != std::string::npos);
  CHECK(message_of([&] { subfed::add_proximal<double>(net, 1, {two}, {one}, {out}); }) ==
        "subfed: proximal: the start tensor 'w' has shape (1,), expected (2,)");
  CHECK(message_of([&] { subfed::add_proximal<double>(net, 1, {two}, {two}, {}); }) ==
        "subfed: proximal: 0 gradient tensors are given for a model of 1");
  const tensor_view<double> broadcast(gradient.data(), {2}, {0});
  CHECK(message_of([&] {
          subfed::add_proximal<double>(net, 1, {two}, {two}, {broadcast});
        }).find("several indices for one element") != std::string::npos);
  CHECK(gradient == std::vector<double>{5, 6});
}

TEST_CASE("statistics, counters and local tensors have no proximal term") {
  model net;
  net.tensor("w", {2});
  for (const role is : {role::statistic, role::counter, role::local}) {
    net.tensor("of role " + std::string(subfed::role_text(is)), {2}, is);
  }
  const std::vector<double> w{3, 1}, start{1, 2};
  std::vector<double> gradients(8, 10);
  const tensor_view<const double> vw(w.data(), {2}), vs(start.data(), {2});
  const tensor_view<const double> empty(nullptr, {0});
  std::vector<tensor_view<double>> vg;
  for (std::size_t t = 0; t < 4; ++t)
    vg.emplace_back(gradients.data() + 2 * t, std::vector<std::int64_t>{2});
  CHECK(subfed::proximal_term<double>(net, 0.5, {vw, vw, vw, vw}, {vs, vs, vs, vs}) == 0.25 * 5);
  // What is not a parameter is not looked at: a view may be empty there.
  CHECK(subfed::proximal_term<double>(net, 0.5, {vw, empty, vw, empty}, {vs, vs, empty, empty}) ==
        0.25 * 5);
  subfed::add_proximal<double>(net, 0.5, {vw, vw, vw, empty}, {vs, vs, empty, vs}, vg);
  CHECK(gradients == std::vector<double>{11, 9.5, 10, 10, 10, 10, 10, 10});
}

TEST_CASE("differences of any size: the term is infinite only where it is too large itself") {
  model net;
  net.tensor("w", {2});
  const auto term = [&](double mu, std::vector<double> w, std::vector<double> start) {
    return subfed::proximal_term<double>(net, mu, {tensor_view<const double>(w.data(), {2})},
                                         {tensor_view<const double>(start.data(), {2})});
  };
  constexpr double largest = (std::numeric_limits<double>::max)();
  CHECK(term(0, {1e200, 0}, {0, 0}) == 0);
  CHECK(term(0, {largest, 0}, {-largest, 0}) == 0);
  CHECK(term(0x1p-600, {0x1p600, 0}, {0, 0}) == 0x1p599);
  CHECK(term(0x1p-1030, {0x1p1023, 0}, {-0x1p1023, 0}) == 0x1p1017);
  CHECK(term(0x1p600, {0x1p-600, 0x1p-600}, {0, 0}) == 0x1p-600);
  CHECK(term(0x1p-1074, {0x1p10, 0}, {0, 0}) == 0x1p-1055);
  CHECK(term(1, {1e200, 0}, {0, 0}) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(term(0, {std::numeric_limits<double>::quiet_NaN(), 0}, {0, 0})));

  const auto gradient = [&](double mu, double w, double start, double before) {
    const std::vector<double> ws{w, 0}, starts{start, 0};
    std::vector<double> out{before, 7};
    subfed::add_proximal<double>(net, mu, {tensor_view<const double>(ws.data(), {2})},
                                 {tensor_view<const double>(starts.data(), {2})},
                                 {tensor_view<double>(out.data(), {2})});
    CHECK(out[1] == 7);
    return out[0];
  };
  CHECK(gradient(0, largest, -largest, 3) == 3);
  CHECK(gradient(0x1p-1023, 0x1p1023, -0x1p1023, 0.5) == 2.5);
  CHECK(gradient(2, 0x1p1023, 0, -0x1p1023) == 0x1p1023);
  CHECK(gradient(4, 0x1p1023, 0, 1) == std::numeric_limits<double>::infinity());
}
