// SPDX-License-Identifier: MIT
/// How the loops of an average go through one global tensor and its holders' tensors.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/variants.hpp>
#include <subfed/detail/element_masks.hpp>
#include <subfed/detail/outer_first.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// One client's part in the average of one tensor. T: the type of its elements, or any_element.
template <class T>
struct participant {
  double weight;
  std::size_t shape;                                ///< number of its dimensions in the layout
  element_pointer_t<T> data = {};                   ///< null: it is already in the sums
  std::array<std::int64_t, max_rank> strides = {};  ///< of data
};

/// One loop. Nodes are indices of the loop; in the innermost one each node is `unit` consecutive
/// elements. The lists belong to the layout.
struct average_level {
  std::int64_t extent;
  std::int64_t unit;
  std::int64_t global_stride;  ///< of an element; from node to node outside the innermost level
  std::int64_t sum_stride;
  run* runs;                    ///< shape after shape, each by first node
  const std::size_t* begins;    ///< of each shape among them, and their end
  const std::size_t* shape_of;  ///< for each participant
  const std::int64_t* strides;  ///< for each participant, of its data

  std::span<const run> runs_of_shape(std::size_t shape) const noexcept {
    return {runs + begins[shape], runs + begins[shape + 1]};
  }
  std::span<const run> runs_of(std::size_t participant) const noexcept {
    return runs_of_shape(shape_of[participant]);
  }
  /// The positions that a participant's data has at least: those up to the last one that takes part.
  std::int64_t reach_of(std::size_t participant) const noexcept {
    std::int64_t reach = 0;
    for (const run& r : runs_of(participant)) reach = (std::max)(reach, r.position + r.length);
    return reach;
  }
  /// The participant's run that has this node, or null. The cursor is the participant's own, 0 at first,
  /// and nodes ascend from call to call. until becomes at most the first node with another answer.
  const run* run_at(std::size_t participant, std::int64_t node, std::size_t& cursor,
                    std::int64_t& until) const noexcept {
    const std::span<const run> own = runs_of(participant);
    while (cursor < own.size() && node >= own[cursor].first + own[cursor].length) ++cursor;
    if (cursor == own.size()) return nullptr;
    const run& next = own[cursor];
    const bool is_held = node >= next.first;
    until = (std::min)(until, is_held ? next.first + next.length : next.first);
    return is_held ? &next : nullptr;
  }
};

/// For each innermost node, its holders as bits, and its position in each holder's data. Built for
/// up to 64 participants that hold many short runs, as random sets do.
struct node_holders {
  std::vector<std::uint64_t> masks;     ///< bit p: participant p holds the node
  std::vector<std::int32_t> positions;  ///< [p * extent + node]: its position in p's data

  bool empty() const noexcept { return masks.empty(); }
};

