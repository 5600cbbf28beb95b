// SPDX-License-Identifier: MIT
/// How often the nodes of several groups were held together, from a log of who held what.
#pragma once

#include <subfed/coverage/detail/holding_log.hpp>
#include <subfed/coverage/detail/list_less.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Cells are choices of one segment of nodes of each group, where no set in use begins or ends
/// inside a segment: all nodes of a cell have the same history. Static sets give a handful, a group
/// that nobody cuts gives one; at worst each node is its own segment.
class joint_counts {
 public:
  /// Of the given entries of the log only.
  joint_counts(const model& net, const holding_log& log, std::span<const std::size_t> groups,
               std::span<const holding_log::number> entries) {
    std::vector<bool> used(log.submodels().size(), false);
    for (const auto e : entries) used[e] = true;
    for (const std::size_t g : groups) axes_.push_back(axis_of(net, log, g, used));

    // Entries that hold the same nodes of these groups are merged, with a multiplicity.
    std::vector<std::size_t> row_of(used.size(), 0);
    std::map<std::vector<holding_log::number>, std::size_t, list_less> known;
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (!used[s]) continue;
      std::vector<holding_log::number> key;
      for (const std::size_t g : groups) key.push_back(log.submodels()[s][g]);
      const auto [at, is_new] = known.try_emplace(std::move(key), rows_.size());
      if (is_new) rows_.push_back({at->first, 0});
      row_of[s] = at->second;
    }
    order_.reserve(entries.size());
    for (const auto e : entries) {
      ++rows_[row_of[e]].times;
      order_.push_back(static_cast<holding_log::number>(row_of[e]));
    }
  }

  /// Calls each(times, nodes) for cells: how often the nodes of the cell were held together, and
  /// how many choices of nodes the cell has.
  ///
  /// Cost  the sum over distinct holdings of (segments of all groups but the last) times (runs of
  ///       the last), and the number of cells.
  template <class Each>
  void for_each(Each&& each) const {
    std::vector<std::size_t> all(rows_.size());
    for (std::size_t r = 0; r < all.size(); ++r) all[r] = r;
    walk(0, all, 1, each);
  }

  /// For each cell, the position among the entries of the one with which the cell had been held
  /// `times` times; calls each(position). Pre: every cell has been.
  ///
  /// Cost  at most (cells of all groups but the last) times entries.
  template <class Each>
  void for_each_reached(std::int64_t times, Each&& each) const {
    std::vector<std::size_t> chosen;
    const auto from_front = [](std::size_t step) { return step; };
    const auto at = [&each](std::size_t entry, std::int64_t) { each(entry); };
    reach(chosen, 1, times, from_front, at);
  }

  /// For each cell that was ever held, the position of the last entry that held it; calls
  /// each(position, nodes), nodes as in for_each.
  template <class Each>
  void for_each_last(Each&& each) const {
    std::vector<std::size_t> chosen;
    const auto from_back = [this](std::size_t step) { return order_.size() - 1 - step; };
    reach(chosen, 1, 1, from_back, each);
  }

 private:
  using segments = std::vector<std::pair<std::size_t, std::size_t>>;  // first and end of ranges

  struct axis {
    std::vector<std::int64_t> lengths;     // nodes of each segment
    std::vector<segments> ranges;          // of each set, by its number
    std::vector<std::vector<bool>> holds;  // whether a set holds a segment
  };
  struct row {
    std::vector<holding_log::number> sets;
    std::int64_t times;
  };

  static axis axis_of(const model& net, const holding_log& log, std::size_t group,
                      const std::vector<bool>& used) {
    const auto sets = log.sets(group);
    const std::int64_t extent = net.groups()[group].extent;
    std::vector<bool> in_use(sets.size(), false);
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (used[s]) in_use[log.submodels()[s][group]] = true;
    }
    const std::size_t nodes = memory_size<std::size_t>(extent);
    std::vector<std::size_t> segment_at(nodes + 1, 0);  // 1 where a segment begins, then its number
    segment_at[0] = 1;
    segment_at[nodes] = 1;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if (!in_use[s]) continue;
      for (const auto& [first, end] : sets[s]) {
        segment_at[static_cast<std::size_t>(first)] = 1;
        segment_at[static_cast<std::size_t>(end)] = 1;
      }
    }
    axis out;
    std::size_t number = 0;
    std::size_t begin = 0;
    for (std::size_t n = 0; n <= nodes; ++n) {
      if (segment_at[n] == 0) continue;
      if (n > begin) {
        out.lengths.push_back(static_cast<std::int64_t>(n - begin));
        ++number;
      }
      begin = n;
      segment_at[n] = number;
    }
    out.ranges.resize(sets.size());
    out.holds.resize(sets.size());
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if (!in_use[s]) continue;
      out.holds[s].assign(out.lengths.size(), false);
      for (const auto& [first, end] : sets[s]) {
        const std::size_t from = segment_at[static_cast<std::size_t>(first)];
        const std::size_t to = segment_at[static_cast<std::size_t>(end)];
        out.ranges[s].emplace_back(from, to);
        for (std::size_t i = from; i < to; ++i) out.holds[s][i] = true;
      }
    }
    return out;
  }

  template <class Each>
  void walk(std::size_t level, const std::vector<std::size_t>& rows, std::int64_t nodes,
            Each& each) const {
    if (level == axes_.size()) {  // no group at all
      std::int64_t times = 0;
      for (const std::size_t r : rows) times += rows_[r].times;
      each(times, nodes);
      return;
    }
    const axis& own = axes_[level];
    if (level + 1 == axes_.size()) {
      std::vector<std::int64_t> change(own.lengths.size() + 1, 0);
      for (const std::size_t r : rows) {
        for (const auto& [first, end] : own.ranges[rows_[r].sets[level]]) {
          change[first] += rows_[r].times;
          change[end] -= rows_[r].times;
        }
      }
      std::int64_t times = 0;
      for (std::size_t i = 0; i < own.lengths.size(); ++i) {
        times += change[i];
        each(times, nodes * own.lengths[i]);
      }
      return;
    }
    std::vector<std::vector<std::size_t>> holders(own.lengths.size());
    for (const std::size_t r : rows) {
      for (const auto& [first, end] : own.ranges[rows_[r].sets[level]]) {
        for (std::size_t i = first; i < end; ++i) holders[i].push_back(r);
      }
    }
    for (std::size_t i = 0; i < holders.size(); ++i) {
      walk(level + 1, holders[i], nodes * own.lengths[i], each);
    }
  }

  /// Visits the entries, the step-th being entry(step), for each choice of segments of all groups
  /// but the last, until each segment of the last has been held `times` times.
  template <class Entry, class Each>
  void reach(std::vector<std::size_t>& chosen, std::int64_t nodes, std::int64_t times,
             const Entry& entry, Each& each) const {
    if (chosen.size() + 1 < axes_.size()) {
      const axis& own = axes_[chosen.size()];
      for (std::size_t i = 0; i < own.lengths.size(); ++i) {
        chosen.push_back(i);
        reach(chosen, nodes * own.lengths[i], times, entry, each);
        chosen.pop_back();
      }
      return;
    }
    const bool none = axes_.empty();
    std::vector<std::int64_t> counts(none ? 1 : axes_.back().lengths.size(), 0);
    const segments whole{{0, 1}};
    std::size_t left = counts.size();
    for (std::size_t step = 0; step < order_.size() && left > 0; ++step) {
      const row& own = rows_[order_[entry(step)]];
      bool holds = true;
      for (std::size_t a = 0; a < chosen.size() && holds; ++a) {
        holds = axes_[a].holds[own.sets[a]][chosen[a]];
      }
      if (!holds) continue;
      for (const auto& [first, end] : none ? whole : axes_.back().ranges[own.sets.back()]) {
        for (std::size_t i = first; i < end; ++i) {
          if (++counts[i] != times) continue;
          each(entry(step), none ? nodes : nodes * axes_.back().lengths[i]);
          --left;
        }
      }
    }
  }

  std::vector<axis> axes_;
  std::vector<row> rows_;
  std::vector<holding_log::number> order_;  // row of each entry
};

}  // namespace subfed::inline v0::detail
