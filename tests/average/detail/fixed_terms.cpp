// SPDX-License-Identifier: MIT
#include <subfed/average/detail/fixed_terms.hpp>

#include <doctest/doctest.h>
#include <support/views.hpp>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using subfed::bfloat16;
using subfed::fixed_point;
using subfed::half;
using subfed::detail::term_rule;
using support::seeded;

namespace {

/// A rule with a quantum of its own.
term_rule rule_of(double weight, int exponent, double bound) {
  term_rule out(fixed_point{.bound = bound}, 1);
  out.weight = weight;
  out.factor = std::ldexp(weight, -exponent);
  out.shift = std::ldexp(0x1.8p52, exponent);
  out.narrow = out.factor * bound < 0x1p51;
  return out;
}

/// By the C library: the product, then the nearest integer.
std::int64_t plain_term(const term_rule& rule, double x) {
  if (!(std::fabs(x) <= rule.bound)) x = std::signbit(x) ? -rule.bound : rule.bound;
  volatile double product = rule.factor * x;
  return static_cast<std::int64_t>(std::nearbyint(product));
}

double any_value(seeded& random) {
  const auto scale = static_cast<int>(random.between(-60, 2));
  return std::ldexp(static_cast<double>(random.between(-1000003, 1000003)) / 1000003, scale);
}

}  // namespace

TEST_CASE("terms that were worked out by hand") {
  const term_rule to_30 = rule_of(1, -30, 4);
  CHECK(to_30(0x1p-31) == 0);
  CHECK(to_30(1.5 * 0x1p-30) == 2);
  CHECK(to_30(2.5 * 0x1p-30) == 2);
  CHECK(to_30(-1.5 * 0x1p-30) == -2);
  CHECK(to_30(-0.0) == 0);
  CHECK(to_30(5) == std::int64_t{1} << 32);  // the bound
  CHECK(to_30(-std::numeric_limits<double>::infinity()) == -(std::int64_t{1} << 32));

  // The product is rounded before the term: fused it would be 2^38 + 1.
  const double x = 1 + 0x1p-40;
  CHECK(rule_of(x, -38, 4)(x) == std::int64_t{1} << 38);
}

TEST_CASE("the nearest integer by the bits is that of the instruction and of the C library") {
  seeded random(7);
  for (int n = 0; n < 20000; ++n) {
    const double t = std::ldexp(static_cast<double>(random.between(-99999, 99999)),
                                static_cast<int>(random.between(-20, 45)));
    const auto expected = static_cast<std::int64_t>(std::nearbyint(t));
    CHECK(subfed::detail::nearest_by_bits(t) == expected);
    CHECK(subfed::detail::nearest_integer(t) == expected);
  }
  for (const double t : {0x1p52 - 0.5, 0x1p51 + 0.5, 0x1p51 + 1.5, 0.5, 1.5, 0x1p62}) {
    for (const double signed_t : {t, -t}) {
      CHECK(subfed::detail::nearest_by_bits(signed_t) ==
            static_cast<std::int64_t>(std::nearbyint(signed_t)));
    }
  }
}

TEST_CASE_TEMPLATE("every loop gives the term of its value, whatever its length and strides", T,
                   float, double, half, bfloat16) {
  seeded random(11);
  for (int n = 0; n < 300; ++n) {
    const std::int64_t length =
        random.one_in(4) ? random.between(900, 2600) : random.between(0, 40);
    const std::int64_t stride = random.one_in(2) ? 1 : random.between(2, 3);
    const std::int64_t sum_stride = random.one_in(2) ? 1 : 2;
    // Narrow and wide terms, and in one of three cases values beyond the bound.
    term_rule rule = rule_of(random.one_in(2) ? 1 : 2.75, random.one_in(2) ? -40 : -59, 4.25);
    const bool beyond = random.one_in(3);
    std::vector<T> from;
    for (std::int64_t i = 0; i < length * stride; ++i) {
      double x = any_value(random);
      if (beyond && random.one_in(50)) x = random.one_in(2) ? 5 : -std::nan("");
      from.push_back(T(x));
    }
    std::vector<std::int64_t> sums(static_cast<std::size_t>(length * sum_stride), 5);
    std::vector<std::int64_t> expected = sums;
    std::int64_t many = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const double x = subfed::scalar_traits<T>::load(from[static_cast<std::size_t>(i * stride)]);
      expected[static_cast<std::size_t>(i * sum_stride)] += plain_term(rule, x);
      many += std::fabs(x) <= rule.bound ? 0 : 1;
    }
    CHECK(subfed::detail::add_terms(from.data(), stride, rule, sums.data(), sum_stride, length) ==
          many);
    CHECK(sums == expected);
    rule = rule.negated();
    subfed::detail::add_terms(from.data(), stride, rule, sums.data(), sum_stride, length);
    CHECK(sums == std::vector<std::int64_t>(sums.size(), 5));
  }
}

TEST_CASE("floats are compared with the bound itself, not with the float next to it") {
  const fixed_point tenth{.bound = 0.1};  // 0.1f is more
  const term_rule rule(tenth, 1);
  const float above = 0.1f;
  const float below = std::nextafter(0.1f, 0.0f);
  const auto beyond = [](float x, const term_rule& by) {
    const std::vector<float> four(4, x);
    std::vector<std::int64_t> sums(4);
    return subfed::detail::add_terms(four.data(), 1, by, sums.data(), 1, 4);
  };
  CHECK(beyond(above, rule) == 4);
  CHECK(beyond(below, rule) == 0);
  const term_rule wide(fixed_point{.bound = 0x1p200}, 1);
  CHECK(beyond((std::numeric_limits<float>::max)(), wide) == 0);
  CHECK(beyond(std::numeric_limits<float>::infinity(), wide) == 4);
}

TEST_CASE("weights are rounded to their quantum") {
  const fixed_point sums{.bound = 1, .clients = 4, .total_weight = 1000};  // 2^(10 - 52)
  CHECK(subfed::detail::fixed_weight(1000, sums) == 1000);
  CHECK(subfed::detail::fixed_weight(0x1p-42, sums) == 0x1p-42);
  CHECK(subfed::detail::fixed_weight(0x1p-43, sums) == 0);
  CHECK(subfed::detail::fixed_weight(1.5 * 0x1p-42, sums) == 0x1p-41);
  CHECK(subfed::detail::fixed_weight(0.1, sums) == std::nearbyint(std::ldexp(0.1, 42)) * 0x1p-42);
  CHECK(subfed::detail::fixed_weight(std::numeric_limits<double>::denorm_min(), sums) == 0);
}
