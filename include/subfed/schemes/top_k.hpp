// SPDX-License-Identifier: MIT
/// The nodes with the largest scores.
#pragma once

#include <subfed/error.hpp>
#include <subfed/scheme.hpp>
#include <subfed/schemes/node_scores.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The L nodes of a group with the largest scores, ascending; of equal scores the smaller nodes.
///
///   const top_k largest(node_norms<float>(net, globals));
///   const auto sub = draw(net, largest, {.capacity = 0.25});
///
/// Sets depend on the scores too, which seed, round and client do not say: this scheme has state. A
/// client derives its set from the same scores (norms of the same global tensors have the same bits
/// everywhere), or is told it: write_sets and read_sets. Keep the submodel that was sent until the
/// answer is there; with new scores it cannot be derived again.
///
/// Post    A smaller set of the same scores is a subset of a larger one.
/// Cost    A copy shares the scores. O(K) for a group of K nodes.
class top_k {
 public:
  /// Throws  error for a score that is NaN; it names the group.
  explicit top_k(node_scores scores, rounding round_to = rounding::floor, std::int64_t minimum = 1)
      : scores_(std::make_shared<const node_scores>(std::move(scores))),
        round_to_(round_to),
        minimum_(minimum) {
    for (std::size_t g = 0; g < scores_->parent().groups().size(); ++g) {
      for (const double score : (*scores_)[group_id(g)]) {
        // By the bits, which hold under -ffast-math too.
        if (std::bit_cast<std::uint64_t>(score) << 1 <= 0xFFE0000000000000u) continue;
        const std::string& name = scores_->parent().groups()[g].name;
        detail::fail("subfed: top_k: a score of group '" + name + "' is NaN", {.group = name});
      }
    }
  }

  /// Throws  error for a group that the scores are not of, or of another extent.
  index_set operator()(const draw_request& where) const {
    const auto scores = (*scores_)[scores_->parent().find_group(where.group)];
    if (std::cmp_not_equal(scores.size(), where.extent)) {
      const std::string name(where.group);
      detail::fail("subfed: top_k: group '" + name + "' has " + std::to_string(where.extent) +
                       " nodes, but there are scores of " + std::to_string(scores.size()),
                   {.group = name});
    }
    std::vector<std::int64_t> nodes(scores.size());
    std::iota(nodes.begin(), nodes.end(), std::int64_t{0});
    const auto kept = nodes.begin() + static_cast<std::ptrdiff_t>(where.kept(round_to_, minimum_));
    const auto before = [&](std::int64_t a, std::int64_t b) {
      const double of_a = scores[static_cast<std::size_t>(a)];
      const double of_b = scores[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    };
    if (kept != nodes.end()) std::nth_element(nodes.begin(), kept, nodes.end(), before);
    std::sort(nodes.begin(), kept);
    return {where.extent, std::span<const std::int64_t>(nodes).first(
                              static_cast<std::size_t>(kept - nodes.begin()))};
  }

 private:
  std::shared_ptr<const node_scores> scores_;
  rounding round_to_;
  std::int64_t minimum_;
};

}  // namespace subfed::inline v0
