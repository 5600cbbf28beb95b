// SPDX-License-Identifier: MIT
/// The engine under both forms of the selective average: gives every element of one global tensor
/// the mean over its holders, without a count tensor, a mask or an index tensor.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/terms.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Averages rows of one tensor. Participants are visited in the order given at every element.
///
/// A row is one index of all dimensions but the innermost. Where the holders of a row have few runs
/// in it, it is cut into segments with the same holders, and each segment is summed over all of
/// them at once, in registers. Where the runs are many (random sets), clients are added one after
/// the other to a tile of sums that stays in the L1 cache, and weights are kept a unit at a time:
/// the elements of a merged inner dimension (the kernel of a convolution) share one.
///
/// Clients' elements of other types (From: any_element) are converted on their way into the tile.
///
/// Doubles can be so large or small that a sum or a product leaves the range of double. Weights have
/// been scaled so that nothing gets too small; where a result is not finite, the element is averaged
/// again, carefully, in numbers whose exponents have no bounds.
///
/// One object serves one thread; the layout is shared.
template <class T, class From = T>
class tensor_average {
 public:
  tensor_average(T* global, const average_layout<From>& layout, const average_terms& terms)
      : global_(global), layout_(layout), terms_(terms), holders_(layout.levels().size()) {
    plain_ = terms.is_plain();
    double largest = terms.largest;
    for (const auto& p : layout.participants()) {
      if (!(p.data == nullptr)) largest = (std::max)(largest, largest_at(p.data));
    }
    checked_ = !plain_ || largest > largest_of<T>();
    mended_ = !checked_ && is_far_reaching(largest);
    if (plain_ && !is_mixed && !layout.nodes().empty() && !skips_elements()) {
      prepare_nodes();
    }
  }

  /// Averages the slabs begin .. end-1 of the layout and counts what was written and skipped.
  void run(std::int64_t begin, std::int64_t end) {
    holders_[0].clear();
    for (std::size_t p = 0; p < layout_.participants().size(); ++p) holders_[0].push_back({p, 0});
    if (layout_.levels().size() == 1) {
      row(0, 0, begin, end);
    } else {
      descend(0, 0, 0, begin, end);
    }
  }

  const part_report& report() const noexcept { return report_; }

 private:
  static constexpr bool is_mixed = std::is_same_v<From, any_element>;
  /// 16-bit types are widened and narrowed in loops of their own: compilers make vector instructions
  /// of those, but not of all at once. So are types that are known at run time.
  static constexpr bool convert_apart = sizeof(T) == 2 || is_mixed;
  static constexpr std::int64_t tile = 1024;  // doubles: 8 KiB of sums and at most 8 KiB of weights

  struct holder {
    std::size_t participant;
    std::int64_t offset;  // into its data
  };
  /// Elements begin .. end-1 of a row, with the same holders throughout.
  struct segment {
    std::int64_t begin, end;
    divider by;  // the holders' weight
    bool ones;   // all weights are 1
    std::size_t first_part, parts;
  };
  /// A segment's holder: its number in the row's list, and where the segment begins in its data.
  struct segment_part {
    std::size_t holder;
    std::int64_t offset;
    element_pointer_t<From> data;  // of the participant
    double weight;
  };

  const average_level& inner() const noexcept { return layout_.levels().back(); }

