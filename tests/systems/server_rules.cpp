// SPDX-License-Identifier: MIT
#include <subfed/systems/server_rules.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace {

/// Where two updates of 2 and -1 take a parameter, and its moments.
struct walk {
  double x, m, v;
};
template <class Rule>
walk walked(const Rule& rule, double v = 0) {
  walk out{0, 0, v};
  out.x += rule(2, out.m, out.v);
  out.x += rule(-1, out.m, out.v);
  return out;
}

}  // namespace

TEST_CASE("SGD: the momentum carries the first update on") {
  const walk w = walked(subfed::server_sgd{.lr = 0.5, .momentum = 0.5});
  CHECK(w.m == 0);  // 0.5 2 - 1
  CHECK(w.x == 1);
  const walk plain = walked(subfed::server_sgd{});
  CHECK(plain.x == 1);  // 2 - 1
}

TEST_CASE("Adagrad: squares add up") {
  const walk w = walked(subfed::server_adagrad{.lr = 1, .beta1 = 0, .tau = 1});
  CHECK(w.v == 5);
  CHECK(w.x == 2.0 / 3 - 1 / (std::sqrt(5.0) + 1));
}

TEST_CASE("Adam: squares are averaged, and the first moment too") {
  const walk w = walked(subfed::server_adam{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .tau = 1});
  CHECK(w.m == 0);    // 0.5 (0.5 2) + 0.5 (-1)
  CHECK(w.v == 1);    // 0.75 (0.25 4) + 0.25 1
  CHECK(w.x == 0.5);  // 1 / (1 + 1)
}

TEST_CASE("Yogi: the second moment moves towards the square, by a share of the square") {
  const subfed::server_yogi yogi{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .tau = 1};
  CHECK(walked(yogi).v == 0 + 0.25 * 4 + 0);  // then v is the square 1: it stays
  CHECK(walked(yogi, 16).v == 16 - 0.25 * 4 - 0.25 * 1);
  CHECK(walked(yogi, 0.5).v == 0.5 + 0.25 * 4 - 0.25 * 1);
}

TEST_CASE("adaptive rules start from tau squared, and a lambda is a rule") {
  CHECK(subfed::server_adam{.tau = 0.5}.first_second_moment() == 0.25);
  CHECK(subfed::server_adagrad{.tau = 0.5}.first_second_moment() == 0.25);
  CHECK(subfed::server_yogi{.tau = 0.5}.first_second_moment() == 0.25);
  const auto own = [](double delta, double& m, double&) { return m += delta; };
  static_assert(subfed::server_rule<decltype(own)>);
  static_assert(!subfed::server_rule<int>);
  CHECK(walked(own).x == 3);
}
