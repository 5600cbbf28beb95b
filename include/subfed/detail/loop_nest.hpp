// SPDX-License-Identifier: MIT
/// The loops under slice and scatter: all selected elements of a global and a local tensor, in
/// pairs, in runs that are as long as their layouts allow.
#pragma once

#include <subfed/detail/outer_first.hpp>
#include <subfed/selection.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// One dimension of the walk. Its runs, in units of the strides, are begin .. end-1 of those of the walk.
struct walk_dimension {
  std::int64_t global_stride;
  std::int64_t local_stride;
  std::int64_t global_extent;
  std::int64_t local_extent;
  std::size_t begin, end;
};

/// Pairs of elements (global, local) of one selection and two tensors of its shapes, with the dimensions reordered and merged so
/// that the innermost runs are long.
class loop_nest {
 public:
  template <class T, class U>
  loop_nest(const selection& chosen, const tensor_view<T>& global, const tensor_view<U>& local)
      : loop_nest(chosen, global.strides().data(), local.strides().data()) {}

  /// The global tensor is row-major without gaps.
  template <class U>
  loop_nest(const selection& chosen, std::span<const std::int64_t> global_extents,
            const tensor_view<U>& local)
      : loop_nest(chosen,
                  row_major_strides(
                      chosen, [&](int r) { return global_extents[static_cast<std::size_t>(r)]; })
                      .data(),
                  local.strides().data()) {}

  /// Strides in elements.
  loop_nest(const selection& chosen, const std::int64_t* global_strides,
            const std::int64_t* local_strides) {
    std::size_t all = 0;
    for (int r = 0; r < chosen.rank(); ++r) {
      all += chosen.dimension(r).runs.size();
      empty_ = empty_ || chosen.dimension(r).runs.empty();
    }
    if (empty_) return;  // strides of an empty tensor may be anything
    runs_.reserve(all);
    for (int r = 0; r < chosen.rank(); ++r) {
      const selected_dimension& d = chosen.dimension(r);
      if (d.runs.size() == 1 && d.runs[0].length == 1) {  // one element: an offset, no loop
        global_start_ += d.runs[0].first * global_strides[r];
        local_start_ += d.runs[0].position * local_strides[r];
        continue;
      }
      const std::size_t begin = runs_.size();
      runs_.insert(runs_.end(), d.runs.begin(), d.runs.end());
      dimensions_[rank_++] = {
          global_strides[r], local_strides[r], d.global_extent, d.local_extent, begin,
          runs_.size()};
    }
    sort_outer_first(std::span(dimensions_.data(), rank_));  // any order visits the same pairs
    merge();
    if (rank_ == 0) return;
    const std::span<const run> runs = runs_of(dimensions_[0]);
    ascends_ = std::is_sorted(runs.begin(), runs.end(),
                              [](const run& a, const run& b) { return a.first < b.first; });
  }

  /// Both tensors are row-major without gaps.
  explicit loop_nest(const selection& chosen)
      : loop_nest(
            chosen,
            row_major_strides(chosen, [&](int r) { return chosen.dimension(r).global_extent; })
                .data(),
            row_major_strides(chosen, [&](int r) {
              return chosen.dimension(r).local_extent;
            }).data()) {}

  /// Calls f(global_offset, local_offset, length) for every run: elements i = 0 .. length-1 at
  /// global_offset + i global_stride(), and the same for local.
  template <class F>
  void for_each(F&& f) const {
    for_each(0, outer_steps(), f);
  }

  /// Steps of the outermost loop: parts that can be processed independently.
  std::int64_t outer_steps() const noexcept {
    if (empty_) return 0;
    return rank_ == 0 ? 1 : steps(dimensions_[0]);
  }
  /// Pairs in one step.
  std::int64_t elements_a_step() const noexcept {
    std::int64_t out = 1;
    for (std::size_t d = 1; d < rank_; ++d) out *= steps(dimensions_[d]);
    return out;
  }

