// SPDX-License-Identifier: MIT
/// The different submodels that have been added to an average, each with the weight of all updates
/// that had its nodes: it replaces a count tensor as long as there are few of them.
#pragma once

#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// A hash: equal for submodels with the same nodes, rarely equal for others.
inline std::uint64_t nodes_hash(const submodel& sub) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, a 64-bit word at a time
  const auto take = [&](std::int64_t x) {
    hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x100000001B3u;
    hash ^= hash >> 29;
  };
  for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
    for (const std::span<const run> runs : {sub[group_id(g)].runs(), sub.runs(group_id(g))}) {
      take(static_cast<std::int64_t>(runs.size()));
      for (const run& r : runs) {
        take(r.first);
        take(r.length);
      }
    }
  }
  return hash;
}

/// Finds equal submodels among those numbered so far.
class submodel_index {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// The number for which same(number) holds among those added under this hash, or none.
  template <class Same>
  std::size_t find(std::uint64_t hash, Same&& same) const {
    for (auto at = known_.lower_bound({hash, 0}); at != known_.end() && at->first == hash; ++at) {
      if (same(at->second)) return at->second;
    }
    return none;
  }
  void add(std::uint64_t hash, std::size_t number) { known_.insert({hash, number}); }

 private:
  std::set<std::pair<std::uint64_t, std::size_t>> known_;
};

class holder_list {
 public:
  struct entry {
    submodel sub;
    double weight;  ///< of all updates with these nodes
  };

  void add(const submodel& sub, double weight) {
    const std::uint64_t hash = nodes_hash(sub);
    const std::size_t known = find(hash, sub);
    if (known != submodel_index::none) {
      entries_[known].weight += weight;
      return;
    }
    entry made{sub.unplanned(), weight};
    if (entries_.size() == entries_.capacity()) entries_.reserve(2 * entries_.size() + 1);
    index_.add(hash, entries_.size());  // last of what fails where memory runs out
    entries_.push_back(std::move(made));
    bytes_ += bytes_of(sub);
  }
  /// By how much add() would increase bytes().
  std::int64_t more_bytes(const submodel& sub) const {
    return find(nodes_hash(sub), sub) != submodel_index::none ? 0 : bytes_of(sub);
  }

  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// Memory of the submodels' runs; the rest is the same for all.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t find(std::uint64_t hash, const submodel& sub) const {
    return index_.find(hash, [&](std::size_t e) { return entries_[e].sub.same_nodes(sub); });
  }
  static std::int64_t bytes_of(const submodel& sub) {
    std::size_t runs = 0;
    for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
      runs += sub[group_id(g)].runs().size() + sub.runs(group_id(g)).size();
    }
    return static_cast<std::int64_t>(runs * sizeof(run));
  }

  std::vector<entry> entries_;
  submodel_index index_;
  std::int64_t bytes_ = 0;
};

}  // namespace subfed::inline v0::detail
