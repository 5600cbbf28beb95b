// SPDX-License-Identifier: MIT
/// The number of rounds of random sets after which every node has been held m times: the coupon
/// collector's problem with L of K drawn at once.
#pragma once

#include <subfed/coverage/theory/detail/hypergeometric.hpp>
#include <subfed/coverage/theory/random_counts.hpp>
#include <subfed/coverage/theory/round_distribution.hpp>
#include <subfed/detail/arithmetic.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline void check_cover(const char* what, const random_round& round, std::int64_t times) {
  if (times < 1) {
    fail(std::string("subfed: ") + what + ": held " + std::to_string(times) +
         " times, expected at least 1");
  }
  for (const auto& mix : round.clients()) {
    if (held_share(round, mix) > 0) return;
  }
  fail(std::string("subfed: ") + what + ": no client keeps a node, so they are never covered");
}

/// Markov chain of how many nodes have been held 0, 1, .., times - 1 times.
class cover_chain {
 public:
  cover_chain(const random_round& round, std::int64_t times) : round_(round) {
    constexpr std::int64_t most = std::int64_t{1} << 24;
    std::int64_t states = 1;
    for (std::int64_t i = 0; i < times; ++i) {
      stride_.push_back(states);
      states *= round.extent() + 1;
      if (states > most) {
        fail("subfed: first_cover: " + std::to_string(round.extent()) + " nodes held " +
             std::to_string(times) +
             " times have more than 2^24 states; first_cover_bounds has no such limit");
      }
    }
    rows_.resize(stride_.size());
    p_.assign(static_cast<std::size_t>(states), 0.0);
    p_[static_cast<std::size_t>(round.extent())] = 1;
  }

  void step() {
    for (const auto& mix : round_.clients()) {
      next_.assign(p_.size(), 0.0);
      next_[0] = p_[0];
      for (std::size_t state = 1; state < p_.size(); ++state) {
        if (p_[state] < 1e-40) continue;
        for (const auto& [kept, share] : mix) {
          spread(state, 0, round_.extent(), kept, 0, 0, share * p_[state]);
        }
      }
      p_.swap(next_);
    }
  }

  /// P(not all have been held often enough).
  double going_on() const {
    double sum = 0;
    for (std::size_t state = p_.size(); state-- > 1;) sum += p_[state];
    return sum;
  }

 private:
  /// Of `from` nodes held at least `level` times, `draws` are held once more; `arriving` come from
  /// the level below.
  void spread(std::size_t state, std::size_t level, std::int64_t from, std::int64_t draws,
              std::int64_t arriving, std::int64_t reached, double p) {
    if (level == stride_.size()) {
      next_[static_cast<std::size_t>(reached)] += p;
      return;
    }
    const std::int64_t here =
        static_cast<std::int64_t>(state) / stride_[level] % (round_.extent() + 1);
    hypergeometric_row& row = rows_[level];
    row.set(from, here, draws);
    for (std::size_t i = 0; i < row.probability.size(); ++i) {
      const std::int64_t held = row.first + static_cast<std::int64_t>(i);
      spread(state, level + 1, from - here, draws - held, held,
             reached + (here - held + arriving) * stride_[level], p * row.probability[i]);
    }
  }

  const random_round& round_;
  std::vector<std::int64_t> stride_;
  std::vector<hypergeometric_row> rows_;
  std::vector<double> p_;
  std::vector<double> next_;
};

}  // namespace detail

/// Distribution of the first round after which every node has been held at least `times` times.
///
/// Throws    error when times < 1, no client keeps a node, (K + 1)^times > 2^24, or tail is not in
///           (0, 1].
/// Numerics  Exact Markov chain of the numbers of nodes held 0, 1, .. times, with positive terms
///           only: relative error of P(T > R) about 1e-16 R (clients) sqrt(K); the terms that are
///           left out add less than 1e-30. Ends at P(T > R) < tail.
/// Cost      O(R clients (states in use) (standard deviation of what a client adds)^times).
///           K = 512: 2 ms for L = 128, 30 ms for L = 1. K = 60, L = 15: 10 ms for times 2,
///           0.6 s for times 3.
inline round_distribution first_cover(const random_round& round, std::int64_t times = 1,
                                      double tail = 1e-16) {
  detail::check_cover("first_cover", round, times);
  if (!detail::in_unit_interval(tail)) {
    detail::fail("subfed: first_cover: the tail is " + detail::text(tail) + ", expected (0, 1]");
  }
  detail::cover_chain chain(round, times);
  round_distribution out;
  for (double p = 1; p >= tail; p = chain.going_on()) {
    out.beyond.push_back(p);
    chain.step();
  }
  return out;
}