  /// The runs of the steps begin .. end-1.
  template <class F>
  void for_each(std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    if (rank_ == 0) {
      f(global_start_, local_start_, std::int64_t{1});
      return;
    }
    for_each_step(begin, end, [&](const run& r) { descend(0, r, global_start_, local_start_, f); });
  }

  /// The runs of pairs whose global offsets are from begin to end-1.
  ///
  /// Pre  The global tensor is row-major without gaps; begin and end are multiples of what an index of its
  ///      first dimension of several indices spans.
  template <class F>
  void for_each_between(std::int64_t begin, std::int64_t end, F&& f) const {
    if (empty_ || begin >= end) return;
    if (rank_ == 0) {
      const bool is_there = begin <= global_start_ && global_start_ < end;
      if (is_there) f(global_start_, local_start_, std::int64_t{1});
      return;
    }
    for_each_part_between(begin, end,
                          [&](const run& r) { descend(0, r, global_start_, local_start_, f); });
  }

  /// Whether there is a loop around the innermost one, whose runs are the same for each of its steps.
  bool has_rows() const noexcept { return !empty_ && rank_ >= 2; }
  /// Pre: has_rows().
  std::span<const run> row_runs() const noexcept { return runs_of(innermost()); }
  std::int64_t row_extent() const noexcept { return innermost().global_extent; }
  std::int64_t elements_a_row() const noexcept { return steps(innermost()); }

  /// Calls f(global_offset, local_offset) for every row of the steps begin .. end-1: for the runs of the
  /// innermost loop together. Pre: has_rows().
  template <class F>
  void for_each_row(std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    for_each_step(begin, end,
                  [&](const run& r) { descend_to_rows(0, r, global_start_, local_start_, f); });
  }
  /// The same for the rows between two global offsets, as for_each_between().
  ///
  /// Pre  has_rows(), and as there
  template <class F>
  void for_each_row_between(std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    for_each_part_between(
        begin, end, [&](const run& r) { descend_to_rows(0, r, global_start_, local_start_, f); });
  }

 private:
  /// Calls f(part of a run of the outermost loop) for all that lies between two global offsets.
  template <class F>
  void for_each_part_between(std::int64_t begin, std::int64_t end, F&& f) const {
    const std::int64_t from = first_index_at(begin);
    const std::int64_t to = first_index_at(end);
    const std::span<const run> runs = runs_of(dimensions_[0]);
    auto at = runs.begin();
    if (ascends_) {
      at = std::partition_point(at, runs.end(),
                                [&](const run& r) { return r.first + r.length <= from; });
    }
    for (; at != runs.end(); ++at) {
      if (ascends_ && at->first >= to) return;
      const std::int64_t first = (std::max)(at->first, from);
      const std::int64_t last = (std::min)(at->first + at->length, to);
      if (first < last) f(run{at->position + (first - at->first), first, last - first});
    }
  }

  /// Calls f(part of a run) for the steps begin .. end-1 of the outermost loop.
  template <class F>
  void for_each_step(std::int64_t begin, std::int64_t end, F&& f) const {
    std::int64_t before = 0;  // steps of the runs so far
    for (const run& r : runs_of(dimensions_[0])) {
      const std::int64_t from = (std::max)(begin - before, std::int64_t{0});
      const std::int64_t to = (std::min)(end - before, r.length);
      if (from < to) f(run{r.position + from, r.first + from, to - from});
      before += r.length;
      if (before >= end) return;
    }
  }

 public:
  std::int64_t global_stride() const noexcept { return rank_ == 0 ? 1 : innermost().global_stride; }
  std::int64_t local_stride() const noexcept { return rank_ == 0 ? 1 : innermost().local_stride; }

 private:
  template <class ExtentOf>
  static std::array<std::int64_t, max_rank> row_major_strides(const selection& chosen,
                                                              ExtentOf&& extent) noexcept {
    std::array<std::int64_t, max_rank> out{};
    std::int64_t stride = 1;
    for (int r = chosen.rank(); r-- > 0; stride *= extent(r)) {
      out[static_cast<std::size_t>(r)] = stride;
    }
    return out;
  }

