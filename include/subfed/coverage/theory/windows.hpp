// SPDX-License-Identifier: MIT
/// How often rolling and static windows hold each node, without going through the rounds.
/// [Rolex, Eq. 4, Eq. 6]
#pragma once

#include <subfed/coverage/theory/random_counts.hpp>
#include <subfed/coverage/theory/round_distribution.hpp>
#include <subfed/detail/memory_size.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// What one client holds in round j of K nodes: the `kept` nodes from (phase + j step) mod K on,
/// cyclically. Step 0 is a static set; a backward window has a negative step.
struct held_window {
  std::int64_t kept = 0;
  std::int64_t step = 1;
  std::int64_t phase = 0;
};

namespace detail {

inline void check_windows(const char* what, std::int64_t extent,
                          std::span<const held_window> windows) {
  if (extent < 1 || extent > INT32_MAX) {
    fail(std::string("subfed: ") + what + ": the extent is " + std::to_string(extent) +
         ", expected 1 to 2^31 - 1");
  }
  for (const held_window& w : windows) {
    if (w.kept < 0 || w.kept > extent) {
      fail(std::string("subfed: ") + what + ": a window keeps " + std::to_string(w.kept) +
           " nodes, expected 0 to " + std::to_string(extent));
    }
  }
}

inline std::int64_t wrapped(std::int64_t x, std::int64_t extent) {
  const std::int64_t rest = x % extent;
  return rest < 0 ? rest + extent : rest;
}

/// Rounds after which a window is back where it was.
inline std::int64_t period(std::int64_t extent, const held_window& w) {
  return extent / std::gcd(wrapped(w.step, extent), extent);
}

}  // namespace detail

/// How often each of K nodes was held in R rounds in which all the windows take part.
///
/// With step 1, any K rounds hold every node `kept` times. In general a window returns after
/// P = K / gcd(step, K) rounds, in which it starts once at each of its starts; R consists of full
/// periods and a remainder that is counted.
///
/// Throws  error unless 1 <= K < 2^31, 0 <= kept <= K, R >= 0, and a count fits 63 bits.
/// Cost    O(K) per window.
inline std::vector<std::int64_t> window_counts(std::int64_t extent,
                                               std::span<const held_window> windows,
                                               std::int64_t rounds) {
  detail::check_windows("window_counts", extent, windows);
  detail::check_rounds("window_counts", rounds);
  if (!windows.empty() && rounds > INT64_MAX / static_cast<std::int64_t>(windows.size())) {
    detail::fail("subfed: window_counts: " + std::to_string(rounds) + " rounds of " +
                 std::to_string(windows.size()) + " windows are over 2^63 - 1");
  }
  const auto K = static_cast<std::size_t>(extent);
  std::vector<std::int64_t> counts(K, 0);
  std::vector<std::int64_t> starts(K);
  for (const held_window& w : windows) {
    // starts[x]: how often the window started at x
    std::fill(starts.begin(), starts.end(), 0);
    const std::int64_t period = detail::period(extent, w);
    const std::int64_t step = detail::wrapped(w.step, extent);
    std::int64_t start = detail::wrapped(w.phase, extent);
    for (std::int64_t j = 0; j < (std::min)(period, rounds); ++j) {
      starts[static_cast<std::size_t>(start)] = rounds / period + (j < rounds % period ? 1 : 0);
      start = (start + step) % extent;
    }
    // Node n is held by the starts n - kept + 1 .. n: a sliding, cyclic sum.
    std::int64_t held = 0;
    for (std::int64_t x = extent - w.kept; x < extent; ++x) {
      held += starts[static_cast<std::size_t>(x)];
    }
    for (std::int64_t n = 0; n < extent; ++n) {
      held -= starts[static_cast<std::size_t>(detail::wrapped(n - w.kept, extent))];
      held += starts[static_cast<std::size_t>(n)];  // last: at most the number of rounds
      counts[static_cast<std::size_t>(n)] += held;
    }
  }
  return counts;
}

/// The first round after which every node has been held at least `times` times; empty when some
/// node is in no window of any round.
///
/// One window with step 1 first covers K nodes after K - kept + 1 rounds; static windows (step 0)
/// after `times` rounds or never.
///
/// Throws  error as window_counts does, and when times < 1 or times K is over 2^62.
/// Cost    O(K log(times K)) per window.
inline std::optional<std::int64_t> window_first_cover(std::int64_t extent,
                                                      std::span<const held_window> windows,
                                                      std::int64_t times = 1) {
  detail::check_windows("window_first_cover", extent, windows);
  if (times < 1 || times > (std::int64_t{1} << 62) / extent) {
    detail::fail("subfed: window_first_cover: held " + std::to_string(times) +
                 " times, expected 1 to 2^62 / K");
  }
  // A node that a window ever holds is held in each of its periods.
  std::int64_t longest = 1;
  for (const held_window& w : windows) longest = (std::max)(longest, detail::period(extent, w));
  const auto covered = [&](std::int64_t rounds) {
    const auto counts = window_counts(extent, windows, rounds);
    return *std::min_element(counts.begin(), counts.end()) >= times;
  };
  std::int64_t no = 0;
  std::int64_t yes = longest * times;
  if (!covered(yes)) return std::nullopt;
  while (yes - no > 1) {
    const std::int64_t middle = no + (yes - no) / 2;
    (covered(middle) ? yes : no) = middle;
  }
  return yes;
}

