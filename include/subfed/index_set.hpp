// SPDX-License-Identifier: MIT
/// The nodes of one group that a client holds: ordered, distinct, kept as runs.
#pragma once

#include <subfed/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Positions position .. position + length - 1 of a submodel are nodes first .. first + length - 1
/// of the global model.
template <class Index>
struct basic_run {
  Index position;
  Index first;
  Index length;

  friend constexpr bool operator==(const basic_run&, const basic_run&) = default;
};
using run = basic_run<std::int64_t>;

namespace detail {

/// Appends a run, or extends the last one where the new one continues it in both models.
template <class Index>
void append_run(std::vector<basic_run<Index>>& runs, basic_run<Index> next) {
  if (next.length == 0) return;
  if (!runs.empty() && runs.back().first + runs.back().length == next.first &&
      runs.back().position + runs.back().length == next.position) {
    runs.back().length += next.length;
  } else {
    runs.push_back(next);
  }
}

}  // namespace detail

/// An ordered sequence of distinct nodes in [0, extent): position p of the submodel is node s[p] of
/// the global model. Immutable; a prefix is one run, a rolling window at most two.
///
/// Post  s[p] for p = 0 .. size()-1 are distinct and in [0, extent()); runs() concatenated is s.
/// Cost  24 bytes per run for std::int64_t.
template <std::integral Index>
class basic_index_set {
 public:
  using value_type = Index;
  using run_type = basic_run<Index>;
  class const_iterator;

  /// The empty set of an empty group.
  basic_index_set() = default;

  /// The given nodes, in the given order.
  ///
  /// Throws  error that names the first node that is outside [0, extent) or repeated, and its
  ///         position.
  /// Cost    O(n), or O(n log n) when the nodes are not ascending.
  basic_index_set(Index extent, std::span<const Index> nodes) : extent_(checked(extent)) {
    std::size_t position = 0;
    for (const Index node : nodes) {
      if (node < 0 || node >= extent_) {
        detail::fail("subfed: index_set: node " + std::to_string(node) + " at position " +
                     std::to_string(position) + " is outside [0, " + std::to_string(extent_) + ")");
      }
      // Of extent + 1 nodes one is repeated, and positions after these may not fit Index.
      if (std::cmp_less_equal(position, extent_)) {
        detail::append_run(runs_, run_type{static_cast<Index>(position), node, Index{1}});
      }
      ++position;
    }
    size_ = static_cast<Index>(position);
    finish();
  }
  basic_index_set(Index extent, std::initializer_list<Index> nodes)
      : basic_index_set(extent, std::span<const Index>(nodes.begin(), nodes.size())) {}

  /// All nodes, {0 .. extent-1}.
  static basic_index_set full(Index extent) { return prefix(extent, extent); }

  /// The first nodes, {0 .. count-1}.
  static basic_index_set prefix(Index extent, Index count) { return window(extent, 0, count); }

  /// count nodes from `first` on, continuing at 0 after the last one:
  /// {(first + t) mod extent : t = 0 .. count-1} in that order.
  ///
  /// Throws  error unless 0 <= count <= extent and 0 <= first < extent (first 0 in an empty group).
  static basic_index_set window(Index extent, Index first, Index count) {
    basic_index_set out;
    out.extent_ = checked(extent);
    if (count < 0 || count > extent) {
      detail::fail("subfed: index_set: " + std::to_string(count) +
                   " nodes are requested of a group of " + std::to_string(extent));
    }
    if (first < 0 || (first >= extent && first != 0)) {
      detail::fail("subfed: index_set: the window's first node " + std::to_string(first) +
                   " is outside [0, " + std::to_string(extent) + ")");
    }
    const Index until_end = (std::min)(count, static_cast<Index>(extent - first));
    detail::append_run(out.runs_, run_type{Index{0}, first, until_end});
    detail::append_run(out.runs_,
                       run_type{until_end, Index{0}, static_cast<Index>(count - until_end)});
    out.size_ = count;
    out.ascending_ = out.runs_.size() < 2;
    return out;
  }

  /// The runs one after the other. Positions are counted from 0; those that the runs give are ignored.
  ///
  ///   index_set::from_runs(100, {{0, 40, 10}, {0, 3, 2}})  // 40 .. 49, 3, 4
  ///
  /// Throws  error for a run that is empty or leaves [0, extent), and for a repeated node.
  /// Cost    O(n log n) for n runs, however long.
  static basic_index_set from_runs(Index extent, std::span<const run_type> runs) {
    basic_index_set out;
    out.extent_ = checked(extent);
    for (const run_type& r : runs) {
      if (r.length < 1 || r.first < 0 || r.first >= extent || r.length > extent - r.first) {
        detail::fail("subfed: index_set: a run of " + std::to_string(r.length) + " nodes from " +
                     std::to_string(r.first) + " on is empty or leaves [0, " +
                     std::to_string(extent) + ")");
      }
      if (r.length > extent - out.size_) {
        detail::fail("subfed: index_set: the runs have more nodes than the " +
                     std::to_string(extent) + " of the group, so that one is repeated");
      }
      detail::append_run(out.runs_, run_type{out.size_, r.first, r.length});
      out.size_ = static_cast<Index>(out.size_ + r.length);
    }
    out.finish();
    return out;
  }
  static basic_index_set from_runs(Index extent, std::initializer_list<run_type> runs) {
    return from_runs(extent, std::span<const run_type>(runs.begin(), runs.size()));
  }

