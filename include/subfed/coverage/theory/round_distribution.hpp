// SPDX-License-Identifier: MIT
/// A random number of rounds: moments and tail.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Mean and variance of a random number of rounds.
struct round_moments {
  double mean = 0;
  double variance = 0;
};

/// Distribution of a number of rounds T >= 1 by its tail.
struct round_distribution {
  /// P(T > R) for R = 0, 1, ..; past the end it is below the requested tail.
  std::vector<double> beyond = {};

  /// P(T > R), 0 past the end.
  double after(std::int64_t rounds) const {
    if (rounds < 0) return 1;
    const auto r = static_cast<std::size_t>(rounds);
    return r < beyond.size() ? beyond[r] : 0;
  }

  /// The smallest R with P(T <= R) >= p; the end when p is closer to 1 than the tail.
  ///
  /// Throws  error when p is not in (0, 1].
  std::int64_t quantile(double p) const {
    if (!detail::in_unit_interval(p)) {
      detail::fail("subfed: round_distribution: the probability is " + detail::text(p) +
                   ", expected (0, 1]");
    }
    const auto first =
        std::find_if(beyond.begin(), beyond.end(), [p](double later) { return later <= 1 - p; });
    return first - beyond.begin();
  }

  /// Mean sum P(T > R) and variance.
  ///
  /// Numerics  What is past the end is left out.
  round_moments moments() const {
    double mean = 0;
    for (std::size_t r = beyond.size(); r-- > 0;) mean += beyond[r];
    double variance = 0;
    for (std::size_t r = beyond.size(); r-- > 0;) {
      const double here = beyond[r] - (r + 1 < beyond.size() ? beyond[r + 1] : 0);
      const double off = static_cast<double>(r + 1) - mean;
      variance += here * off * off;
    }
    return {mean, variance};
  }
};

}  // namespace subfed::inline v0
