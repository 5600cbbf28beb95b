// SPDX-License-Identifier: MIT
/// Bounds on the first full cover by random sets, for any number of nodes and times.
#pragma once

#include <subfed/coverage/theory/random_cover.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace subfed::inline v0 {

/// Two tails that enclose the true one, R by R, and two means that enclose the true mean.
struct cover_bounds {
  round_distribution lower = {};
  round_distribution upper = {};
  double mean_at_least = 0;
  double mean_at_most = 0;
};

namespace detail {

/// Counts of one node and of two nodes, below `times`, client after client.
class pair_counts {
 public:
  explicit pair_counts(std::int64_t times)
      : times_(static_cast<std::size_t>(times)), one_(times_, 0.0), two_(times_ * times_, 0.0) {
    one_[0] = two_[0] = 1;
  }

  void act(double K, double L) {
    const double held = L / K;
    const double not_held = (K - L) / K;
    for (std::size_t a = times_; a-- > 0;) {
      one_[a] = not_held * one_[a] + (a > 0 ? held * one_[a - 1] : 0);
    }
    if (K < 2) return;
    const double both = L * (L - 1) / (K * (K - 1));
    const double single = L * (K - L) / (K * (K - 1));
    const double none = (K - L) * (K - L - 1) / (K * (K - 1));
    const auto at = [this](std::size_t a, std::size_t b) { return two_[a * times_ + b]; };
    for (std::size_t a = times_; a-- > 0;) {
      for (std::size_t b = times_; b-- > 0;) {
        double p = none * at(a, b);
        if (a > 0) p += single * at(a - 1, b);
        if (b > 0) p += single * at(a, b - 1);
        if (a > 0 && b > 0) p += both * at(a - 1, b - 1);
        two_[a * times_ + b] = p;
      }
    }
  }

  /// P(a node was held less than `times` times), and P(two nodes were).
  double one() const { return sum(one_); }
  double two() const { return sum(two_); }

 private:
  static double sum(const std::vector<double>& p) {
    double out = 0;
    for (const double each : p) out += each;
    return out;
  }

  std::size_t times_;
  std::vector<double> one_;
  std::vector<double> two_;
};

}  // namespace detail

/// Bounds on the first round T after which every node has been held at least `times` times, where
/// each client's L is fixed. With p the probability that a node was held less often in R rounds, W
/// the number of such nodes and lambda = K p its mean,
///
///   1 - (1 - p)^K <= P(T > R) <= min(lambda, b + b (1 - var W / lambda)),  b = 1 - e^-lambda.
///
/// The indicators of such nodes are negatively associated [JoagDevProschan]. This gives the left
/// side; the distance of W from a Poisson variable gives the right side [BarbourHolstJanson, 2.C].
/// The difference of the sides decreases like log(K) / K.
///
/// Throws    error when times < 1 or > 1000, no client keeps a node, or some client's L is drawn
///           (the indicators then depend on each other positively).
/// Numerics  Relative error of each side about 1e-16 R (clients); of their distance only 1e-15 K R
///           (clients), as it comes from E W^2 - (E W)^2.
/// Cost      O(R clients times^2).
inline cover_bounds first_cover_bounds(const random_round& round, std::int64_t times = 1) {
  detail::check_cover("first_cover_bounds", round, times);
  if (times > 1000) {
    detail::fail("subfed: first_cover_bounds: held " + std::to_string(times) +
                 " times, expected at most 1000");
  }
  if (!round.is_fixed()) {
    detail::fail("subfed: first_cover_bounds: a client's L is drawn, expected a fixed one");
  }
  const auto K = static_cast<double>(round.extent());
  detail::pair_counts counts(times);
  cover_bounds out;
  double lambda = K;
  double before = K;
  for (;;) {
    const double p = lambda / K;
    const double low = p < 1 ? -std::expm1(K * std::log1p(-p)) : 1;
    const double poisson = -std::expm1(-lambda);
    // lambda - var W, which is not negative
    const double gap = (std::max)(lambda * p + K * (K - 1) * (p * p - counts.two()), 0.0);
    const double distance = lambda > 0 ? poisson * (std::min)(gap / lambda, 1.0) : 0;
    const double high = (std::min)({1.0, lambda, poisson + distance});
    out.lower.beyond.push_back(low);
    out.upper.beyond.push_back((std::max)(low, high));
    if (lambda < 1e-16) break;
    before = lambda;
    for (const auto& mix : round.clients()) counts.act(K, static_cast<double>(mix[0].kept));
    lambda = K * counts.one();
  }
  out.mean_at_least = out.lower.moments().mean;
  out.mean_at_most = out.upper.moments().mean;
  // Past the end the means fall at least as fast as at the end.
  if (lambda > 0) out.mean_at_most += lambda * lambda / (before - lambda);
  return out;
}

}  // namespace subfed::inline v0