/// The loops over one tensor, outermost first: its dimensions ordered by stride, and merged where
/// every participant holds all of the inner one. Participants with the same dimensions share them.
template <class T>
class average_layout {
 public:
  /// shapes: the different selections of the participants.
  template <class Global>
  average_layout(const tensor_view<Global>& global, std::span<const selection* const> shapes,
                 std::vector<participant<T>> participants)
      : participants_(std::move(participants)), shapes_(shapes.size()) {
    const auto rank = static_cast<std::size_t>((std::max)(global.rank(), 1));
    reserve(rank, shapes);
    std::array<std::int64_t, max_rank> sum_strides{};
    std::int64_t sum_stride = 1;
    for (int r = global.rank() - 1; r >= 0; --r) {
      sum_strides[static_cast<std::size_t>(r)] = sum_stride;
      sum_stride *= global.extent(r);
    }
    for (int r = 0; r < global.rank(); ++r) {
      const auto at = static_cast<std::size_t>(r);
      const std::int64_t* const strides = strides_.data() + strides_.size();
      for (const auto& p : participants_) strides_.push_back(p.strides[at]);
      add_level({global.extent(r), 1, global.stride(r), sum_strides[at], nullptr, nullptr,
                 shape_of_.data(), strides},
                [&](std::size_t s) { return std::span<const run>(shapes[s]->dimension(r).runs); });
    }
    if (level_count_ == 0) {  // one loop over one element that all hold
      const run only{0, 0, 1};
      strides_.assign(participants_.size(), 1);
      add_level({1, 1, 1, 1, nullptr, nullptr, shape_of_.data(), strides_.data()},
                [&](std::size_t) { return std::span<const run>(&only, 1); });
    }
    sort_outer_first(std::span(levels_.data(), level_count_));
    merge();
    const average_level& inner = levels().back();
    contiguous_ = inner.global_stride == 1 && inner.sum_stride == 1;
    for (std::size_t p = 0; p < participants_.size(); ++p) {
      contiguous_ = contiguous_ && (participants_[p].data == nullptr || inner.strides[p] == 1);
    }
    if (!contiguous_) return;
    const bool has_short = has_short_runs();
    const bool has_data = std::none_of(participants_.begin(), participants_.end(),
                                       [](const auto& p) { return p.data == nullptr; });
    if constexpr (std::is_same_v<T, any_element>) {
      const bool in_vectors = has_short && has_data &&
                              std::all_of(participants_.begin(), participants_.end(),
                                          [](const auto& p) { return can_spread(p.data); });
      if (in_vectors && find_masks()) find_dense_sizes();
      return;
    }
    if constexpr (has_lanes<T> && sizeof(T) <= 4) {
      if (in_lanes<T>()) {
        has_short_parts_ = has_data && is_short_row() && (has_short || has_short_segments());
        has_all_positions_ = has_short_parts_ && find_all_positions();
        if (has_data && (has_short_parts_ || has_short)) find_dense_sizes();
        if (has_short && (has_data || masks_are_small()) && find_masks()) return;
      }
    }
    if (has_data && has_short) find_node_holders();
  }

  average_layout(const average_layout&) = delete;
  average_layout& operator=(const average_layout&) = delete;

  std::span<const average_level> levels() const noexcept { return {levels_.data(), level_count_}; }
  std::span<const participant<T>> participants() const noexcept { return participants_; }
  /// All innermost loops step from element to element in memory.
  bool contiguous() const noexcept { return contiguous_; }
  /// The outermost loop's nodes: parts that can be averaged independently.
  std::int64_t slabs() const noexcept { return levels_[0].extent; }

  /// Who holds the innermost nodes; empty where it is not needed (see node_holders).
  const node_holders& nodes() const noexcept { return nodes_; }
  /// The innermost elements of each shape; empty where they are not needed, or not in ascending order.
  std::span<const element_masks> masks() const noexcept { return masks_; }
  /// Rows are short, and so are their parts with the same holders.
  bool has_short_parts() const noexcept { return has_short_parts_; }
  /// Every innermost position up to a participant's last one takes part: false for some restricted
  /// submodels. Known where parts are short.
  bool has_all_positions() const noexcept { return has_all_positions_; }
  /// Memory of what participants hold.
  std::int64_t bytes() const noexcept {
    std::size_t out = nodes_.masks.size() * 8 + nodes_.positions.size() * 4;
    out += runs_.size() * sizeof(run) + (shape_of_.size() + strides_.size() + begins_.size()) * 8;
    for (const element_masks& own : masks_) out += own.masks.size() * 6;
    return static_cast<std::int64_t>(out);
  }
  /// How many elements a participant has one after the other in memory; 0 where there are gaps. Known
  /// where there are masks or short parts.
  std::int64_t dense_size(std::size_t participant) const noexcept { return dense_[participant]; }

 private:
  /// Longer units are not distinguished: segments are long then anyway.
  static constexpr std::int64_t longest_unit = 256;

