// SPDX-License-Identifier: MIT
/// Rounds until each of I submodels has been chosen m times, one per round. [Rolex, A.1]
#pragma once

#include <subfed/coverage/theory/round_distribution.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace subfed::inline v0 {

namespace detail {

inline void check_indices(const char* what, std::int64_t indices, std::int64_t fewest,
                          std::int64_t times) {
  constexpr std::int64_t most_indices = std::int64_t{1} << 53;
  constexpr std::int64_t most_times = 1000000;
  if (indices < fewest || indices > most_indices) {
    fail(std::string("subfed: ") + what + ": " + std::to_string(indices) + " indices, expected " +
         std::to_string(fewest) + " to 2^53");
  }
  if (times < 1 || times > most_times) {
    fail(std::string("subfed: ") + what + ": chosen " + std::to_string(times) +
         " times, expected 1 to " + std::to_string(most_times));
  }
}

/// log(n!), by summing logarithms.
inline double log_factorial(std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 2; i <= n; ++i) sum += std::log(static_cast<double>(i));
  return sum;
}

inline constexpr double euler_gamma = 0.57721566490153286061;

/// 1 + 1/2 + .. + 1/n: summed up to 64, beyond that by the Euler-Maclaurin series.
inline double harmonic_number(std::int64_t n) {
  const auto x = static_cast<double>(n);
  if (n > 64) {
    const double y = 1 / (x * x);
    const double series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
    return std::log(x) + euler_gamma + 0.5 / x - series;
  }
  double sum = 0;
  for (std::int64_t i = n; i > 0; --i) sum += 1 / static_cast<double>(i);
  return sum;
}

/// 1 + 1/4 + .. + 1/n^2, likewise.
inline double harmonic_squares(std::int64_t n) {
  const auto x = static_cast<double>(n);
  if (n > 64) {
    const double y = 1 / x;
    const double series = y * (1 - y * (0.5 - y * (1.0 / 6 - y * y * (1.0 / 30 - y * y / 42))));
    return 1.64493406684822643647 - series;  // pi^2 / 6
  }
  double sum = 0;
  for (std::int64_t i = n; i > 0; --i) sum += 1 / (static_cast<double>(i) * static_cast<double>(i));
  return sum;
}

/// The time at which the last of I independent Poisson processes of rate 1 has its m-th event: the
/// proof of [Rolex, Lemma 2] puts the choices at the events of a process of rate I.
struct last_of_poisson_processes {
  double indices;
  std::int64_t times;
  double log_times_factorial;

  /// log P(a process has had m events by time t), t > 0: summed from the smaller of the two tails.
  double log_reached(double t) const {
    const auto m = static_cast<double>(times);
    const double log_term = m * std::log(t) - t - log_times_factorial;  // of exactly m events
    double sum = 0;
    double term = 1;
    if (t < m) {
      for (double k = m; term > sum * 1e-17; term *= t / ++k) sum += term;
      return log_term + std::log(sum);
    }
    for (double k = m; k > 0 && (term *= k-- / t) > sum * 1e-17;) sum += term;
    return std::log1p(-std::exp(log_term) * sum);
  }

  /// Logarithm of the density of that time, up to a constant, in u with t = log(1 + e^u).
  double log_density(double u, double t) const {
    return (indices - 1) * log_reached(t) + static_cast<double>(times - 1) * std::log(t) - t -
           std::log1p(std::exp(-u));
  }

  static double time_of(double u) {
    return u > 0 ? u + std::log1p(std::exp(-u)) : std::log1p(std::exp(u));
  }

  /// Where the density is largest; it has a single maximum.
  double mode(double right) const {
    double left = -60;
    for (int i = 0; i < 120; ++i) {
      const double a = left + (right - left) / 3;
      const double b = right - (right - left) / 3;
      (log_density(a, time_of(a)) < log_density(b, time_of(b)) ? left : right) =
          log_density(a, time_of(a)) < log_density(b, time_of(b)) ? a : b;
    }
    return left;
  }

  /// Mean and variance by the trapezoidal rule with step h around the mode.
  round_moments trapezoid(double middle, double h) const {
    const double top = log_density(middle, time_of(middle));
    const double t0 = time_of(middle);
    double weight = 1;
    double first = 0;
    double second = 0;
    for (const double step : {h, -h}) {
      for (double k = 1;; ++k) {
        const double u = middle + k * step;
        const double t = time_of(u);
        const double below = log_density(u, t) - top;
        if (!(below > -50)) break;
        const double p = std::exp(below);
        weight += p;
        first += p * (t - t0);
        second += p * (t - t0) * (t - t0);
      }
    }
    first /= weight;
    return {t0 + first, second / weight - first * first};
  }
};

}  // namespace detail

