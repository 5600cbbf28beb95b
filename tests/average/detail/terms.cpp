// SPDX-License-Identifier: MIT
#include <subfed/average/detail/terms.hpp>

#include <doctest/doctest.h>

#include <cmath>

TEST_CASE("the old value does not enter where no client is absent, in wide numbers too") {
  using subfed::detail::careful_value;
  using subfed::detail::wide_number;
  subfed::detail::average_terms terms;
  terms.options.divide_by = subfed::divisor::cohort;
  terms.cohort_weight = 2;
  const double nothing = careful_value(terms, wide_number(-0.0), wide_number(2), 5);
  CHECK(nothing == 0);
  CHECK(std::signbit(nothing));
  CHECK(careful_value(terms, wide_number(3), wide_number(1), 5) == 4);
}

TEST_CASE("and leaves a sum of -0 as it is") {
  subfed::detail::average_terms terms;
  terms.options.divide_by = subfed::divisor::cohort;
  terms.cohort_weight = 2;
  CHECK(std::signbit(subfed::detail::combined(terms, -0.0, 2, 0)));
  CHECK(subfed::detail::combined(terms, 3, 1, 5) == 4);
}
