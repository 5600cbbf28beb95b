// SPDX-License-Identifier: MIT
/// The mean of some numbers and how far they spread.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace common {

/// The standard deviation is that of the distribution that the numbers come from (n - 1), NaN where
/// there is one number.
struct spread {
  double mean = 0;
  double deviation = 0;
};

/// Pre  There is a number.
inline spread spread_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / count;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, values.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                                  : std::sqrt(squares / (count - 1))};
}

}  // namespace common