namespace detail {

/// log P(no client's window is longer than d) for d = 0 .. K - 1. Shares of a client add up to 1 but for
/// rounding, which R rounds would magnify: small probabilities are sums of shares, large ones are 1 less a
/// sum.
inline std::vector<double> log_shorter_windows(const random_round& round) {
  const std::size_t K = memory_size<double>(round.extent());
  std::vector<double> out(K, 0.0);
  for (const auto& mix : round.clients()) {
    std::vector<double> has(K + 1, 0.0);  // P(L = l)
    for (const auto& [kept, share] : mix) has[static_cast<std::size_t>(kept)] += share;
    std::vector<double> longer(K + 1, 0.0);  // P(L > l)
    for (std::size_t l = K; l-- > 0;) longer[l] = longer[l + 1] + has[l + 1];
    double shorter = 0;  // P(L <= l)
    for (std::size_t l = 0; l < K; ++l) {
      shorter += has[l];
      out[l] += shorter < 0.5 ? std::log(shorter) : std::log1p(-longer[l]);
    }
  }
  return out;
}

}  // namespace detail

/// P(node n was not held in R rounds) for each of K nodes, when all clients' windows start at
/// (j step) mod K and each one's length is drawn anew each round, as `round` says:
///
///   product over rounds j and clients of P(L <= (n - j step) mod K)
///
/// The mean over the nodes is the expected share of unseen ones. Step 0: static sets.
///
/// Throws    error when R < 0.
/// Numerics  Relative error about 1e-16 R (clients); 0 and 1 are exact.
/// Cost      O(K min(R, K) + K clients), 1 s for K = R = 20000.
inline std::vector<double> window_unseen_probabilities(const random_round& round, std::int64_t step,
                                                       std::int64_t rounds) {
  detail::check_rounds("window_unseen_probabilities", rounds);
  const std::int64_t K = round.extent();
  const std::vector<double> log_missed = detail::log_shorter_windows(round);
  const std::int64_t period = detail::period(K, {0, step, 0});
  const auto full = static_cast<double>(rounds / period);
  std::vector<double> out(detail::memory_size<double>(K), 1.0);
  for (std::int64_t n = 0; n < K; ++n) {
    double once = 0;  // over a full period
    double rest = 0;
    std::int64_t d = n;
    for (std::int64_t j = 0; j < (std::min)(period, rounds); ++j) {
      const double log_p = log_missed[static_cast<std::size_t>(d)];
      once += log_p;
      if (j < rounds % period) rest += log_p;
      d = detail::wrapped(d - detail::wrapped(step, K), K);
    }
    out[static_cast<std::size_t>(n)] = std::exp(rest + (full > 0 ? full * once : 0));
  }
  return out;
}

/// Distribution of the first full cover by windows that all start at node j mod K in round j, with
/// lengths drawn anew each round. It needs a window that reaches node K - 1, hence
///
///   P(T > R) = product over j < R and clients of P(L < K - j).
///
/// Throws    error unless at least one node is held in every round: otherwise the node where the
///           windows start could be missed.
/// Numerics  Relative error about 1e-16 R (clients).
/// Cost      O(K clients).
inline round_distribution rolling_first_cover(const random_round& round) {
  const std::int64_t K = round.extent();
  bool always = false;
  for (const auto& mix : round.clients()) {
    bool here = true;
    for (const auto& each : mix) here = here && each.kept > 0;
    always = always || here;
  }
  if (!always) {
    detail::fail(
        "subfed: rolling_first_cover: there may be rounds in which no client keeps a node, "
        "expected "
        "a client that always does");
  }
  round_distribution out;
  double beyond = 1;
  for (std::int64_t j = 0; j < K && beyond > 0; ++j) {
    out.beyond.push_back(beyond);
    for (const auto& mix : round.clients()) {
      double shorter = 0;
      double longer = 0;
      for (const auto& [kept, share] : mix) (kept < K - j ? shorter : longer) += share;
      beyond *= shorter < 0.5 ? shorter : 1 - longer;
    }
  }
  return out;
}

}  // namespace subfed::inline v0
