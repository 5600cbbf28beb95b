// SPDX-License-Identifier: MIT
/// What the clients of a round hold when their sets are uniform and independent. [Rolex, Eq. 5]
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A number of nodes, L, that a client keeps with some probability.
struct kept_share {
  std::int64_t kept = 0;
  double share = 1;
};

/// A round of random sets of K nodes: each client of it keeps L of them, every set of L with the
/// same probability, independently of other clients and rounds. L is fixed for a client, or drawn
/// anew each round.
class random_round {
 public:
  /// One client for each of the given L.
  ///
  /// Throws  error unless 1 <= K < 2^31, and 0 <= L <= K for every client.
  random_round(std::int64_t extent, std::span<const std::int64_t> kept) : extent_(extent) {
    check_extent();
    for (const std::int64_t L : kept) add({{L, 1.0}});
  }
  random_round(std::int64_t extent, std::initializer_list<std::int64_t> kept)
      : random_round(extent, std::span(kept.begin(), kept.size())) {}

  /// `clients` clients that each draw their L from `mix` every round: capacities that are redrawn.
  /// A client that drops out keeps 0 nodes.
  ///
  /// Throws  error unless 1 <= K < 2^31, clients >= 0, 0 <= L <= K, shares are not negative and
  ///         add up to 1 within 1e-9.
  static random_round drawn(std::int64_t extent, std::int64_t clients,
                            const std::vector<kept_share>& mix) {
    if (clients < 0) {
      detail::fail("subfed: random_round: " + std::to_string(clients) +
                   " clients, expected at least 0");
    }
    random_round out(extent, std::span<const std::int64_t>());
    for (std::int64_t c = 0; c < clients; ++c) out.add(mix);
    return out;
  }

  std::int64_t extent() const noexcept { return extent_; }
  const std::vector<std::vector<kept_share>>& clients() const noexcept { return clients_; }

  /// Whether no client's L is drawn, so that all rounds hold the same number of nodes.
  bool is_fixed() const noexcept {
    for (const auto& mix : clients_) {
      if (mix.size() != 1) return false;
    }
    return true;
  }

 private:
  void check_extent() const {
    if (extent_ < 1 || extent_ > INT32_MAX) {
      detail::fail("subfed: random_round: the extent is " + std::to_string(extent_) +
                   ", expected 1 to 2^31 - 1");
    }
  }
  void add(const std::vector<kept_share>& mix) {
    std::vector<kept_share> used;
    double sum = 0;
    for (const auto& [kept, share] : mix) {
      if (kept < 0 || kept > extent_) {
        detail::fail("subfed: random_round: a client keeps " + std::to_string(kept) +
                     " nodes, expected 0 to " + std::to_string(extent_));
      }
      if (share != 0 && !detail::in_unit_interval(share)) {
        detail::fail("subfed: random_round: a share is " + detail::text(share) +
                     ", expected 0 to 1");
      }
      if (share != 0) used.push_back({kept, share});
      sum += share;
    }
    if (!(std::fabs(sum - 1) <= 1e-9)) {
      detail::fail("subfed: random_round: the shares of a client add up to " + detail::text(sum) +
                   ", expected 1");
    }
    for (auto& each : used) each.share /= sum;
    clients_.push_back(std::move(used));
  }

  std::int64_t extent_;
  std::vector<std::vector<kept_share>> clients_;
};

}  // namespace subfed::inline v0