  /// The same set with another index type.
  ///
  /// Throws  error when the extent does not fit.
  template <std::integral Other>
  explicit basic_index_set(const basic_index_set<Other>& other) {
    if (!std::in_range<Index>(other.extent())) {
      detail::fail("subfed: index_set: the extent " + std::to_string(other.extent()) +
                   " does not fit the index type, whose largest value is " +
                   std::to_string((std::numeric_limits<Index>::max)()));
    }
    extent_ = static_cast<Index>(other.extent());
    size_ = static_cast<Index>(other.size());
    ascending_ = other.is_ascending();
    for (const auto& r : other.runs()) {
      runs_.push_back({static_cast<Index>(r.position), static_cast<Index>(r.first),
                       static_cast<Index>(r.length)});
    }
  }

  /// Nodes of the whole group.
  Index extent() const noexcept { return extent_; }
  /// Nodes in the set.
  Index size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::span<const run_type> runs() const noexcept { return runs_; }

  /// True for {0 .. extent-1} in this order: slicing with it is a plain copy.
  bool is_full() const noexcept { return size_ == extent_ && runs_.size() <= 1; }
  bool is_ascending() const noexcept { return ascending_; }

  /// The node at a position. Cost: O(log runs).
  Index operator[](Index position) const {
    SUBFED_ASSERT(position >= 0 && position < size_);
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), position,
                                        [](Index p, const run_type& r) { return p < r.position; });
    const run_type& r = *std::prev(after);
    return static_cast<Index>(r.first + (position - r.position));
  }

  /// Whether a node is held. Cost: O(log runs) for an ascending set, else O(runs).
  bool contains(Index node) const noexcept {
    const auto holds = [node](const run_type& r) {
      return node >= r.first && node - r.first < r.length;
    };
    if (!ascending_) return std::any_of(runs_.begin(), runs_.end(), holds);
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), node,
                                        [](Index n, const run_type& r) { return n < r.first; });
    return after != runs_.begin() && holds(*std::prev(after));
  }

  const_iterator begin() const noexcept { return {runs_.data(), Index{0}}; }
  const_iterator end() const noexcept { return {runs_.data() + runs_.size(), Index{0}}; }

  /// Same extent, same nodes, same order.
  friend bool operator==(const basic_index_set& a, const basic_index_set& b) {
    return a.extent_ == b.extent_ && a.size_ == b.size_ && a.runs_ == b.runs_;
  }

 private:
  static Index checked(Index extent) {
    if (extent < 0) {
      detail::fail("subfed: index_set: the extent " + std::to_string(extent) + " is negative");
    }
    return extent;
  }

  /// Sets ascending_ and refuses repeated nodes, by checking runs in the order of their nodes.
  void finish() {
    const auto less = [](const run_type& a, const run_type& b) {
      return std::pair(a.first, a.position) < std::pair(b.first, b.position);
    };
    ascending_ = std::is_sorted(runs_.begin(), runs_.end(), less);
    std::vector<run_type> sorted;
    if (!ascending_) {
      sorted = runs_;
      std::sort(sorted.begin(), sorted.end(), less);
    }
    const std::vector<run_type>& by_node = ascending_ ? runs_ : sorted;
    for (std::size_t i = 1; i < by_node.size(); ++i) {
      const run_type& a = by_node[i - 1];
      const run_type& b = by_node[i];
      if (b.first - a.first >= a.length) continue;
      const Index first = static_cast<Index>(a.position + (b.first - a.first));
      detail::fail("subfed: index_set: node " + std::to_string(b.first) +
                   " is repeated, at positions " + std::to_string((std::min)(first, b.position)) +
                   " and " + std::to_string((std::max)(first, b.position)));
    }
  }

  Index extent_ = 0;
  Index size_ = 0;
  bool ascending_ = true;
  std::vector<run_type> runs_;
};

/// Iterates over the nodes in the order of the set.
template <std::integral Index>
class basic_index_set<Index>::const_iterator {
 public:
  using value_type = Index;
  using difference_type = std::ptrdiff_t;
  using reference = Index;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;

  const_iterator() = default;
  const_iterator(const run_type* at, Index offset) noexcept : at_(at), offset_(offset) {}

  Index operator*() const noexcept { return static_cast<Index>(at_->first + offset_); }
  const_iterator& operator++() noexcept {
    if (++offset_ == at_->length) {
      ++at_;
      offset_ = 0;
    }
    return *this;
  }
  const_iterator operator++(int) noexcept {
    const const_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const const_iterator&, const const_iterator&) = default;

 private:
  const run_type* at_ = nullptr;
  Index offset_ = 0;
};

using index_set = basic_index_set<std::int64_t>;

}  // namespace subfed::inline v0
