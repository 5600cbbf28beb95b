// SPDX-License-Identifier: MIT
#include <subfed/average/detail/wide_number.hpp>

#include <support/views.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using subfed::detail::exponent_of;
using subfed::detail::scaled;
using subfed::detail::wide_number;

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// A double with an exponent from a range, or 0 of either sign.
double some_double(support::seeded& random, int least, int most) {
  const double size = random.one_in(10) ? 0
                                        : std::ldexp(1 + random.unit(),
                                                     static_cast<int>(random.between(least, most)));
  return random.one_in(2) ? -size : size;
}

}  // namespace

TEST_CASE("wide numbers compute as doubles do where those have the range") {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    INFO("seed ", seed);
    support::seeded random(seed);
    const int span = seed % 2 == 0 ? 3 : 240;
    const double a = some_double(random, -span, span);
    const double b = some_double(random, -span, span);
    const wide_number x(a), y(b);
    CHECK(bits((x + y).value()) == bits(a + b));
    CHECK(bits((x - y).value()) == bits(a - b));
    CHECK(bits((x * y).value()) == bits(a * b));
    if (b != 0) CHECK(bits((x / y).value()) == bits(a / b));
    CHECK(bits((-x).value()) == bits(-a));
    CHECK(x.is_zero() == (a == 0));
  }
}

TEST_CASE("wide numbers continue where doubles end") {
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  const wide_number large(most), small(least);
  CHECK((large + large).value() == std::numeric_limits<double>::infinity());
  CHECK((-large - large).value() == -std::numeric_limits<double>::infinity());
  CHECK(((large + large) / wide_number(2)).value() == most);
  CHECK((large * large / large).value() == most);
  CHECK((small * small).value() == 0);
  CHECK(std::signbit((-small * small).value()));
  CHECK((small * small / small).value() == least);
  CHECK((small / large * large).value() == least);
  CHECK((large + small).value() == most);
  CHECK(std::signbit(wide_number().value()));
  CHECK(wide_number(1, 3).value() == 8);
}

TEST_CASE("denormal doubles are reached with one rounding") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    support::seeded random(seed);
    const double x = 1 + random.unit();
    const auto exponent = static_cast<int>(random.between(-1090, -1000));
    CHECK(bits(wide_number(x, exponent).value()) == bits(std::ldexp(x, exponent)));
  }
}

TEST_CASE("exponents, and powers of two") {
  for (int e = -1074; e <= 1023; ++e) {
    CHECK(exponent_of(std::ldexp(1.0, e)) == e);
    if (e > -1070) CHECK(exponent_of(-std::ldexp(1.75, e)) == e);
  }
  CHECK(scaled(std::ldexp(1.0, -1074), 2044) == std::ldexp(1.0, 970));
  CHECK(scaled(std::ldexp(1.5, 1000), -2000) == std::ldexp(1.5, -1000));
  CHECK(scaled(3, 0) == 3);
}