  /// Levels point into the lists, which must not move.
  void reserve(std::size_t rank, std::span<const selection* const> shapes) {
    std::size_t runs = shapes.size();
    for (const selection* own : shapes) {
      for (int r = 0; r < own->rank(); ++r) runs += own->dimension(r).runs.size();
    }
    runs_.reserve(runs);
    begins_.reserve(rank * (shapes.size() + 1));
    strides_.reserve(rank * participants_.size());
    shape_of_.reserve(participants_.size());
    for (const auto& p : participants_) shape_of_.push_back(p.shape);
  }

  /// runs_of_shape(s): of shape number s, in any order.
  template <class F>
  void add_level(average_level level, F&& runs_of_shape) {
    const std::size_t begin = runs_.size();
    level.runs = runs_.data() + begin;
    level.begins = begins_.data() + begins_.size();
    const auto before = [](const run& a, const run& b) { return a.first < b.first; };
    for (std::size_t s = 0; s < shapes_; ++s) {
      const std::span<const run> own = runs_of_shape(s);
      begins_.push_back(runs_.size() - begin);
      const auto first = runs_.insert(runs_.end(), own.begin(), own.end());
      if (!std::is_sorted(first, runs_.end(), before)) std::sort(first, runs_.end(), before);
    }
    begins_.push_back(runs_.size() - begin);
    levels_[level_count_++] = level;
  }

  void merge() {
    for (std::size_t i = level_count_; i-- > 1;) {
      average_level& outer = levels_[i - 1];
      const average_level& inner = levels_[i];
      const std::int64_t elements = inner.extent * inner.unit;
      if (!mergeable(outer, inner, elements)) continue;
      outer.unit = elements;
      outer.global_stride = inner.global_stride;
      outer.sum_stride = inner.sum_stride;
      outer.strides = inner.strides;
      std::copy(levels_.begin() + static_cast<std::ptrdiff_t>(i + 1),
                levels_.begin() + static_cast<std::ptrdiff_t>(level_count_),
                levels_.begin() + static_cast<std::ptrdiff_t>(i));
      --level_count_;
      if (outer.unit > longest_unit) dissolve_unit(outer);
    }
    for (std::size_t i = 0; i + 1 < level_count_; ++i) dissolve_unit(levels_[i]);
  }

  /// Counts a level's nodes by elements instead of units.
  void dissolve_unit(average_level& level) const {
    if (level.unit == 1) return;
    for (run& r : std::span(level.runs, level.begins[shapes_])) {
      r = {r.position * level.unit, r.first * level.unit, r.length * level.unit};
    }
    level.extent *= level.unit;
    level.unit = 1;
  }

  bool mergeable(const average_level& outer, const average_level& inner,
                 std::int64_t elements) const {
    if (outer.global_stride != elements * inner.global_stride ||
        outer.sum_stride != elements * inner.sum_stride) {
      return false;
    }
    const run whole{0, 0, inner.extent};
    for (std::size_t shape = 0; shape < shapes_; ++shape) {
      const std::span<const run> runs = inner.runs_of_shape(shape);
      if (runs.size() != 1 || runs[0] != whole) return false;
    }
    for (std::size_t p = 0; p < participants_.size(); ++p) {
      if (participants_[p].data != nullptr && outer.strides[p] != elements * inner.strides[p]) {
        return false;
      }
    }
    return true;
  }

  /// Whether runs are short on average.
  bool has_short_runs() const {
    const average_level& inner = levels().back();
    const std::size_t count = participants_.size();
    std::size_t runs = 0;
    for (std::size_t p = 0; p < count; ++p) runs += inner.runs_of(p).size();
    constexpr std::int64_t shortest = 32;  // elements per run; with longer ones segments pay off
    return runs > 2 * count &&
           static_cast<std::int64_t>(runs) * shortest > inner.extent * inner.unit;
  }

