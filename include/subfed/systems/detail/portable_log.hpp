// SPDX-License-Identifier: MIT
/// A logarithm whose bits do not depend on the C library.
#pragma once

#include <subfed/detail/arithmetic.hpp>

#include <cmath>

namespace subfed::inline v0::detail {

/// ln(x) of a positive finite number, to a few units in the last place: the same bits with every
/// library.
inline double portable_log(double x) noexcept {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) m *= 2, --exponent;
  const double s = (m - 1) / (m + 1), z = rounded_product(s, s);
  double series = 0;
  for (int k = 25; k >= 1; k -= 2) series = rounded_product(z, series) + 1.0 / k;
  const double rest = rounded_product(static_cast<double>(exponent), 1.9082149292705877e-10);
  return rounded_product(2 * s, series) + rest +
         rounded_product(static_cast<double>(exponent), 0.693147180369123816490);
}

}  // namespace subfed::inline v0::detail
