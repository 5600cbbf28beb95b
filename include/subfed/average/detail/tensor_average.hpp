// SPDX-License-Identifier: MIT
/// The engine of both forms of the selective average: it gives every element of one global tensor
/// the mean over its holders, without a count tensor, a mask or an index tensor.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/terms.hpp>
#include <subfed/average/detail/tile_row.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::detail {

/// Averages rows of one tensor. Participants are visited in the order given at every element.
///
/// A row is averaged by segments (segment_row) where its holders have few runs in it. With many
/// runs, as in random sets, it is averaged in vectors by masks (masked_row_average), node by node
/// (node_row) or through a tile of sums (tile_row).
///
/// One object serves one thread; the layout is shared.
template <class T, class From = T>
class tensor_average : tile_row<T, From> {
  using base = tile_row<T, From>;

 public:
  tensor_average(T* global, const average_layout<From>& layout, const average_terms& terms)
      : base(global, layout, terms), steps_(holders_.size()), cursors_(holders_.size()) {
    if (plain_ && !is_mixed && !layout.nodes().empty() && !skips_elements() && !makes_terms()) {
      prepare_nodes();
    }
  }

  /// Averages the slabs begin .. end-1 of the layout and counts what was written and skipped.
  void run(std::int64_t begin, std::int64_t end) {
    of_level_[0] = layout_.participants().size();
    for (std::size_t p = 0; p < of_level_[0]; ++p) holders_at(0)[p] = {p, 0};
    if (layout_.levels().size() == 1) {
      row(0, 0, begin, end);
    } else {
      descend(0, 0, 0, begin, end);
    }
  }

  const part_report& report() const noexcept { return report_; }

 private:
  static constexpr bool has_masks = std::is_same_v<T, From> && has_lanes<T> && sizeof(T) <= 4;

  static constexpr bool may_copy = std::is_same_v<T, From> && copies_as_mean<T>;

  using base::careful;
  using base::copies_;
  using base::dividers_;
  using base::find_segments;
  using base::global_;
  using base::holders_;
  using base::holders_at;
  using base::inner;
  using base::is_mixed;
  using base::layout_;
  using base::makes_terms;
  using base::mend;
  using base::of_level_;
  using base::plain_;
  using base::prepare_nodes;
  using base::report_;
  using base::row_global_;
  using base::row_holders;
  using base::row_sum_;
  using base::scattered_mean;
  using base::segment_mean;
  using base::segments_;
  using base::skips_elements;
  using base::terms_;
  using base::tile;
  using typename base::holder;
  using typename base::segment;

  /// Visits the indices begin .. end-1 of a level; the holders of a level hold all indices so far.
  void descend(std::size_t depth, std::int64_t global_offset, std::int64_t sum_offset,
               std::int64_t begin, std::int64_t end) {
    const average_level& at = layout_.levels()[depth];
    const std::span<const holder> outer(holders_at(depth), of_level_[depth]);
    holder* const now = holders_at(depth + 1);
    std::size_t& held_by = of_level_[depth + 1];
    const std::size_t own_lists = depth * layout_.participants().size();
    std::size_t* const cursor = cursors_.data() + own_lists;
    std::int64_t* const steps = steps_.data() + own_lists;
    std::fill_n(cursor, outer.size(), std::size_t{0});
    for (std::int64_t i = begin; i < end;) {
      held_by = 0;
      this->holders_are_new_ = true;
      std::int64_t until = end;  // as far as the holders are the same
      for (std::size_t h = 0; h < outer.size(); ++h) {
        const std::size_t p = outer[h].participant;
        const subfed::run* const own = at.run_at(p, i, cursor[h], until);
        if (own == nullptr) continue;
        const std::int64_t position = own->position + (i - own->first);
        now[held_by] = {p, outer[h].offset + position * at.strides[p]};
        steps[held_by++] = at.strides[p];
      }
      if (held_by == 0) {
        i = until;
        continue;
      }
      if constexpr (may_copy) {
        if (depth + 2 == layout_.levels().size() && held_by == 1 && pays_to_copy(now[0])) {
          for (; i < until; ++i) {
            copy_row(now[0], global_offset + i * at.global_stride, 0, inner().extent);
            now[0].offset += steps[0];
          }
          continue;
        }
      }
      if constexpr (has_masks) {
        if (depth + 2 == layout_.levels().size() && this->pattern_applies(until - i)) {
          rows_alike({now, held_by}, {steps, held_by}, global_offset + i * at.global_stride,
                     at.global_stride, until - i);
          i = until;
          continue;
        }
      }
      for (; i < until; ++i) {
        const std::int64_t global = global_offset + i * at.global_stride;
        const std::int64_t sum = sum_offset + i * at.sum_stride;
        if (depth + 2 == layout_.levels().size()) {
          row(global, sum, 0, inner().extent);
        } else {
          descend(depth + 1, global, sum, 0, layout_.levels()[depth + 1].extent);
        }
        for (std::size_t h = 0; h < held_by; ++h) now[h].offset += steps[h];
      }
    }
  }

