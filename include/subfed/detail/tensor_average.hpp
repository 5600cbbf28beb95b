// SPDX-License-Identifier: MIT
/// The engine under both forms of the selective average: visits every element of one global tensor
/// with its sum and its holders' weight, without a count tensor, a mask or an index tensor.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/accumulate.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// One client's part in the average of one tensor.
template <class T>
struct participant {
  std::vector<selected_dimension> dimensions;
  double weight;
  const T* data = nullptr;                          ///< null: the sums have it already
  std::array<std::int64_t, max_rank> strides = {};  ///< of data
};

/// An element that a client's update left out although the client holds it.
struct exclusion {
  std::int64_t offset;  ///< of the element in the row-major global tensor
  std::size_t participant;

  friend auto operator<=>(const exclusion&, const exclusion&) = default;
};

/// Averages one tensor. Participants are visited in the given order at every element, so the bits
/// of the result do not depend on anything else.
///
/// Loops: the global tensor's dimensions are ordered by stride and merged where every participant
/// holds all of the inner one; all but the innermost are rows, the innermost is cut into tiles
/// whose sums and weights stay in the L1 cache.
template <class T>
class tensor_average {
 public:
  /// sums: null, or what the participants without data have added up, row-major.
  tensor_average(tensor_view<T> global, std::vector<participant<T>> participants,
                 const double* sums, std::span<const exclusion> exclusions,
                 const average_options& options, double cohort_weight)
      : global_(global.data_handle()),
        sums_(sums),
        participants_(std::move(participants)),
        exclusions_(exclusions),
        options_(options),
        cohort_weight_(cohort_weight),
        size_(global.size()) {
    for (int r = 0; r < global.rank(); ++r) {
      const std::int64_t sum_stride =
          std::accumulate(global.extents().begin() + r + 1, global.extents().end(), std::int64_t{1},
                          std::multiplies<>{});
      add_level(global.extent(r), global.stride(r), sum_stride, static_cast<std::size_t>(r));
    }
    order_and_merge();
  }

  /// Writes the average into the global tensor and counts in the report.
  void run(average_report& report) {
    if (size_ == 0) return;
    holders_.assign(levels_.size() + 1, {});
    for (std::size_t p = 0; p < participants_.size(); ++p) holders_[0].push_back({p, 0});
    held_ = 0;
    descend(0, 0, 0);
    report.held += held_;
    report.unheld += size_ - held_;
    report.skipped_elements += skipped_;
  }

 private:
  static constexpr std::int64_t tile = 1024;  // doubles: 8 KiB of sums and 8 KiB of weights

  struct level {
    std::int64_t extent;
    std::int64_t global_stride;
    std::int64_t sum_stride;
    /// For each participant: its runs by first node, and its stride.
    std::vector<std::vector<subfed::run>> runs;
    std::vector<std::int64_t> strides;
  };
  struct holder {
    std::size_t participant;
    std::int64_t offset;  // into its data
  };
  struct segment {
    std::int64_t begin, end;
    double weight;
  };

  void add_level(std::int64_t extent, std::int64_t global_stride, std::int64_t sum_stride,
                 std::size_t r) {
    level out{extent, global_stride, sum_stride, {}, {}};
    for (const auto& p : participants_) {
      out.runs.push_back(p.dimensions[r].runs);
      std::sort(out.runs.back().begin(), out.runs.back().end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      out.strides.push_back(p.strides[r]);
    }
    levels_.push_back(std::move(out));
  }

  void order_and_merge() {
    std::stable_sort(levels_.begin(), levels_.end(), [](const level& a, const level& b) {
      return std::abs(a.global_stride) > std::abs(b.global_stride);
    });
    for (std::size_t inner = levels_.size(); inner-- > 1;) {
      if (!can_merge(levels_[inner - 1], levels_[inner])) continue;
      level& a = levels_[inner - 1];
      const level& b = levels_[inner];
      for (auto& runs : a.runs) {
        for (auto& r : runs) {
          r = {r.position * b.extent, r.first * b.extent, r.length * b.extent};
        }
      }
      a.extent *= b.extent;
      a.global_stride = b.global_stride;
      a.sum_stride = b.sum_stride;
      a.strides = b.strides;
      levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(inner));
    }
    if (levels_.empty()) {  // rank 0: one row of one element, held by all
      const std::size_t n = participants_.size();
      levels_.push_back({1, 1, 1, std::vector<std::vector<subfed::run>>(n, {{0, 0, 1}}),
                         std::vector<std::int64_t>(n, 1)});
    }
  }

  bool can_merge(const level& a, const level& b) const {
    if (a.global_stride != b.extent * b.global_stride || a.sum_stride != b.extent * b.sum_stride) {
      return false;
    }
    const std::vector<subfed::run> whole{{0, 0, b.extent}};
    for (std::size_t p = 0; p < participants_.size(); ++p) {
      if (b.runs[p] != whole) return false;
      if (participants_[p].data != nullptr && a.strides[p] != b.extent * b.strides[p]) return false;
    }
    return true;
  }

