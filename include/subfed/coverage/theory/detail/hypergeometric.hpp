// SPDX-License-Identifier: MIT
/// Hypergeometric probabilities without factorials.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace subfed::inline v0::detail {

/// P(d marked ones are among L of K, when u of the K are marked), for d = first, first + 1, ..
///
/// Numerics  Ratios of neighbours from the mode outwards, then divided by their sum: terms are
///           positive; those below 1e-24 of the largest are left out. Relative error of a term
///           about 1e-16 times its distance from the mode.
/// Cost      O(standard deviation).
struct hypergeometric_row {
  std::int64_t first = 0;
  std::vector<double> probability = {};

  /// Pre  0 <= u, L <= K < 2^31.
  void set(std::int64_t K, std::int64_t u, std::int64_t L) {
    constexpr double smallest = 1e-24;
    const std::int64_t low = (std::max)(std::int64_t{0}, L - (K - u));
    const std::int64_t high = (std::min)(u, L);
    const std::int64_t mode = std::clamp((L + 1) * (u + 1) / (K + 2), low, high);
    const auto ratio = [K, u, L](std::int64_t d) {  // of d + 1 to d
      return static_cast<double>((u - d) * (L - d)) /
             static_cast<double>((d + 1) * (K - u - L + d + 1));
    };
    probability.clear();
    first = mode;
    for (double term = 1; first > low && term > smallest;) {
      term /= ratio(--first);
      probability.push_back(term);
    }
    std::reverse(probability.begin(), probability.end());
    probability.push_back(1);
    double term = 1;
    for (std::int64_t d = mode; d < high && term > smallest; ++d) {
      term *= ratio(d);
      probability.push_back(term);
    }
    double sum = 0;
    for (const double p : probability) sum += p;
    for (double& p : probability) p /= sum;
  }
};

}  // namespace subfed::inline v0::detail
