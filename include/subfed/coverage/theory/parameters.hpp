// SPDX-License-Identifier: MIT
/// How often the parameters between two groups are held: a parameter is held when both of its nodes
/// are.
#pragma once

#include <subfed/coverage/theory/random_counts.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// P(a given parameter was not held in R rounds) when a tensor's dimensions are bound to different
/// groups, whose sets are random and, given the client's capacity, independent:
///
///   product over clients (1 - E[product over dimensions L / K])^R
///
/// Entry i of a client's mix is the same capacity in all dimensions.
///
/// Throws    error when R < 0, without dimensions, or when their clients or shares differ.
/// Numerics  Relative error about 1e-16 R (clients).
inline double unseen_parameter_probability(std::span<const random_round> dimensions,
                                           std::int64_t rounds) {
  detail::check_rounds("unseen_parameter_probability", rounds);
  if (dimensions.empty()) {
    detail::fail("subfed: unseen_parameter_probability: no dimensions, expected at least 1");
  }
  const auto& clients = dimensions.front().clients();
  for (const random_round& each : dimensions) {
    bool same = each.clients().size() == clients.size();
    for (std::size_t c = 0; same && c < clients.size(); ++c) {
      same = each.clients()[c].size() == clients[c].size();
      for (std::size_t i = 0; same && i < clients[c].size(); ++i) {
        same = each.clients()[c][i].share == clients[c][i].share;
      }
    }
    if (!same) {
      detail::fail(
          "subfed: unseen_parameter_probability: dimensions with different clients or shares, "
          "expected the same ones");
    }
  }
  double log_unseen = 0;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    double held = 0;
    double missed = 0;
    for (std::size_t i = 0; i < clients[c].size(); ++i) {
      double log_all = 0;
      for (const random_round& each : dimensions) {
        const std::int64_t unheld = each.extent() - each.clients()[c][i].kept;
        log_all += std::log1p(-static_cast<double>(unheld) / static_cast<double>(each.extent()));
      }
      held += clients[c][i].share * std::exp(log_all);
      missed -= clients[c][i].share * std::expm1(log_all);
    }
    if (missed == 0) return rounds == 0 ? 1 : 0;
    log_unseen += held < 0.5 ? std::log1p(-held) : std::log(missed);
  }
  return std::exp(static_cast<double>(rounds) * log_unseen);
}

/// How often the parameter between nodes i and k of two groups is held by a client whose windows in
/// both roll by 1 per round: element (i - k) mod g of the result, g = gcd(K1, K2), in any
/// lcm(K1, K2) rounds.
///
///   C(d) = number of (a, b), 0 <= a < L1, 0 <= b < L2, with a - b = d mod g
///
/// Only min(g, L1 + L2 - 1) of the g values are not 0: between two layers of K nodes, windows of L
/// never hold the parameters between nodes that are L or more apart, counted cyclically.
///
/// Throws  error unless 1 <= K < 2^31 and 0 <= L <= K in both groups.
/// Cost    O(g).
inline std::vector<std::int64_t> rolling_parameter_counts(std::int64_t extent1, std::int64_t kept1,
                                                          std::int64_t extent2,
                                                          std::int64_t kept2) {
  for (const auto& [extent, kept] : {std::pair{extent1, kept1}, std::pair{extent2, kept2}}) {
    if (extent < 1 || extent > INT32_MAX || kept < 0 || kept > extent) {
      detail::fail("subfed: rolling_parameter_counts: a window of " + std::to_string(kept) +
                   " of " + std::to_string(extent) + " nodes, expected 0 <= L <= K < 2^31, K >= 1");
    }
  }
  const std::int64_t g = std::gcd(extent1, extent2);
  // b mod g is r this often:
  const auto often = [&](std::int64_t r) { return kept2 / g + (r < kept2 % g ? 1 : 0); };
  // a - d takes each residue kept1 / g times, and once more each of the kept1 % g residues that
  // begin with -d.
  const std::int64_t rest = kept1 % g;
  std::int64_t held = kept1 / g * kept2;
  for (std::int64_t r = 0; r < rest; ++r) held += often(r);
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(g));
  for (std::int64_t d = 0; d < g; ++d) {
    out.push_back(held);
    const std::int64_t begin = (g - d) % g;
    held += often((begin + g - 1) % g) - often((begin + rest + g - 1) % g);
  }
  return out;
}

}  // namespace subfed::inline v0