  /// Goes through the indices begin .. end-1 of a level; holders_[depth] hold all indices so far.
  void descend(std::size_t depth, std::int64_t global_offset, std::int64_t sum_offset,
               std::int64_t begin, std::int64_t end) {
    const average_level& at = layout_.levels()[depth];
    const std::vector<holder>& outer = holders_[depth];
    std::vector<std::size_t> cursor(outer.size(), 0);
    for (std::int64_t i = begin; i < end; ++i) {
      std::vector<holder>& now = holders_[depth + 1];
      now.clear();
      for (std::size_t h = 0; h < outer.size(); ++h) {
        const std::size_t p = outer[h].participant;
        const std::span<const subfed::run> runs = at.runs_of(p);
        std::size_t& c = cursor[h];
        while (c < runs.size() && i >= runs[c].first + runs[c].length) ++c;
        if (c == runs.size() || i < runs[c].first) continue;
        const std::int64_t position = runs[c].position + (i - runs[c].first);
        now.push_back({p, outer[h].offset + position * at.strides[p]});
      }
      if (now.empty()) continue;
      const std::int64_t global = global_offset + i * at.global_stride;
      const std::int64_t sum = sum_offset + i * at.sum_stride;
      if (depth + 2 == layout_.levels().size()) {
        row(global, sum, 0, inner().extent);
      } else {
        descend(depth + 1, global, sum, 0, layout_.levels()[depth + 1].extent);
      }
    }
  }