  /// Goes through the rows; holders_[depth] are the participants that hold all indices so far.
  void descend(std::size_t depth, std::int64_t global_offset, std::int64_t sum_offset) {
    if (depth + 1 == levels_.size()) {
      row(global_offset, sum_offset, holders_[depth]);
      return;
    }
    const level& at = levels_[depth];
    const std::vector<holder>& outer = holders_[depth];
    std::vector<std::size_t> cursor(outer.size(), 0);
    for (std::int64_t i = 0; i < at.extent; ++i) {
      std::vector<holder>& now = holders_[depth + 1];
      now.clear();
      for (std::size_t h = 0; h < outer.size(); ++h) {
        const std::size_t p = outer[h].participant;
        const auto& runs = at.runs[p];
        std::size_t& c = cursor[h];
        while (c < runs.size() && i >= runs[c].first + runs[c].length) ++c;
        if (c == runs.size() || i < runs[c].first) continue;
        const std::int64_t position = runs[c].position + (i - runs[c].first);
        now.push_back({p, outer[h].offset + position * at.strides[p]});
      }
      if (now.empty()) continue;
      descend(depth + 1, global_offset + i * at.global_stride, sum_offset + i * at.sum_stride);
    }
  }

  void row(std::int64_t global_offset, std::int64_t sum_offset,
           const std::vector<holder>& holders) {
    const level& inner = levels_.back();
    const bool by_segments = find_segments(holders);
    for (std::int64_t begin = 0; begin < inner.extent; begin += tile) {
      const std::int64_t end = (std::min)(begin + tile, inner.extent);
      double* const sums = sum_tile_.data();
      double* const weights = weight_tile_.data();
      if (sums_ != nullptr) {
        for (std::int64_t i = begin; i < end; ++i) {
          sums[i - begin] = sums_[sum_offset + i * inner.sum_stride];
        }
      } else {
        std::fill(sums, sums + (end - begin), 0.0);
      }
      if (!by_segments) std::fill(weights, weights + (end - begin), 0.0);

      for (const holder& h : holders) {
        const participant<T>& p = participants_[h.participant];
        for (const subfed::run& r : inner.runs[h.participant]) {
          const std::int64_t from = (std::max)(r.first, begin);
          const std::int64_t to = (std::min)(r.first + r.length, end);
          if (from >= to) continue;
          const std::int64_t stride = inner.strides[h.participant];
          const T* data = p.data == nullptr
                              ? nullptr
                              : p.data + h.offset + (r.position + from - r.first) * stride;
          if (skips_elements()) {
            add_finite(data, stride, p.weight, sums + (from - begin), weights + (from - begin),
                       to - from);
            continue;
          }
          if (data != nullptr) {
            accumulate(data, stride, p.weight, sums + (from - begin), 1, to - from);
          }
          if (!by_segments) {
            for (std::int64_t i = from; i < to; ++i) weights[i - begin] += p.weight;
          }
        }
      }
      if (!exclusions_.empty()) exclude(holders, sum_offset, begin, end);

      if (by_segments) {
        for (const segment& s : segments_) {
          const std::int64_t from = (std::max)(s.begin, begin);
          const std::int64_t to = (std::min)(s.end, end);
          if (from < to && s.weight > 0) {
            write_segment(global_offset + from * inner.global_stride, sums + (from - begin),
                          s.weight, to - from);
          }
        }
      } else {
        write_elements(global_offset + begin * inner.global_stride, end - begin);
      }
    }
  }

  bool skips_elements() const noexcept {
    return options_.on_non_finite == non_finite::skip_element && sums_ == nullptr;
  }

  /// Stretches of the row with the same holders, each with their weight. Kept from row to row while
  /// the holders are the same. False where the runs are so many that adding weights up element by
  /// element costs less.
  bool find_segments(const std::vector<holder>& holders) {
    if (skips_elements() || !exclusions_.empty()) return false;
    const level& inner = levels_.back();
    const auto same = [](const holder& a, std::size_t b) { return a.participant == b; };
    if (std::equal(holders.begin(), holders.end(), segment_holders_.begin(), segment_holders_.end(),
                   same)) {
      return segmented_;
    }
    segment_holders_.clear();
    std::int64_t runs = 0;
    for (const holder& h : holders) {
      segment_holders_.push_back(h.participant);
      runs += static_cast<std::int64_t>(inner.runs[h.participant].size());
    }
    segmented_ = 2 * runs <= inner.extent;
    if (!segmented_) return false;

    borders_.clear();
    for (const holder& h : holders) {
      for (const subfed::run& r : inner.runs[h.participant]) {
        borders_.push_back(r.first);
        borders_.push_back(r.first + r.length);
      }
    }
    std::sort(borders_.begin(), borders_.end());
    borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
    segments_.clear();
    for (std::size_t b = 1; b < borders_.size(); ++b) {
      segments_.push_back({borders_[b - 1], borders_[b], 0});
    }
    for (const holder& h : holders) {
      std::size_t s = 0;
      for (const subfed::run& r : inner.runs[h.participant]) {
        while (s < segments_.size() && segments_[s].begin < r.first) ++s;
        for (; s < segments_.size() && segments_[s].end <= r.first + r.length; ++s) {
          segments_[s].weight += participants_[h.participant].weight;
        }
      }
    }
    return true;
  }

