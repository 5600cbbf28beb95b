// SPDX-License-Identifier: MIT
/// Numbers that must be near each other.
#pragma once

#include <cmath>
#include <limits>

namespace support {

/// |found - expected| / |expected|; 0 where both are 0, infinite where one is NaN.
inline double relative_error(double found, double expected) {
  if (found == expected) return 0;
  const double error = std::fabs(found - expected) / std::fabs(expected);
  return error >= 0 ? error : std::numeric_limits<double>::infinity();
}

}  // namespace support