/// Rounds until each of I indices has been chosen at least m times, with one chosen at random per
/// round:
///
///   m = 1: I (1 + 1/2 + .. + 1/I)                                      [Rolex, Lemma 1]
///   m > 1: I integral_0^inf (1 - (1 - S_m(t) e^-t)^I) dt,
///          S_m(t) = sum_{l < m} t^l / l!                               [Rolex, Lemma 2]
///
/// The paper's rounds each choose one whole submodel; for its nodes see random_cover.hpp. The
/// variance is sum_i (I^2/i^2 - I/i) for m = 1, and that of the integral's time minus the mean for
/// m > 1.
///
/// Throws    error unless 1 <= I <= 2^53 and 1 <= m <= 1000000.
/// Numerics  Relative error of the mean below 1e-13 for m = 1, below 1e-12 for m <= 1000 and
///           I <= 10^9, beyond about 1e-16 m log(m); of the variance below 1e-10. The integral is
///           the mean of a density; the trapezoidal rule, which converges exponentially for it, is
///           applied with half the step until the result no longer changes.
/// Cost      m = 1: O(1). m > 1: a few thousand sums of up to m terms.
inline round_moments rounds_until_chosen(std::int64_t indices, std::int64_t times = 1) {
  detail::check_indices("rounds_until_chosen", indices, 1, times);
  const auto count = static_cast<double>(indices);
  if (times == 1) {
    const double mean = count * detail::harmonic_number(indices);
    return {mean, indices == 1 ? 0 : count * count * detail::harmonic_squares(indices) - mean};
  }
  if (indices == 1) return {static_cast<double>(times), 0};
  const detail::last_of_poisson_processes last{count, times, detail::log_factorial(times)};
  const double tail = std::log(count) + 60;
  const auto m = static_cast<double>(times);
  const double middle = last.mode(m + 2 * std::sqrt(m * tail) + 2 * tail);
  double h = 1;
  round_moments found = last.trapezoid(middle, h);
  for (int halvings = 0; halvings < 12; ++halvings) {
    const round_moments coarse = found;
    found = last.trapezoid(middle, h /= 2);
    if (std::fabs(found.mean - coarse.mean) <= 1e-14 * found.mean &&
        std::fabs(found.variance - coarse.variance) <= 1e-12 * found.variance) {
      break;
    }
  }
  // The time of N events is gamma distributed: its mean is that of N, its variance larger by the
  // mean of N.
  const double mean = count * found.mean;
  return {mean, count * count * found.variance - mean};
}

/// Rounds until each of I indices has been chosen m times when they are chosen in turn: m I.
/// [Rolex, A.1]
///
/// Throws  error unless 1 <= I <= 2^53 and 1 <= m <= 1000000, or when m I is over 2^63 - 1.
inline std::int64_t rounds_until_chosen_in_turn(std::int64_t indices, std::int64_t times = 1) {
  detail::check_indices("rounds_until_chosen_in_turn", indices, 1, times);
  if (indices > INT64_MAX / times) {
    detail::fail("subfed: rounds_until_chosen_in_turn: " + std::to_string(times) + " times " +
                 std::to_string(indices) + " is over 2^63 - 1");
  }
  return indices * times;
}

/// I log I + I (m - 1) log log I: the paper's form of the mean for large I.
/// [Rolex, A.1; NewmanShepp]
///
/// Throws    error unless 2 <= I <= 2^53 and 1 <= m <= 1000000.
/// Numerics  Useful only as a trend: for I = 1000 it is 8 % below the mean at m = 1, 10 % below at
///           m = 2, 3 % above at m = 10.
inline double rounds_until_chosen_newman_shepp(std::int64_t indices, std::int64_t times) {
  detail::check_indices("rounds_until_chosen_newman_shepp", indices, 2, times);
  const auto count = static_cast<double>(indices);
  const double logarithm = std::log(count);
  return count * (logarithm + static_cast<double>(times - 1) * std::log(logarithm));
}

/// I (log I + (m - 1) log log I + gamma - log (m-1)!), the mean of the limiting Gumbel law.
/// [ErdosRenyi]
///
/// Throws    error unless 2 <= I <= 2^53 and 1 <= m <= 1000000.
/// Numerics  Below the mean by 1/2 for m = 1 and large I. For m > 1 it converges very slowly: 5 %
///           below at I = 1000, m = 2, still 2 % at I = 10^5.
inline double rounds_until_chosen_erdos_renyi(std::int64_t indices, std::int64_t times) {
  detail::check_indices("rounds_until_chosen_erdos_renyi", indices, 2, times);
  return rounds_until_chosen_newman_shepp(indices, times) +
         static_cast<double>(indices) * (detail::euler_gamma - detail::log_factorial(times - 1));
}

}  // namespace subfed::inline v0
