// SPDX-License-Identifier: MIT
/// Many short rows with the same holders: who has which elements is worked out once for all of them.
#pragma once

#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/mask_row.hpp>
#include <subfed/average/detail/variants.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// For an embedding, say, of which a cohort holds the same columns in all rows.
template <class T, class From>
class pattern_row : protected mask_row<T, From> {
 protected:
  using base = mask_row<T, From>;
  using base::base;
  ~pattern_row() = default;
  using base::checked_;
  using base::global_;
  using base::how_;
  using base::inner;
  using base::lanes_;
  using base::layout_;
  using base::makes_terms;
  using base::ones_;
  using base::report_;
  using base::skips_elements;
  using base::terms_;
  using typename base::holder;

  /// Whether a pattern pays for so many rows with the same holders.
  bool pattern_applies(std::int64_t rows) const noexcept {
    constexpr std::int64_t fewest_rows = 4;
    return rows >= fewest_rows && lanes_ && layout_.has_short_parts() && !terms_.wide &&
           !checked_ && !skips_elements() && !makes_terms() && !terms_.has_sums();
  }

  /// The rows from global_offset on, stride apart. steps: of the holders' offsets from row to row.
  ///
  /// Pre  pattern_applies(rows)
  void pattern_mean_of(std::span<const holder> holders, std::span<const std::int64_t> steps,
                       std::int64_t global_offset, std::int64_t stride, std::int64_t rows) {
    find_pattern(holders);
    const masked_pattern pattern{
        parts_.data(),         block_parts_.data(), held_.data(), weight_of_.data(),
        reciprocal_of_.data(), held_.size(),        ones_,        how_};
    pattern_mean(pattern, holders_of(holders, steps),
                 pattern_rows<T>{global_ + global_offset, stride, rows});
    report_.held += rows * held_of_row_;
  }

  /// The weight of each element's holders, 0 where there is none, and how many elements have some.
  void find_weights(std::span<const holder> holders) {
    const std::int64_t unit = inner().unit;
    weight_of_.assign(static_cast<std::size_t>(inner().extent * unit), 0);
    for (const holder& h : holders) {
      const double weight = layout_.participants()[h.participant].weight;
      for (const subfed::run& r : inner().runs_of(h.participant)) {
        double* const weights = weight_of_.data() + r.first * unit;
        for (std::int64_t i = 0; i < r.length * unit; ++i) weights[i] += weight;
      }
    }
    held_of_row_ = std::count_if(weight_of_.begin(), weight_of_.end(),
                                 [](double weight) { return weight > 0; });
  }

  /// As the kernels take them.
  pattern_holders<T> holders_of(std::span<const holder> holders,
                                std::span<const std::int64_t> steps) {
    data_.clear();
    ends_.clear();
    end_strides_.clear();
    holder_weights_.clear();
    for (std::size_t h = 0; h < holders.size(); ++h) {
      const std::size_t p = holders[h].participant;
      const auto& own = layout_.participants()[p];
      data_.push_back(own.data + holders[h].offset);
      const std::int64_t dense_size = layout_.dense_size(p);
      ends_.push_back(dense_size != 0 ? own.data + dense_size : data_.back() + row_size(p));
      end_strides_.push_back(dense_size != 0 ? 0 : steps[h]);
      holder_weights_.push_back(own.weight);
    }
    return {holders.size(), data_.data(),        steps.data(),
            ends_.data(),   end_strides_.data(), holder_weights_.data()};
  }

  /// How many elements of a row a participant has, those that do not take part included as far as they
  /// do not come after all others.
  std::int64_t row_size(std::size_t participant) const noexcept {
    return inner().reach_of(participant) * inner().unit;
  }

  std::vector<double> weight_of_;
  std::int64_t held_of_row_ = 0;

 private:
  struct block_part {
    std::size_t block;
    masked_part part;
  };

  void find_pattern(std::span<const holder> holders) {
    const auto blocks = static_cast<std::size_t>((inner().extent * inner().unit + 15) / 16);
    found_.clear();
    find_weights(holders);
    weight_of_.resize(16 * blocks, 0);
    for (std::size_t h = 0; h < holders.size(); ++h) {
      for (const subfed::run& r : inner().runs_of(holders[h].participant)) {
        add_parts(h, r.first * inner().unit, r.length * inner().unit, r.position * inner().unit);
      }
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const block_part& a, const block_part& b) { return a.block < b.block; });
    parts_.clear();
    block_parts_.assign(blocks, 0);
    held_.assign(blocks, 0);
    for (const block_part& each : found_) {
      parts_.push_back(each.part);
      ++block_parts_[each.block];
      std::uint16_t& held = held_[each.block];
      held = static_cast<std::uint16_t>(held | each.part.mask);
    }
    reciprocal_of_.clear();
    for (double& weight : weight_of_) {
      if (!(weight > 0)) weight = 1;
      reciprocal_of_.push_back(1 / weight);
    }
  }

  /// A holder's elements first .. first+length-1 of a row, block by block; at `start` of its data.
  void add_parts(std::size_t holder_number, std::int64_t first, std::int64_t length,
                 std::int64_t start) {
    while (length > 0) {
      const auto block = static_cast<std::size_t>(first / 16);
      const std::int64_t here = (std::min)(length, 16 - first % 16);
      const auto mask = static_cast<std::uint16_t>(((1u << here) - 1) << (first % 16));
      const auto number = static_cast<std::int32_t>(holder_number);
      if (!found_.empty() && found_.back().block == block && found_.back().part.holder == number &&
          found_.back().part.start + std::popcount(found_.back().part.mask) == start) {
        masked_part& last = found_.back().part;
        last.mask = static_cast<std::uint16_t>(last.mask | mask);
      } else {
        found_.push_back({block, {number, static_cast<std::int32_t>(start), mask}});
      }
      first += here;
      start += here;
      length -= here;
    }
  }

  std::vector<block_part> found_;
  std::vector<masked_part> parts_;
  std::vector<std::int32_t> block_parts_;
  std::vector<std::uint16_t> held_;
  std::vector<double> reciprocal_of_;
  // Of each holder:
  std::vector<const T*> data_;
  std::vector<const T*> ends_;
  std::vector<std::int64_t> end_strides_;
  std::vector<double> holder_weights_;
};

}  // namespace subfed::inline v0::detail