  std::span<const run> runs_of(const walk_dimension& d) const noexcept {
    return {runs_.data() + d.begin, runs_.data() + d.end};
  }
  const walk_dimension& innermost() const noexcept { return dimensions_[rank_ - 1]; }

  bool is_whole(const walk_dimension& d) const noexcept {
    return d.local_extent == d.global_extent && d.end == d.begin + 1 &&
           runs_[d.begin] == run{0, 0, d.global_extent};
  }

  /// Joins a dimension that is selected completely with the one around it, where both are
  /// contiguous in both tensors.
  void merge() noexcept {
    for (std::size_t inner = rank_; inner-- > 1;) {
      walk_dimension& a = dimensions_[inner - 1];
      const walk_dimension& b = dimensions_[inner];
      const std::int64_t extent = b.global_extent;
      if (!is_whole(b) || !is_multiple(a.global_stride, extent, b.global_stride) ||
          !is_multiple(a.local_stride, extent, b.local_stride)) {
        continue;
      }
      a.global_stride = b.global_stride;
      a.local_stride = b.local_stride;
      a.global_extent *= extent;
      a.local_extent *= extent;
      for (std::size_t k = a.begin; k < a.end; ++k) {
        run& r = runs_[k];
        r = {r.position * extent, r.first * extent, r.length * extent};
      }
      for (std::size_t d = inner + 1; d < rank_; ++d) dimensions_[d - 1] = dimensions_[d];
      --rank_;
    }
  }

  /// Whether outer equals extent * inner, which may exceed 64 bits.
  static bool is_multiple(std::int64_t outer, std::int64_t extent, std::int64_t inner) noexcept {
    return outer % extent == 0 && outer / extent == inner;
  }

  /// The outermost loop's first index whose pairs lie at this global offset or after it.
  std::int64_t first_index_at(std::int64_t offset) const noexcept {
    const std::int64_t stride = dimensions_[0].global_stride;
    if (offset <= global_start_) return 0;
    return (offset - global_start_ + stride - 1) / stride;
  }

  std::int64_t steps(const walk_dimension& d) const noexcept {
    std::int64_t out = 0;
    for (const run& r : runs_of(d)) out += r.length;
    return out;
  }

  /// One run of a level, and all levels within.
  template <class F>
  void descend(std::size_t level, const run& r, std::int64_t global, std::int64_t local,
               F& f) const {
    const walk_dimension& d = dimensions_[level];
    std::int64_t g = global + r.first * d.global_stride;
    std::int64_t l = local + r.position * d.local_stride;
    if (level + 1 == rank_) {
      f(g, l, r.length);
      return;
    }
    const std::span<const run> inner = runs_of(dimensions_[level + 1]);
    for (std::int64_t i = 0; i < r.length; ++i) {
      for (const run& next : inner) descend(level + 1, next, g, l, f);
      g += d.global_stride;
      l += d.local_stride;
    }
  }

  /// The same as far as the innermost loop but one.
  template <class F>
  void descend_to_rows(std::size_t level, const run& r, std::int64_t global, std::int64_t local,
                       F& f) const {
    const walk_dimension& d = dimensions_[level];
    std::int64_t g = global + r.first * d.global_stride;
    std::int64_t l = local + r.position * d.local_stride;
    for (std::int64_t i = 0; i < r.length; ++i) {
      if (level + 2 == rank_) {
        f(g, l);
      } else {
        for (const run& next : runs_of(dimensions_[level + 1])) {
          descend_to_rows(level + 1, next, g, l, f);
        }
      }
      g += d.global_stride;
      l += d.local_stride;
    }
  }

  std::array<walk_dimension, max_rank> dimensions_{};
  std::size_t rank_ = 0;
  std::vector<run> runs_;
  std::int64_t global_start_ = 0;
  std::int64_t local_start_ = 0;
  bool empty_ = false;
  bool ascends_ = true;  // the runs of the outermost loop
};

}  // namespace subfed::inline v0::detail
