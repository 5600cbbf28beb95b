// SPDX-License-Identifier: MIT
/// FedRolex's rolling window. [Rolex, Eq. 4; A.4]
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/sizes.hpp>
#include <subfed/scheme.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace subfed::inline v0 {

/// The direction in which a window moves.
enum class direction { forward, backward };

/// Rolling window, [Rolex, Eq. 4]:
///
///   S = {(start + t) mod K : t = 0 .. L-1} in that order, start = (j step + phase) mod K
///
/// with j the round and L = floor(beta K) nodes kept. Each group wraps by its own K. With step 1
/// every node is held exactly L times in any K consecutive rounds.
///
/// The equation moves forward, with floor. The released FedRolex code moves backward,
/// start = (-j step) mod K, with ceil: released() gives that.
struct rolling {
  /// By how many nodes the window advances per round; any integer, taken mod K.
  std::int64_t step = 1;
  /// Overlap r in [0, 1] of consecutive windows, [Rolex, A.4]: replaces step by 1 + floor(beta
  /// (1 - r) K), so that 1 gives step 1, and 0 a whole window plus one node.
  std::optional<double> window_overlap = {};
  direction walk = direction::forward;
  rounding round_to = rounding::floor;
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;
  /// Where the window of client 0 starts in round 0.
  std::int64_t phase = 0;
  /// By how many nodes each client's window starts after that of the client with the previous
  /// number. 0 gives all clients the same window in a round; [Rolex, Fig. 1] shows clients that are
  /// 2 nodes apart.
  std::int64_t client_phase = 0;

  /// The conventions of the paper: forward, floor.
  static rolling paper() { return {}; }
  /// The conventions of the code released with the paper: backward, ceil.
  static rolling released() {
    rolling out;
    out.walk = direction::backward;
    out.round_to = rounding::ceil;
    return out;
  }

  /// Throws  error when window_overlap is outside [0, 1].
  index_set operator()(const draw_request& where) const {
    const std::int64_t kept = where.kept(round_to, minimum);
    if (where.extent == 0) return {};
    const auto extent = static_cast<std::uint64_t>(where.extent);
    const auto mod = [extent](std::int64_t x) {
      const std::int64_t rest = x % static_cast<std::int64_t>(extent);
      return static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<std::int64_t>(extent) : rest);
    };
    const auto add = [extent](std::uint64_t a, std::uint64_t b) { return (a + b) % extent; };

    std::uint64_t walked = detail::multiply_mod(where.round % extent, mod(step_of(where)), extent);
    if (walk == direction::backward) walked = (extent - walked) % extent;
    const std::uint64_t own =
        detail::multiply_mod(where.client % extent, mod(client_phase), extent);
    const std::uint64_t start = add(add(walked, mod(phase)), own);
    return index_set::window(where.extent, static_cast<std::int64_t>(start), kept);
  }

 private:
  // At -O3 GCC 12 mistakes the test of an empty optional for a read.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  std::int64_t step_of(const draw_request& where) const {
    if (!window_overlap) return step;
    if (*window_overlap != 0 && !detail::in_unit_interval(*window_overlap)) {
      detail::fail("subfed: rolling: the window_overlap " + detail::text(*window_overlap) +
                   " is outside [0, 1]");
    }
    if (*window_overlap == 1) return 1;
    const std::int64_t moved =
        where.capacity.without(*window_overlap).of(where.extent, rounding::floor, 0);
    return moved == where.extent ? 1 : moved + 1;  // mod K
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
};

}  // namespace subfed::inline v0