  void add_finite(const T* data, std::int64_t stride, double weight, double* sums, double* weights,
                  std::int64_t length) {
    using traits = scalar_traits<T>;
    for (std::int64_t i = 0; i < length; ++i) {
      const T x = data[i * stride];
      if (!traits::is_finite(x)) {
        ++skipped_;
        continue;
      }
      sums[i] += rounded_product(weight, traits::load(x));
      weights[i] += weight;
    }
  }

  /// Adds the weights up again, without those that were left out, at each element with exclusions.
  void exclude(const std::vector<holder>& holders, std::int64_t sum_offset, std::int64_t begin,
               std::int64_t end) {
    const level& inner = levels_.back();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t offset = sum_offset + i * inner.sum_stride;
      auto left_out =
          std::lower_bound(exclusions_.begin(), exclusions_.end(), exclusion{offset, 0});
      if (left_out == exclusions_.end() || left_out->offset != offset) continue;
      double weight = 0;
      for (const holder& h : holders) {
        if (std::binary_search(exclusions_.begin(), exclusions_.end(),
                               exclusion{offset, h.participant})) {
          continue;
        }
        for (const subfed::run& r : inner.runs[h.participant]) {
          if (i >= r.first && i < r.first + r.length) weight += participants_[h.participant].weight;
        }
      }
      weight_tile_[static_cast<std::size_t>(i - begin)] = weight;
    }
  }

  bool is_plain() const noexcept {
    return options_.divide_by == divisor::holders && options_.content == content::parameters &&
           options_.step == 1;
  }

  /// Elements that all have the same weight.
  void write_segment(std::int64_t offset, const double* sums, double weight, std::int64_t length) {
    using traits = scalar_traits<T>;
    const std::int64_t stride = levels_.back().global_stride;
    T* const out = global_ + offset;
    held_ += length;
    if (!is_plain()) {
      for (std::int64_t i = 0; i < length; ++i) {
        T& element = out[i * stride];
        element = traits::store(combined(sums[i], weight, traits::load(element)));
      }
    } else if (stride == 1) {
      for (std::int64_t i = 0; i < length; ++i) out[i] = traits::store(sums[i] / weight);
    } else {
      for (std::int64_t i = 0; i < length; ++i) out[i * stride] = traits::store(sums[i] / weight);
    }
  }

  /// Elements with a weight each, in the tile; those without weight keep their bits.
  void write_elements(std::int64_t offset, std::int64_t length) {
    using traits = scalar_traits<T>;
    const std::int64_t stride = levels_.back().global_stride;
    const bool plain = is_plain();
    for (std::int64_t i = 0; i < length; ++i) {
      const double sum = sum_tile_[static_cast<std::size_t>(i)];
      const double weight = weight_tile_[static_cast<std::size_t>(i)];
      if (!(weight > 0)) continue;
      ++held_;
      T& element = global_[offset + i * stride];
      element = traits::store(plain ? sum / weight : combined(sum, weight, traits::load(element)));
    }
  }

  /// The new value where options are not the plain selective average.
  double combined(double sum, double weight, double old) const noexcept {
    const bool all = options_.divide_by == divisor::cohort;
    const double total = all ? cohort_weight_ : weight;
    if (options_.content == content::deltas) {
      return old + rounded_product(options_.step, sum / total);
    }
    if (all) sum += rounded_product(total - weight, old);
    const double average = sum / total;
    return options_.step == 1 ? average : old + rounded_product(options_.step, average - old);
  }

  T* global_;
  const double* sums_;
  std::vector<participant<T>> participants_;
  std::span<const exclusion> exclusions_;
  average_options options_;
  double cohort_weight_;
  std::int64_t size_;

  std::vector<level> levels_;
  std::vector<std::vector<holder>> holders_;
  std::array<double, tile> sum_tile_{};
  std::array<double, tile> weight_tile_{};
  std::vector<std::size_t> segment_holders_;
  bool segmented_ = false;
  std::vector<segment> segments_;
  std::vector<std::int64_t> borders_;
  std::int64_t held_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace subfed::inline v0::detail
