// SPDX-License-Identifier: MIT
/// How evenly the nodes of a model get trained: counted from the submodels that clients held.
#pragma once

#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace subfed::inline v0 {

/// Evenness of one group, or of all groups that schemes cut.
struct coverage_summary {
  std::int64_t nodes = 0;
  std::int64_t min = 0;  ///< times that the least held node was held
  std::int64_t max = 0;  ///< times that the most held node was held
  double mean = 0;
  std::int64_t unseen = 0;  ///< nodes that were never held
  double unseen_share = 0;  ///< unseen / nodes, 0 for no nodes
  /// Gini coefficient of the counts, sum_i (2 i - n - 1) x_i / (n sum_i x_i) over ascending
  /// x_1..x_n: 0 when all nodes were held equally often, near 1 when few had it all. 0 for all
  /// zeros.
  double gini = 0;
  /// Rounds after which every node had been held; empty while some have not.
  std::optional<std::int64_t> first_full_cover = {};
};

/// Counts how often each node of each group is held. record() every client's submodel of a round,
/// then end_round().
///
/// Of a restricted submodel (see submodel::restricted) only the nodes that take part are counted.
///
/// Cost  record: O(nodes held); 16 bytes a node.
class coverage {
 public:
  explicit coverage(model net) : model_(std::move(net)) {
    for (const auto& group : model_.groups()) {
      groups_.push_back({std::vector<std::int64_t>(static_cast<std::size_t>(group.extent), 0),
                         std::vector<std::int64_t>(static_cast<std::size_t>(group.extent), never),
                         group.extent, std::nullopt});
    }
  }

  /// Counts a client of the round that is going on.
  ///
  /// Throws  error when the submodel is of another model.
  void record(const submodel& sub) {
    if (!(sub.parent() == model_)) {
      detail::fail("subfed: coverage: the submodel is of another model");
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      per_group& group = groups_[g];
      for (const run& r : sub.runs(group_id(g))) {
        for (std::int64_t n = r.first; n < r.first + r.length; ++n) {
          const auto node = static_cast<std::size_t>(n);
          if (group.counts[node]++ == 0) --group.unseen;
          group.last_round[node] = rounds_;
        }
      }
    }
  }

  void end_round() {
    ++rounds_;
    for (per_group& group : groups_) {
      if (group.unseen == 0 && !group.first_full_cover) group.first_full_cover = rounds_;
    }
  }

  /// Rounds that have ended.
  std::int64_t rounds() const noexcept { return rounds_; }

  /// How often each node was held.
  std::span<const std::int64_t> counts(group_id group) const { return at(group).counts; }

  /// Rounds since each node was last held: 0 when it was in the last ended round (or in one going
  /// on), -1 when it never was.
  std::vector<std::int64_t> rounds_since(group_id group) const {
    std::vector<std::int64_t> out;
    for (const std::int64_t last : at(group).last_round) {
      out.push_back(last == never ? -1 : (std::max)(rounds_ - 1 - last, std::int64_t{0}));
    }
    return out;
  }

  coverage_summary summary(group_id group) const {
    const per_group& g = at(group);
    return summarise(g.counts, g.first_full_cover);
  }

  /// Over the nodes of all groups that schemes cut (cut::by_scheme).
  coverage_summary summary() const {
    std::vector<std::int64_t> all;
    std::optional<std::int64_t> cover = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (model_.groups()[g].cut == cut::never) continue;
      all.insert(all.end(), groups_[g].counts.begin(), groups_[g].counts.end());
      const auto& own = groups_[g].first_full_cover;
      cover = own && cover ? std::optional((std::max)(*own, *cover)) : std::nullopt;
    }
    return summarise(std::move(all), cover);
  }

 private:
  static constexpr std::int64_t never = -1;

  struct per_group {
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> last_round;
    std::int64_t unseen;
    std::optional<std::int64_t> first_full_cover;
  };

  const per_group& at(group_id group) const {
    static_cast<void>(model_[group]);  // refuses a foreign group
    return groups_[group.number()];
  }

  static coverage_summary summarise(std::vector<std::int64_t> counts,
                                    std::optional<std::int64_t> first_full_cover) {
    coverage_summary out;
    out.nodes = static_cast<std::int64_t>(counts.size());
    out.first_full_cover = first_full_cover;
    if (counts.empty()) return out;
    std::sort(counts.begin(), counts.end());
    out.min = counts.front();
    out.max = counts.back();
    out.unseen = std::upper_bound(counts.begin(), counts.end(), 0) - counts.begin();
    const auto n = static_cast<double>(counts.size());
    double total = 0;
    double ranked = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto x = static_cast<double>(counts[i]);
      total += x;
      ranked += (2 * static_cast<double>(i) + 1 - n) * x;
    }
    out.mean = total / n;
    out.unseen_share = static_cast<double>(out.unseen) / n;
    out.gini = total > 0 ? ranked / (n * total) : 0;
    return out;
  }

  model model_;
  std::vector<per_group> groups_;
  std::int64_t rounds_ = 0;
};

}  // namespace subfed::inline v0
