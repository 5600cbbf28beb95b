// SPDX-License-Identifier: MIT
/// Simple ensemble: a client holds one of several disjoint members of equal size. [Cheng, Sec. 3]
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/scheme.hpp>

#include <cstdint>
#include <string>

namespace subfed::inline v0 {

/// S = {r L .. (r+1) L - 1} with r = (client + advance j) mod (K / L): the K nodes are cut into K /
/// L members, and a client holds one of them. member_nodes{{R}} of systems/ensemble.hpp
/// takes the number of members R instead of the capacity.
struct simple_ensemble {
  /// By how many members a client moves on every round; 0 keeps each client with its member.
  std::uint64_t advance = 0;
  rounding round_to = rounding::floor;
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;

  /// Throws  error when K is not divisible by L.
  index_set operator()(const draw_request& where) const {
    const std::int64_t kept = where.kept(round_to, minimum);
    if (where.extent == 0) return {};
    if (kept == 0 || where.extent % kept != 0) {
      detail::fail("subfed: simple_ensemble: group '" + std::string(where.group) + "' has " +
                   std::to_string(where.extent) + " nodes, which members of " +
                   std::to_string(kept) + " do not divide");
    }
    const auto members = static_cast<std::uint64_t>(where.extent / kept);
    const std::uint64_t moved =
        detail::multiply_mod(advance % members, where.round % members, members);
    const std::uint64_t r = (where.client % members + moved) % members;
    return index_set::window(where.extent, static_cast<std::int64_t>(r) * kept, kept);
  }
};

}  // namespace subfed::inline v0
