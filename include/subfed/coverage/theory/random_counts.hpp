// SPDX-License-Identifier: MIT
/// Expected counts and evenness of random sets.
#pragma once

#include <subfed/coverage/theory/random_round.hpp>
#include <subfed/detail/memory_size.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline void check_rounds(const char* what, std::int64_t rounds) {
  if (rounds < 0) {
    fail(std::string("subfed: ") + what + ": " + std::to_string(rounds) +
         " rounds, expected at least 0");
  }
}

/// E[L / K] of one client.
inline double held_share(const random_round& round, const std::vector<kept_share>& mix) {
  double sum = 0;
  for (const auto& [kept, share] : mix) sum += share * static_cast<double>(kept);
  return sum / static_cast<double>(round.extent());
}

/// E[(K - L) / K] of one client.
inline double unheld_share(const random_round& round, const std::vector<kept_share>& mix) {
  double sum = 0;
  for (const auto& [kept, share] : mix) sum += share * static_cast<double>(round.extent() - kept);
  return sum / static_cast<double>(round.extent());
}

/// E[L (K - L) / (K (K - 1))]: one given node is held and another is not.
inline double one_of_two(const random_round& round, const std::vector<kept_share>& mix) {
  if (round.extent() == 1) return 0;
  const auto K = static_cast<double>(round.extent());
  double sum = 0;
  for (const auto& [kept, share] : mix) {
    sum += share * static_cast<double>(kept) * static_cast<double>(round.extent() - kept);
  }
  return sum / (K * (K - 1));
}

}  // namespace detail

/// P(a given node was not held in R rounds) = product over clients (1 - E[L]/K)^R; the expected
/// share of unseen nodes, too.
///
/// Throws    error when R < 0.
/// Numerics  Exact up to rounding: relative error about 1e-16 R (clients).
inline double unseen_probability(const random_round& round, std::int64_t rounds) {
  detail::check_rounds("unseen_probability", rounds);
  double log_unseen = 0;
  for (const auto& mix : round.clients()) {
    const double held = detail::held_share(round, mix);
    const double unheld = detail::unheld_share(round, mix);
    if (unheld == 0) return rounds == 0 ? 1 : 0;
    log_unseen += held < 0.5 ? std::log1p(-held) : std::log(unheld);
  }
  return std::exp(static_cast<double>(rounds) * log_unseen);
}

/// P(a given node was held k times in R rounds) for k = 0 .. most: sums of independent draws.
///
/// Throws    error when R < 0 or most < 0.
/// Numerics  Positive terms only: relative error about 1e-16 R (clients).
/// Cost      O(R clients most).
inline std::vector<double> held_probabilities(const random_round& round, std::int64_t rounds,
                                              std::int64_t most) {
  detail::check_rounds("held_probabilities", rounds);
  if (most < 0) {
    detail::fail("subfed: held_probabilities: up to " + std::to_string(most) +
                 " times, expected at least 0");
  }
  std::vector<double> p(detail::memory_size<double>(most) + 1, 0.0);
  p[0] = 1;
  for (std::int64_t j = 0; j < rounds; ++j) {
    for (const auto& mix : round.clients()) {
      const double held = detail::held_share(round, mix);
      const double not_held = detail::unheld_share(round, mix);
      for (std::size_t k = p.size(); k-- > 1;) p[k] = not_held * p[k] + held * p[k - 1];
      p[0] *= not_held;
    }
  }
  return p;
}

/// Expectations for the counts of K nodes after a number of rounds.
struct expected_counts {
  double mean = 0;          ///< of the counts
  double variance = 0;      ///< over the nodes, divided by K
  double unseen_share = 0;  ///< nodes that were never held / K
  double gini = 0;          ///< see coverage_summary::gini
};

/// Expectations of the evenness of random sets after R rounds; sums are over rounds and clients:
///
///   mean      sum E[L] / K
///   variance  sum E[L (K - L)] / K^2
///   gini      (K - 1) E|D| / (2 K mean),  D = sum of independent +1, -1, 0 with
///             P(+1) = P(-1) = E[L (K - L)] / (K (K - 1)), the difference of two nodes' counts
///
/// Exact, with the dependence between nodes, when every L is fixed; when L is drawn, gini is the
/// quotient of two expectations, which is not the expectation of the quotient.
///
/// Throws    error when R < 0.
/// Numerics  Relative error below 1e-12. E|D| = (1/pi) integral_0^pi (1 - phi(x)) / (1 - cos x) dx
///           with phi the characteristic function of D; the trapezoidal rule with M points is exact
///           for it up to 2 E(|D| - 2 M)+ < 1e-20.
/// Cost      O(clients sqrt(R clients)).
inline expected_counts random_counts(const random_round& round, std::int64_t rounds) {
  detail::check_rounds("random_counts", rounds);
  const auto K = static_cast<double>(round.extent());
  const auto R = static_cast<double>(rounds);
  expected_counts out;
  double variance = 0;  // of D
  std::vector<double> apart;
  for (const auto& mix : round.clients()) {
    out.mean += R * detail::held_share(round, mix);
    apart.push_back(2 * detail::one_of_two(round, mix));
    variance += R * apart.back();
  }
  out.variance = variance * (K - 1) / (2 * K);
  out.unseen_share = unseen_probability(round, rounds);
  if (variance == 0) return out;

  // Bernstein's inequality: P(|D| >= M) <= 2 exp(-M^2 / (2 variance + 2 M / 3)) < 2 exp(-60).
  const double points = std::ceil(20 + std::sqrt(400 + 120 * variance));
  constexpr double pi = 3.14159265358979323846;
  double sum = variance / 2;
  for (double i = 1; i <= points; ++i) {
    const double sine = std::sin(pi * i / (2 * points));
    const double x = 2 * sine * sine;  // 1 - cos
    double log_size = 0;
    double sign = 1;
    for (const double each : apart) {
      const double factor = each * x;  // in [0, 2]
      if (factor > 1 && rounds % 2 != 0) sign = -sign;
      log_size += R * (factor > 1 ? std::log(factor - 1) : std::log1p(-factor));
    }
    const double one_less = sign > 0 ? -std::expm1(log_size) : 1 + std::exp(log_size);
    sum += (i == points ? 0.5 : 1.0) * one_less / x;
  }
  const double mean_difference = sum / points;
  out.gini = (K - 1) * mean_difference / (2 * K * out.mean);
  return out;
}

}  // namespace subfed::inline v0