  /// Averages the nodes begin .. end-1 of the row whose holders are holders_.back().
  void row(std::int64_t global_offset, std::int64_t sum_offset, std::int64_t begin,
           std::int64_t end) {
    const std::vector<holder>& holders = holders_.back();
    row_global_ = global_offset;
    row_sum_ = sum_offset;
    if (terms_.wide) {
      for (std::int64_t i = begin * inner().unit; i < end * inner().unit; ++i) {
        report_.held += careful(i) ? 1 : 0;
      }
      return;
    }
    if constexpr (!is_mixed) {
      if (!dividers_.empty() && inner().unit == 9) {
        node_by_node_mean<9>(holders, global_offset, begin, end);
        mend(begin * 9, end * 9);
        return;
      }
    }
    if (find_segments(holders)) {
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

  bool skips_elements() const noexcept {
    return terms_.options.on_non_finite == non_finite::skip_element && terms_.sums == nullptr;
  }

  /// The row's segments; kept from row to row while the holders are the same. False where the
  /// average segment would be too short to pay, or where single elements are left out.
  bool find_segments(const std::vector<holder>& holders) {
    if (skips_elements()) return false;
    const auto same = [](const holder& a, std::size_t b) { return a.participant == b; };
    if (std::equal(holders.begin(), holders.end(), segment_holders_.begin(), segment_holders_.end(),
                   same)) {
      return segmented_;
    }
    segment_holders_.clear();
    std::size_t runs = 0;
    for (const holder& h : holders) {
      segment_holders_.push_back(h.participant);
      runs += inner().runs_of(h.participant).size();
    }
    constexpr std::int64_t shortest = 32;  // elements a run; fewer go through the tile
    segmented_ = static_cast<std::int64_t>(runs) * shortest <= inner().extent * inner().unit ||
                 runs <= 2 * holders.size();
    if (segmented_) cut_segments(holders);
    return segmented_;
  }

  void cut_segments(const std::vector<holder>& holders) {
    borders_.clear();
    for (const holder& h : holders) {
      for (const subfed::run& r : inner().runs_of(h.participant)) {
        borders_.push_back(r.first);
        borders_.push_back(r.first + r.length);
      }
    }
    std::sort(borders_.begin(), borders_.end());
    borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
    segments_.clear();
    parts_.clear();
    run_cursor_.assign(holders.size(), 0);
    const std::int64_t unit = inner().unit;
    for (std::size_t b = 1; b < borders_.size(); ++b) {
      const std::size_t first_part = parts_.size();
      double weight = 0;
      bool ones = true;
      for (std::size_t h = 0; h < holders.size(); ++h) {
        const std::size_t p = holders[h].participant;
        const std::span<const subfed::run> own = inner().runs_of(p);
        std::size_t& c = run_cursor_[h];
        while (c < own.size() && borders_[b - 1] >= own[c].first + own[c].length) ++c;
        if (c == own.size() || borders_[b - 1] < own[c].first) continue;
        const std::int64_t position = own[c].position + (borders_[b - 1] - own[c].first);
        const auto& own_data = layout_.participants()[p];
        parts_.push_back({h, position * unit * inner().strides[p], own_data.data, own_data.weight});
        weight += own_data.weight;
        ones = ones && own_data.weight == 1;
      }
      segments_.push_back({borders_[b - 1] * unit, borders_[b] * unit, divider(weight), ones,
                           first_part, parts_.size() - first_part});
      start_where_data_starts();
    }
  }

  /// Puts the segment first in which somebody's data begins, so that windows that wrap around are
  /// read from front to back.
  void start_where_data_starts() {
    const auto first = std::find_if(segments_.begin(), segments_.end(), [&](const segment& s) {
      return s.parts != 0 && parts_[s.first_part].offset == 0;
    });
    if (first != segments_.end()) std::rotate(segments_.begin(), first, segments_.end());
  }

  /// Elements from .. to-1 of a segment.
  void segment_mean(const std::vector<holder>& holders, const segment& s,
                    std::int64_t global_offset, std::int64_t sum_offset, std::int64_t from,
                    std::int64_t to) {
    report_.held += to - from;
    if (checked_ || !layout_.contiguous() || convert_apart) {
      for (std::int64_t b = from; b < to; b += tile) {
        const std::int64_t length = (std::min)(to - b, tile);
        start_tile(sum_offset + b * inner().sum_stride, length);
        for (std::size_t k = 0; terms_.sums == nullptr && k < s.parts; ++k) {
          const segment_part& part = parts_[s.first_part + k];
          const auto& p = layout_.participants()[holders[part.holder].participant];
          const std::int64_t stride = inner().strides[holders[part.holder].participant];
          accumulate(p.data + (holders[part.holder].offset + part.offset + (b - s.begin) * stride),
                     stride, p.weight, sums_.data(), 1, length);
        }
        write(b, sums_.data(), s.by.weight, length);
        mend(b, b + length);
      }
      return;
    }
    if constexpr (!convert_apart) {
      if (!mended_) {
        contiguous_mean(holders, s, global_offset, sum_offset, from, to);
        return;
      }
      constexpr std::int64_t part = 4 * tile;  // is still in the cache when it is looked through
      for (std::int64_t b = from; b < to; b += part) {
        const std::int64_t until = (std::min)(b + part, to);
        contiguous_mean(holders, s, global_offset, sum_offset, b, until);
        mend(b, until);
      }
    }
  }

  /// The same without conversions and options, where everything lies in a row.
  void contiguous_mean(const std::vector<holder>& holders, const segment& s,
                       std::int64_t global_offset, std::int64_t sum_offset, std::int64_t from,
                       std::int64_t to) {
    T* const out = global_ + global_offset + from;
    if (terms_.sums != nullptr) {
      const double* const sums = terms_.sums + sum_offset + from;
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
    if (s.parts <= stream_limit) {
      with_streams(streams_.data(), s.parts, s.ones,
                   [&](const auto& group) { group.mean(nullptr, s.by, out, to - from); });
      return;
    }
    for (std::int64_t b = from; b < to; b += tile) {
      many_streams_mean(s, out + (b - from), (std::min)(to - b, tile));
    }
  }

  /// More streams than fit in registers: groups of them, one after the other, through the tile.
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

  /// For sets of short runs: the weight of each number of holders, where all weights are 1.
  void prepare_nodes() {
    ones_ = true;
    for (const auto& p : layout_.participants()) ones_ = ones_ && p.weight == 1;
    for (std::size_t n = 0; n <= layout_.participants().size(); ++n) {
      dividers_.emplace_back(static_cast<double>((std::max)(n, std::size_t{1})));
    }
  }

  /// Nodes begin .. end-1, each summed over its holders in registers. U: elements of a node.
  template <std::int64_t U>
  void node_by_node_mean(const std::vector<holder>& holders, std::int64_t global_offset,
                         std::int64_t begin, std::int64_t end) {
    const node_holders& nodes = layout_.nodes();
    std::array<const T*, 64> data{};
    std::array<const std::int32_t*, 64> positions{};
    std::array<double, 64> weights{};
    std::uint64_t here = 0;
    for (const holder& h : holders) {
      const std::size_t p = h.participant;
      here |= std::uint64_t{1} << p;
      data[p] = layout_.participants()[p].data + h.offset;
      positions[p] = nodes.positions.data() + p * static_cast<std::size_t>(inner().extent);
      weights[p] = layout_.participants()[p].weight;
    }
    for (std::int64_t n = begin; n < end; ++n) {
      std::uint64_t left = nodes.masks[static_cast<std::size_t>(n)] & here;
      if (left == 0) continue;
      T* const out = global_ + global_offset + n * U;
      const int held_by = std::popcount(left);
      double sums[static_cast<std::size_t>(U)] = {};
      if (ones_) {
        for (; left != 0; left &= left - 1) {
          const auto p = static_cast<std::size_t>(std::countr_zero(left));
          add_unit<U>(data[p] + positions[p][n] * U, sums);
        }
        divide_unit<U>(sums, dividers_[static_cast<std::size_t>(held_by)], out);
      } else {
        double weight = 0;
        for (; left != 0; left &= left - 1) {
          const auto p = static_cast<std::size_t>(std::countr_zero(left));
          accumulate_units<U>(data[p] + positions[p][n] * U, weights[p], sums, 1);
          weight += weights[p];
        }
        divide_unit<U>(sums, divider(weight), out);
      }
      report_.held += U;
    }
  }

  /// Nodes begin .. end-1 of a row whose holders come and go from node to node.
  void scattered_mean(const std::vector<holder>& holders, std::int64_t global_offset,
                      std::int64_t sum_offset, std::int64_t begin, std::int64_t end) {
    const std::int64_t unit = inner().unit;
    const bool by_element = skips_elements();
    start_tile(sum_offset + begin * unit * inner().sum_stride, (end - begin) * unit);
    // Weights stand for a unit each, or for an element where single elements may be left out.
    const std::int64_t weight_unit = by_element ? std::int64_t{1} : unit;
    std::fill_n(weights_.data(), (end - begin) * unit / weight_unit, 0.0);

    const bool fast = plain_ && !by_element && layout_.contiguous();
    if (fast && unit == 1) {
      add_holders<1>(holders, begin, end);
    } else if (fast && unit == 9) {
      add_holders<9>(holders, begin, end);
    } else {
      add_holders<0>(holders, begin, end);
    }

    T* const out = global_ + global_offset + begin * unit * inner().global_stride;
    if (fast && !checked_ && unit == 1) {
      report_.held += divide_each(sums_.data(), weights_.data(), out, end - begin);
    } else if (fast && !checked_ && unit == 9) {
      divide_units<9>(out, end - begin);
    } else {
      write_units(begin * unit, weight_unit, (end - begin) * unit);
    }
    mend(begin * unit, end * unit);
  }

  /// Adds what the holders have of the nodes begin .. end-1 to the tile. U: the unit of a contiguous
  /// layout of which all elements take part, or 0.
  template <std::int64_t U>
  void add_holders(const std::vector<holder>& holders, std::int64_t begin, std::int64_t end) {
    const std::int64_t unit = U != 0 ? U : inner().unit;
    const bool by_element = skips_elements();
    for (const holder& h : holders) {
      const auto& p = layout_.participants()[h.participant];
      const std::int64_t stride = inner().strides[h.participant];
      const std::span<const subfed::run> runs = inner().runs_of(h.participant);
      auto r = std::partition_point(runs.begin(), runs.end(), [begin](const subfed::run& x) {
        return x.first + x.length <= begin;
      });
      for (; r != runs.end() && r->first < end; ++r) {
        const std::int64_t from = (std::max)(r->first, begin);
        const std::int64_t length = (std::min)(r->first + r->length, end) - from;
        double* const sums = sums_.data() + (from - begin) * unit;
        element_pointer_t<From> data{};
        if (!(p.data == nullptr)) {
          data = p.data + (h.offset + (r->position + from - r->first) * unit * stride);
        }
        if (U == 0 && skips_elements()) {
          add_finite(data, stride, p.weight, (from - begin) * unit, length * unit);
          continue;
        }
        if (!(data == nullptr)) {
          if constexpr (U != 0) {
            accumulate_units<U>(data, p.weight, sums, length);
          } else {
            accumulate(data, stride, p.weight, sums, 1, length * unit);
          }
        }
        const std::int64_t repeat = by_element ? unit : 1;
        double* const weights = weights_.data() + (from - begin) * repeat;
        for (std::int64_t i = 0; i < length * repeat; ++i) weights[i] += p.weight;
      }
    }
  }

  /// Writes units of U elements from the tile; those without weight keep their bits.
  template <std::int64_t U>
  void divide_units(T* out, std::int64_t units) {
    divider by(1);
    for (std::int64_t n = 0; n < units; ++n) {
      const double weight = weights_[static_cast<std::size_t>(n)];
      if (!(weight > 0)) continue;
      if (weight != by.weight) by = divider(weight);
      divide_unit<U>(sums_.data() + n * U, by, out + n * U);
      report_.held += U;
    }
  }

  /// Nothing (-0), or the sums that were there before.
  void start_tile(std::int64_t sum_offset, std::int64_t length) {
    if (terms_.sums == nullptr) {
      std::fill_n(sums_.data(), length, -0.0);
      return;
    }
    for (std::int64_t i = 0; i < length; ++i) {
      sums_[static_cast<std::size_t>(i)] = terms_.sums[sum_offset + i * inner().sum_stride];
    }
  }

  void add_finite(element_pointer_t<From> data, std::int64_t stride, double weight, std::int64_t at,
                  std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      const double x = load_at(data + i * stride);
      if (!is_finite_double(x)) {
        ++report_.skipped;
        continue;
      }
      sums_[static_cast<std::size_t>(at + i)] += rounded_product(weight, x);
      weights_[static_cast<std::size_t>(at + i)] += weight;
    }
  }

  /// Elements of the row from `first` on, with one weight for each unit, in the tile; those without
  /// weight keep their bits.
  void write_units(std::int64_t first, std::int64_t unit, std::int64_t length) {
    for (std::int64_t i = 0; i < length; i += unit) {
      const double weight = weights_[static_cast<std::size_t>(i / unit)];
      if (!(weight > 0)) continue;
      report_.held += unit;
      write(first + i, sums_.data() + i, weight, unit);
    }
  }

  /// Elements of the row from `first` on: new values from sums[i] and the holders' weight.
  void write(std::int64_t first, const double* sums, double weight, std::int64_t length) {
    using traits = scalar_traits<T>;
    const std::int64_t stride = inner().global_stride;
    T* const out = global_ + row_global_ + first * stride;
    if (checked_) {
      for (std::int64_t i = 0; i < length; ++i) {
        const double old = plain_ ? 0 : traits::load(out[i * stride]);
        const double value = plain_ ? sums[i] / weight : combined(terms_, sums[i], weight, old);
        if (!is_finite_double(value) || (!plain_ && loses_old(terms_, weight, old))) {
          again(first + i);
        } else {
          put(first + i, value);
        }
      }
    } else if (stride == 1) {
      for (std::int64_t i = 0; i < length; ++i) out[i] = traits::store(sums[i] / weight);
    } else {
      for (std::int64_t i = 0; i < length; ++i) out[i * stride] = traits::store(sums[i] / weight);
    }
  }

  /// Writes a result from finite values, or counts that it is too large for its type.
  void put(std::int64_t i, double value) {
    using traits = scalar_traits<T>;
    const T stored = traits::store(value);
    if (!traits::is_finite(stored)) {
      report_.count_overflow(row_sum_ + i * inner().sum_stride);
    }
    if (terms_.does == pass::writes) {
      global_[row_global_ + i * inner().global_stride] = stored;
    }
  }

  /// Elements first .. last-1 of the row have been written: averages those again that are not finite.
  void mend(std::int64_t first, std::int64_t last) {
    if constexpr (is_far_reaching(largest_of<T>())) {
      if (!mended_) return;
      const std::int64_t stride = inner().global_stride;
      const T* const out = global_ + row_global_;
      // An exponent of ones overflows into the sign.
      constexpr std::uint64_t exponent = 0x7FF0000000000000u;
      std::uint64_t any = 0;
      const auto look = [&](T element) {
        const double x = scalar_traits<T>::load(element);
        any |= (std::bit_cast<std::uint64_t>(x) & exponent) + (std::uint64_t{1} << 52);
      };
      if (stride == 1) {
        for (std::int64_t i = first; i < last; ++i) look(out[i]);
      } else {
        for (std::int64_t i = first; i < last; ++i) look(out[i * stride]);
      }
      if (any >> 63 == 0) return;
      for (std::int64_t i = first; i < last; ++i) {
        if (!scalar_traits<T>::is_finite(out[i * stride])) again(i);
      }
    }
  }

  /// careful() for an element that has been counted.
  void again(std::int64_t i) {
    const std::int64_t skipped = report_.skipped;
    careful(i);
    report_.skipped = skipped;
  }

  /// Element i of the row in numbers that have no largest one. False: nobody holds it.
  bool careful(std::int64_t i) {
    using traits = scalar_traits<T>;
    const std::int64_t unit = inner().unit;
    const std::int64_t node = i / unit;
    const std::int64_t sum_offset = row_sum_ + i * inner().sum_stride;
    wide_number sum, weight;
    double odd = 0;  // what is not finite
    const auto add = [&](double factor, double x) {
      if (is_finite_double(x)) {
        sum = sum + wide_number(factor) * wide_number(x);
      } else {
        odd += x;
      }
    };
    if (terms_.sums != nullptr) add(1, terms_.sums[sum_offset]);
    for (const holder& h : holders_.back()) {
      const std::span<const subfed::run> runs = inner().runs_of(h.participant);
      const auto r = std::partition_point(runs.begin(), runs.end(), [node](const subfed::run& x) {
        return x.first + x.length <= node;
      });
      if (r == runs.end() || r->first > node) continue;
      const auto& p = layout_.participants()[h.participant];
      if (!(p.data == nullptr)) {
        const std::int64_t position = (r->position + node - r->first) * unit + i % unit;
        const double x = load_at(p.data + (h.offset + position * inner().strides[h.participant]));
        if (skips_elements() && !is_finite_double(x)) {
          ++report_.skipped;
          continue;
        }
        add(p.weight, x);
      }
      weight = weight + wide_number(p.weight);
    }
    if (weight.is_zero()) return false;
    T& element = global_[row_global_ + i * inner().global_stride];
    const double old = plain_ ? 0 : traits::load(element);
    if (is_finite_double(odd) && is_finite_double(old)) {
      put(i, careful_value(terms_, sum, weight, old));
    } else if (terms_.does == pass::writes) {
      odd += is_finite_double(old) ? 0 : sum.value();
      element = traits::store(plain_ ? odd : combined(terms_, odd, weight.value(), old));
    }
    return true;
  }

  T* global_;
  const average_layout<From>& layout_;
  average_terms terms_;
  bool plain_;
  bool checked_;                 // results may be too large for T
  bool mended_;                  // sums may be too large
  std::int64_t row_global_ = 0;  // offsets of the row in the global tensor and its sums
  std::int64_t row_sum_ = 0;
  bool ones_ = false;
  std::vector<divider> dividers_;  // of each number of holders; empty unless nodes go one by one
  std::vector<std::vector<holder>> holders_;
  std::array<double, tile> sums_{};
  std::array<double, tile> weights_{};
  std::vector<std::size_t> segment_holders_;
  bool segmented_ = false;
  std::vector<segment> segments_;
  std::vector<segment_part> parts_;
  std::vector<std::int64_t> borders_;
  std::vector<std::size_t> run_cursor_;
  std::vector<stream<T>> streams_;
  part_report report_;
};

}  // namespace subfed::inline v0::detail
