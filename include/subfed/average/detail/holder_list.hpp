// SPDX-License-Identifier: MIT
/// The different submodels that have been added to an average, each with the weight of all updates
/// that had its nodes: it replaces a count tensor as long as there are few of them.
#pragma once

#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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
  void add(submodel_index&& more) noexcept { known_.merge(more.known_); }

 private:
  std::set<std::pair<std::uint64_t, std::size_t>> known_;
};

class holder_list {
 public:
  struct entry {
    submodel sub;
    double weight;  ///< of all updates with these nodes
  };

  /// An addition for which all memory has been taken.
  class addition {
    friend class holder_list;
    std::size_t known = submodel_index::none;
    double weight = 0;
    std::int64_t bytes = 0;
    std::optional<entry> made = {};  ///< of nodes that are not known
    submodel_index index = {};
  };
  addition prepare(const submodel& sub, double weight) {
    const std::uint64_t hash = nodes_hash(sub);
    addition out;
    out.known = find(hash, sub);
    out.weight = weight;
    if (out.known != submodel_index::none) return out;
    out.bytes = bytes_of(sub);
    out.made.emplace(entry{sub.unplanned(), weight});
    out.index.add(hash, entries_.size());
    if (entries_.size() == entries_.capacity()) entries_.reserve(2 * entries_.size() + 1);
    return out;
  }
  /// Pre  nothing has been added since prepare()
  void add(addition&& prepared) noexcept {
    if (prepared.known != submodel_index::none) {
      entries_[prepared.known].weight += prepared.weight;
      return;
    }
    entries_.push_back(std::move(*prepared.made));
    index_.add(std::move(prepared.index));
    bytes_ += prepared.bytes;
  }
  void add(const submodel& sub, double weight) { add(prepare(sub, weight)); }

  /// By how much add() would increase bytes().
  std::int64_t more_bytes(const submodel& sub) const {
    return find(nodes_hash(sub), sub) != submodel_index::none ? 0 : bytes_of(sub);
  }

  /// At most that much.
  static std::int64_t bytes_of(const submodel& sub) {
    std::size_t runs = 0;
    for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
      runs += sub[group_id(g)].runs().size() + sub.runs(group_id(g)).size();
    }
    return static_cast<std::int64_t>(runs * sizeof(run));
  }

  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// Memory of the submodels' runs; the rest is the same for all.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t find(std::uint64_t hash, const submodel& sub) const {
    return index_.find(hash, [&](std::size_t e) { return entries_[e].sub.same_nodes(sub); });
  }

  std::vector<entry> entries_;
  submodel_index index_;
  std::int64_t bytes_ = 0;
};

}  // namespace subfed::inline v0::detail
