// SPDX-License-Identifier: MIT
/// Rows whose holders have few runs in them.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/average_row.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/index_set.hpp>
#include <subfed/scalar.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::detail {

/// The row is cut into segments with the same holders, and each segment is summed over all of them at
/// once, in registers.
template <class T, class From>
class segment_row : protected average_row<T, From> {
 protected:
  using base = average_row<T, From>;
  using base::add_to_tile;
  using base::base;
  using base::finish_tile;
  using base::makes_terms;
  ~segment_row() = default;
  using base::checked_;
  using base::convert_apart;
  using base::copies_;
  using base::global_;
  using base::holders_are_new_;
  using base::how_;
  using base::inner;
  using base::lanes_;
  using base::layout_;
  using base::mend;
  using base::mended_;
  using base::report_;
  using base::skips_elements;
  using base::start_tile;
  using base::sums_;
  using base::terms_;
  using base::tile;
  using base::write;
  using typename base::holder;

  /// Elements begin .. end-1 of a row, with the same holders throughout.
  struct segment {
    std::int64_t begin, end;
    divider by;  // the holders' weight
    bool ones;   // all weights are 1, and the holders may_group
    std::size_t first_part, parts;
  };
  /// A segment's holder: its number in the row's list, and where the segment begins in its data.
  struct segment_part {
    std::size_t holder;
    std::int64_t offset;
    element_pointer_t<From> data;  // of the participant
    double weight;
  };

  std::size_t runs_in(std::span<const holder> holders) const noexcept {
    std::size_t out = 0;
    for (const holder& h : holders) out += inner().runs_of(h.participant).size();
    return out;
  }
  /// Whether segments are faster than masks: they are few, and most of the row has one holder or none.
  bool is_sparse(std::span<const holder> holders) const noexcept {
    if (!copies_ || layout_.masks().empty()) return false;
    constexpr std::int64_t shortest = 24;  // elements per run
    const std::int64_t elements = inner().extent * inner().unit;
    std::int64_t held = 0;
    for (const holder& h : holders) held += layout_.masks()[inner().shape_of[h.participant]].size;
    return 2 * held <= elements &&
           static_cast<std::int64_t>(runs_in(holders)) * shortest <= elements;
  }

  /// The segments of a row's nodes begin .. end-1; kept from row to row while the holders are the same.
  /// False where the average segment would be too short to pay off, or where single elements are left
  /// out.
  bool find_segments(std::span<const holder> holders, std::int64_t begin, std::int64_t end) {
    if (skips_elements()) return false;
    const auto same = [](const holder& a, std::size_t b) { return a.participant == b; };
    const bool known =
        begin == begin_ && end == end_ &&
        (!holders_are_new_ || std::equal(holders.begin(), holders.end(), segment_holders_.begin(),
                                         segment_holders_.end(), same));
    holders_are_new_ = false;
    if (known) return segmented_;
    begin_ = begin;
    end_ = end;
    segment_holders_.clear();
    for (const holder& h : holders) segment_holders_.push_back(h.participant);
    const std::size_t runs = runs_in(holders);
    constexpr std::int64_t shortest = 32;  // elements per run; shorter ones go through the tile
    segmented_ = is_sparse(holders) ||
                 static_cast<std::int64_t>(runs) * shortest <= inner().extent * inner().unit ||
                 runs <= 2 * holders.size();
    if (segmented_) cut_segments(holders, begin, end);
    return segmented_;
  }

  /// In one pass over the holders' runs together. Elements without a holder are in no segment.
  void cut_segments(std::span<const holder> holders, std::int64_t begin, std::int64_t end) {
    segments_.clear();
    parts_.clear();
    run_cursor_.clear();
    for (const holder& h : holders) {
      const std::span<const subfed::run> runs = inner().runs_of(h.participant);
      const auto r = std::partition_point(runs.begin(), runs.end(), [&](const subfed::run& x) {
        return x.first + x.length <= begin;
      });
      run_cursor_.push_back(static_cast<std::size_t>(r - runs.begin()));
    }
    const std::int64_t unit = inner().unit;
    for (std::int64_t at = begin; at < end;) {
      std::int64_t until = end;  // as far as the holders are the same
      const std::size_t first_part = parts_.size();
      double weight = 0;
      bool ones = true;
      for (std::size_t h = 0; h < holders.size(); ++h) {
        const std::size_t p = holders[h].participant;
        const subfed::run* const own = inner().run_at(p, at, run_cursor_[h], until);
        if (own == nullptr) continue;
        const std::int64_t position = own->position + (at - own->first);
        const auto& own_data = layout_.participants()[p];
        parts_.push_back({h, position * unit * inner().strides[p], own_data.data, own_data.weight});
        weight += own_data.weight;
        ones = ones && own_data.weight == 1;
      }
      if (parts_.size() != first_part) {
        const std::size_t count = parts_.size() - first_part;
        ones = ones && may_group<T>(count);
        segments_.push_back({at * unit, until * unit, divider(weight), ones, first_part, count});
      }
      at = until;
    }
    start_where_data_starts();
  }

  /// Puts the segment in which somebody's data begins first, so that windows that wrap around are
  /// read from front to back.
  void start_where_data_starts() {
    const auto first = std::find_if(segments_.begin(), segments_.end(), [&](const segment& s) {
      return parts_[s.first_part].offset == 0;
    });
    if (first != segments_.end()) std::rotate(segments_.begin(), first, segments_.end());
  }

