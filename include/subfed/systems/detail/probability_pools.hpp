// SPDX-License-Identifier: MIT
/// What a node's clients ask for along an order of their probabilities: neighbours that would stand the
/// wrong way round are pooled.
#pragma once

#include <subfed/systems/detail/probability_order.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace subfed::inline v0::detail {

/// Runs of neighbours with one probability, from the largest. With k the multiplier, a pool asks for
/// k sqrt(gain / cost).
class probability_pools {
 public:
  struct run {
    double gain, cost;
    std::size_t count;
  };

  void build(const probability_order& own, const double* price) {
    runs_.clear();
    for (const std::uint32_t i : own.order) {
      run now{own.a[i], price[i], 1};
      while (!runs_.empty() && runs_.back().gain * now.cost <= now.gain * runs_.back().cost) {
        now.gain += runs_.back().gain;
        now.cost += runs_.back().cost;
        now.count += runs_.back().count;
        runs_.pop_back();
      }
      runs_.push_back(now);
    }
  }

  static double root_of(const run& p) {
    return p.gain > 0 ? (std::min)(std::sqrt(p.gain / p.cost), 0x1p500) : 0;
  }
  /// root[c] for each client of the order.
  void lay_out(const probability_order& own, double* root) const {
    std::size_t k = 0;
    for (const run& p : runs_) {
      const double r = root_of(p);
      for (std::size_t x = 0; x < p.count; ++x) root[own.order[k++]] = r;
    }
  }

  auto begin() const noexcept { return runs_.begin(); }
  auto end() const noexcept { return runs_.end(); }

 private:
  std::vector<run> runs_;
};

}  // namespace subfed::inline v0::detail