  /// Rows with the same holders: run by run, element by element, or by masks.
  void rows_alike(std::span<const holder> holders, std::span<const std::int64_t> steps,
                  std::int64_t global_offset, std::int64_t stride, std::int64_t rows) {
    if (this->runs_apply(holders)) {
      this->runs_mean_of(holders, steps, global_offset, stride, rows);
    } else if (this->columns_apply(holders.size(), rows)) {
      this->columns_mean_of(holders, steps, global_offset, stride, rows);
    } else {
      this->pattern_mean_of(holders, steps, global_offset, stride, rows);
    }
  }

  /// Whether runs are copied faster one by one than spread over vectors by masks.
  bool pays_to_copy(const holder& only) const noexcept {
    constexpr std::int64_t shortest = 8;  // elements per run, of whoever holds them
    const auto runs = static_cast<std::int64_t>(inner().runs_of(only.participant).size());
    return copies_ && (layout_.masks().empty() || runs * shortest <= inner().extent * inner().unit);
  }

  /// The nodes begin .. end-1 of a row with one holder.
  void copy_row(const holder& only, std::int64_t global_offset, std::int64_t begin,
                std::int64_t end) {
    const std::int64_t unit = inner().unit;
    const T* const data = layout_.participants()[only.participant].data + only.offset;
    T* const out = global_ + global_offset;
    for (const subfed::run& r : inner().runs_of(only.participant)) {
      const std::int64_t first = (std::max)(r.first, begin);
      const std::int64_t last = (std::min)(r.first + r.length, end);
      if (first >= last) continue;
      copy_mean(data + (r.position + first - r.first) * unit, out + first * unit,
                (last - first) * unit);
      report_.held += (last - first) * unit;
    }
  }

  /// Averages the nodes begin .. end-1 of the row whose holders are row_holders().
  void row(std::int64_t global_offset, std::int64_t sum_offset, std::int64_t begin,
           std::int64_t end) {
    const std::span<const holder> holders = row_holders();
    row_global_ = global_offset;
    row_sum_ = sum_offset;
    if (terms_.wide) {
      for (std::int64_t i = begin * inner().unit; i < end * inner().unit; ++i) {
        report_.held += careful(i) ? 1 : 0;
      }
      return;
    }
    if constexpr (may_copy) {
      if (holders.size() == 1 && pays_to_copy(holders[0])) {
        copy_row(holders[0], global_offset, begin, end);
        return;
      }
    }
    if constexpr (has_masks || (is_mixed && has_lanes<T>)) {
      if (this->masks_apply(begin, end) && !this->is_sparse(holders)) {
        this->masked_row_mean(holders, global_offset, sum_offset, begin, end);
        mend(begin * inner().unit, end * inner().unit);
        return;
      }
    }
    if constexpr (!is_mixed) {
      if (!dividers_.empty() && inner().unit == 9) {
        this->template node_by_node_mean<9>(holders, global_offset, begin, end);
        mend(begin * 9, end * 9);
        return;
      }
    }
    if (find_segments(holders, begin, end)) {
      for (const segment& s : segments_) {
        const std::int64_t from = (std::max)(s.begin, begin * inner().unit);
        const std::int64_t to = (std::min)(s.end, end * inner().unit);
        if (from < to && s.by.weight > 0) {
          segment_mean(holders, s, global_offset, sum_offset, from, to);
        }
      }
      return;
    }
    const std::int64_t nodes = (std::max)(tile / inner().unit, std::int64_t{1});
    for (std::int64_t b = begin; b < end; b += nodes) {
      scattered_mean(holders, global_offset, sum_offset, b, (std::min)(b + nodes, end));
    }
  }

  // For each level but the last:
  std::vector<std::int64_t> steps_;   // of the holders' offsets
  std::vector<std::size_t> cursors_;  // the holders' next runs
};

}  // namespace subfed::inline v0::detail