  /// Elements from .. to-1 of a segment.
  void segment_mean(std::span<const holder> holders, const segment& s, std::int64_t global_offset,
                    std::int64_t sum_offset, std::int64_t from, std::int64_t to) {
    report_.held += to - from;
    if constexpr (std::is_same_v<T, From> && copies_as_mean<T>) {
      if (s.parts == 1 && copies_) {
        const segment_part& part = parts_[s.first_part];
        const std::int64_t at = holders[part.holder].offset + part.offset + (from - s.begin);
        copy_mean(part.data + at, global_ + global_offset + from, to - from);
        return;
      }
    }
    if (checked_ || !layout_.contiguous() || (convert_apart && !lanes_) || makes_terms()) {
      for (std::int64_t b = from; b < to; b += tile) {
        const std::int64_t length = (std::min)(to - b, tile);
        start_tile(sum_offset + b * inner().sum_stride, length);
        for (std::size_t k = 0; !terms_.has_sums() && k < s.parts; ++k) {
          const segment_part& part = parts_[s.first_part + k];
          const auto& p = layout_.participants()[holders[part.holder].participant];
          const std::int64_t stride = inner().strides[holders[part.holder].participant];
          const std::int64_t at =
              holders[part.holder].offset + part.offset + (b - s.begin) * stride;
          add_to_tile(holders[part.holder].participant, p.data + at, stride, 0, length);
        }
        finish_tile(length);
        write(b, sums_.data(), s.by.weight, length);
        mend(b, b + length);
      }
      return;
    }
    if constexpr (std::is_same_v<T, From>) {
      if (!mended_) {
        contiguous_mean(holders, s, global_offset, sum_offset, from, to);
        return;
      }
      constexpr std::int64_t part = 4 * tile;  // is still in the cache when it is checked
      for (std::int64_t b = from; b < to; b += part) {
        const std::int64_t until = (std::min)(b + part, to);
        contiguous_mean(holders, s, global_offset, sum_offset, b, until);
        mend(b, until);
      }
    }
  }

  /// The same without conversions and options, where everything is contiguous.
  void contiguous_mean(std::span<const holder> holders, const segment& s,
                       std::int64_t global_offset, std::int64_t sum_offset, std::int64_t from,
                       std::int64_t to) {
    T* const out = global_ + global_offset + from;
    if (terms_.fixed_sums != nullptr) {
      fixed_mean(terms_.fixed_sums + sum_offset + from, terms_.quantum, s.by.weight, out,
                 to - from);
      return;
    }
    if (terms_.sums != nullptr) {
      const double* const sums = terms_.sums + sum_offset + from;
      if constexpr (has_lanes<T>) {
        if (lanes_) {
          return mean_streams<T>(nullptr, 0, true, sums, s.by, division::by_instruction, out,
                                 to - from);
        }
      }
      if (s.by.exact) {
        for (std::int64_t i = 0; i < to - from; ++i) {
          out[i] = scalar_traits<T>::store(sums[i] * s.by.reciprocal);
        }
      } else {
        for (std::int64_t i = 0; i < to - from; ++i) {
          out[i] = scalar_traits<T>::store(sums[i] / s.by.weight);
        }
      }
      return;
    }
    streams_.resize(s.parts);
    for (std::size_t k = 0; k < s.parts; ++k) {
      const segment_part& part = parts_[s.first_part + k];
      const holder& h = holders[part.holder];
      streams_[k] = {part.data + h.offset + part.offset + (from - s.begin), part.weight};
    }
    if constexpr (has_lanes<T>) {
      if (lanes_) return mean_in_blocks(s, out, to - from);
    }
    if (s.parts <= stream_limit) {
      with_streams(streams_.data(), s.parts, s.ones,
                   [&](const auto& group) { group.mean(nullptr, s.by, out, to - from); });
      return;
    }
    for (std::int64_t b = from; b < to; b += tile) {
      many_streams_mean(s, out + (b - from), (std::min)(to - b, tile));
    }
  }

  /// Streams in blocks of a few, so that the processor can follow all of them: block after block, through
  /// the tile.
  void mean_in_blocks(const segment& s, T* out, std::int64_t length) {
    constexpr std::int64_t short_run = 256;  // of which all streams at once are in the cache
    const std::size_t streams_a_block = length <= short_run ? s.parts : 16;
    const std::int64_t piece = s.parts <= streams_a_block ? length : tile;
    for (std::int64_t b = 0; b < length; b += piece) {
      const std::int64_t here = (std::min)(piece, length - b);
      const double* before = nullptr;
      std::size_t done = 0;
      for (; s.parts - done > streams_a_block; done += streams_a_block) {
        add_streams(streams_.data() + done, streams_a_block, s.ones, before, sums_.data(), here);
        before = sums_.data();
      }
      mean_streams(streams_.data() + done, s.parts - done, s.ones, before, s.by, how_, out + b,
                   here);
      for (stream<T>& each : streams_) each.data += here;
    }
  }

  /// More streams than fit in registers: in groups, one after the other, through the tile.
  void many_streams_mean(const segment& s, T* out, std::int64_t length) {
    std::size_t done = 0;
    for (; streams_.size() - done > stream_limit; done += stream_limit) {
      with_streams(streams_.data() + done, stream_limit, s.ones, [&](const auto& group) {
        if (done == 0) {
          group.template add<true>(sums_.data(), length);
        } else {
          group.template add<false>(sums_.data(), length);
        }
      });
    }
    with_streams(streams_.data() + done, streams_.size() - done, s.ones,
                 [&](const auto& group) { group.mean(sums_.data(), s.by, out, length); });
    for (stream<T>& each : streams_) each.data += length;
  }

  std::vector<std::size_t> segment_holders_;
  bool segmented_ = false;
  std::int64_t begin_ = 0, end_ = 0;  // nodes that are segmented
  std::vector<segment> segments_;
  std::vector<segment_part> parts_;
  std::vector<std::size_t> run_cursor_;
  std::vector<stream<T>> streams_;
};

}  // namespace subfed::inline v0::detail