  /// Whether the parts of a row with the same holders are too short for loops of their own.
  bool has_short_segments() const {
    constexpr std::int64_t shortest = 32;  // elements
    const average_level& inner = levels().back();
    std::vector<std::int64_t> borders{0, inner.extent};
    for (const run& r : std::span(inner.runs, inner.begins[shapes_])) {
      borders.push_back(r.first);
      borders.push_back(r.first + r.length);
    }
    std::sort(borders.begin(), borders.end());
    const auto last = std::unique(borders.begin(), borders.end());
    return static_cast<std::int64_t>(last - borders.begin() - 1) * shortest >=
           inner.extent * inner.unit;
  }
  bool is_short_row() const noexcept {
    constexpr std::int64_t longest = 2048;  // elements
    return level_count_ > 1 && levels().back().extent * levels().back().unit <= longest;
  }

  bool find_all_positions() const {
    const average_level& inner = levels().back();
    for (std::size_t p = 0; p < participants_.size(); ++p) {
      std::int64_t held = 0;
      for (const run& r : inner.runs_of(p)) held += r.length;
      if (held != inner.reach_of(p)) return false;
    }
    return true;
  }

  /// Whether masks take no more memory than a streaming average may spare when it finishes, whose holders
  /// may be many.
  bool masks_are_small() const noexcept {
    constexpr std::int64_t most = std::int64_t{4} << 20;  // bytes
    const std::int64_t blocks = levels().back().extent / 16 * levels().back().unit + 1;
    return blocks <= most / 6 / static_cast<std::int64_t>(shapes_);
  }

  /// False where a shape has none.
  bool find_masks() {
    const average_level& inner = levels().back();
    for (std::size_t shape = 0; shape < shapes_; ++shape) {
      masks_.push_back(masks_of(inner.runs_of_shape(shape), inner.extent, inner.unit));
      if (!masks_.back().empty()) continue;
      masks_.clear();
      return false;
    }
    return true;
  }

  void find_dense_sizes() {
    for (std::size_t p = 0; p < participants_.size(); ++p) dense_.push_back(find_dense_size(p));
  }
  std::int64_t find_dense_size(std::size_t p) const {
    std::int64_t size = 1;
    for (std::size_t l = level_count_; l-- > 0;) {
      const average_level& at = levels_[l];
      const std::int64_t reach = at.reach_of(p);
      if (reach != 1 && at.strides[p] != size && l + 1 != level_count_) return 0;
      size *= reach * at.unit;
    }
    return size;
  }

  /// Where units are not single elements.
  void find_node_holders() {
    const average_level& inner = levels().back();
    const std::size_t count = participants_.size();
    if (count > 64 || inner.unit == 1 || inner.extent > (std::int64_t{1} << 30)) return;
    const auto extent = static_cast<std::size_t>(inner.extent);
    nodes_.masks.assign(extent, 0);
    nodes_.positions.assign(extent * count, 0);
    for (std::size_t p = 0; p < count; ++p) {
      for (const run& r : inner.runs_of(p)) {
        for (std::int64_t i = 0; i < r.length; ++i) {
          const auto node = static_cast<std::size_t>(r.first + i);
          nodes_.masks[node] |= std::uint64_t{1} << p;
          nodes_.positions[p * extent + node] = static_cast<std::int32_t>(r.position + i);
        }
      }
    }
  }

  std::vector<participant<T>> participants_;
  std::size_t shapes_;
  std::array<average_level, max_rank> levels_{};
  std::size_t level_count_ = 0;
  std::vector<run> runs_;  // what levels point to
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> shape_of_;
  std::vector<std::int64_t> strides_;
  bool contiguous_ = false;
  bool has_short_parts_ = false;
  bool has_all_positions_ = false;
  node_holders nodes_;
  std::vector<element_masks> masks_;
  std::vector<std::int64_t> dense_;
};

}  // namespace subfed::inline v0::detail
