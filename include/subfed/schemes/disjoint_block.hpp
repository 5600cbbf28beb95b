// SPDX-License-Identifier: MIT
/// Disjoint contiguous blocks: the submodels of a simple ensemble. [Cheng, Sec. 3]
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/scheme.hpp>

#include <cstdint>
#include <string>

namespace subfed::inline v0 {

/// S = {r L .. (r+1) L - 1} with r = (client + advance j) mod (K / L): the K nodes are cut into K /
/// L blocks, and a client holds one of them.
struct disjoint_block {
  /// By how many blocks a client moves every round; 0 keeps each client with its member of the
  /// ensemble.
  std::uint64_t advance = 0;
  rounding round_to = rounding::floor;
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;

  /// Throws  error when K is not divisible by L.
  index_set operator()(const draw_request& where) const {
    const std::int64_t kept = where.kept(round_to, minimum);
    if (where.extent == 0) return {};
    if (kept == 0 || where.extent % kept != 0) {
      detail::fail("subfed: disjoint_block: group '" + std::string(where.group) + "' has " +
                   std::to_string(where.extent) + " nodes, which blocks of " +
                   std::to_string(kept) + " do not divide");
    }
    const auto blocks = static_cast<std::uint64_t>(where.extent / kept);
    const std::uint64_t moved =
        detail::multiply_mod(advance % blocks, where.round % blocks, blocks);
    const std::uint64_t r = (where.client % blocks + moved) % blocks;
    return index_set::window(where.extent, static_cast<std::int64_t>(r) * kept, kept);
  }
};

}  // namespace subfed::inline v0