/// Mean and variance of the first round after which every node has been held. For one client that
/// keeps L of K,
///
///   E T = sum_{i = 1..K} (-1)^(i+1) C(K,i) / (1 - C(K-i,L) / C(K,L)),
///
/// in which terms cancel for K over 40. It is computed instead for u = 1, 2, .. K unseen nodes:
/// E T(u) = (1 + sum_{d > 0} P(d new) E T(u - d)) / P(some new), client after client of a round.
///
/// Throws    error when no client keeps a node.
/// Numerics  Positive terms only: for K up to 10^5 the relative error of the mean is below 1e-11,
///           of the variance below 1e-9.
/// Cost      O(K clients (standard deviation of what a client adds)), 0.4 s for K = 10^5 and
///           L = K / 16; 16 (clients + 1) K bytes.
inline round_moments first_cover_moments(const random_round& round) {
  detail::check_cover("first_cover_moments", round, 1);
  struct term {
    std::size_t row;
    double share;
  };
  std::vector<std::int64_t> sizes;  // the different L
  std::vector<std::vector<term>> clients;
  for (const auto& mix : round.clients()) {
    clients.emplace_back();
    for (const auto& [kept, share] : mix) {
      if (kept == 0) continue;
      const auto at = std::find(sizes.begin(), sizes.end(), kept);
      clients.back().push_back({static_cast<std::size_t>(at - sizes.begin()), share});
      if (at == sizes.end()) sizes.push_back(kept);
    }
  }
  // later[c][u]: first two moments of the rounds after the current one, before its client c acts on
  // u unseen nodes; after the last client, the time from u.
  const auto K = static_cast<std::size_t>(round.extent());
  const std::size_t n = clients.size();
  std::vector<std::vector<std::array<double, 2>>> later(
      n + 1, std::vector<std::array<double, 2>>(K + 1, {0, 0}));
  std::vector<detail::hypergeometric_row> rows(sizes.size());
  struct outcome {
    double some = 0;   // P(some new)
    double first = 0;  // sums over them
    double second = 0;
  };
  std::vector<outcome> acts(n);
  for (std::size_t u = 1; u <= K; ++u) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      rows[i].set(round.extent(), static_cast<std::int64_t>(u), sizes[i]);
    }
    outcome whole;
    double none = 1;
    for (std::size_t c = 0; c < n; ++c) {
      acts[c] = {};
      for (const auto& [row, share] : clients[c]) {
        const auto first = static_cast<std::size_t>(rows[row].first);
        const auto& p = rows[row].probability;
        for (std::size_t i = first == 0 ? 1 : 0; i < p.size(); ++i) {
          const auto& [mean, square] = later[c + 1][u - first - i];
          acts[c].some += share * p[i];
          acts[c].first += share * p[i] * mean;
          acts[c].second += share * p[i] * square;
        }
      }
      whole.some += none * acts[c].some;
      whole.first += none * acts[c].first;
      whole.second += none * acts[c].second;
      none *= (std::max)(1 - acts[c].some, 0.0);
    }
    const double mean = (1 + whole.first) / whole.some;
    // T = 1 + later, so E T^2 = 1 + 2 E later + E later^2.
    const double square = (1 + 2 * (mean - 1) + whole.second) / whole.some;
    later[n][u] = {mean, square};
    for (std::size_t c = n; c-- > 0;) {
      const double stay = (std::max)(1 - acts[c].some, 0.0);
      later[c][u] = {acts[c].first + stay * later[c + 1][u][0],
                     acts[c].second + stay * later[c + 1][u][1]};
    }
  }
  const auto [mean, square] = later[n][K];
  return {mean, (std::max)(square - mean * mean, 0.0)};
}

}  // namespace subfed::inline v0
