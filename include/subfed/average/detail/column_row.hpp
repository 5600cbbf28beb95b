// SPDX-License-Identifier: MIT
/// Many short rows with the same holders, who are many: element by element, eight rows at a time.
#pragma once

#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/pattern_row.hpp>
#include <subfed/average/detail/variants.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// The rows of many holders do not fit in the caches. So each of them is read in longer pieces: some
/// rows, which are added to sums of as many rows. How few elements a holder has of a row does not matter
/// then.
template <class T, class From>
class column_row : protected pattern_row<T, From> {
 protected:
  using base = pattern_row<T, From>;
  using base::base;
  ~column_row() = default;
  using base::global_;
  using base::held_of_row_;
  using base::how_;
  using base::inner;
  using base::layout_;
  using base::ones_;
  using base::report_;
  using base::weight_of_;
  using typename base::holder;

  /// Whether columns are faster than masks.
  ///
  /// Pre  pattern_applies(rows)
  bool columns_apply(std::size_t holders, std::int64_t rows) const noexcept {
    constexpr std::size_t fewest_holders = sizeof(T) == 2 ? 640 : 160;
    return holders >= fewest_holders && rows >= 8 && layout_.has_all_positions();
  }

  /// The rows from global_offset on, stride apart. steps: of the holders' offsets from row to row.
  ///
  /// Pre  columns_apply(holders.size(), rows)
  void columns_mean_of(std::span<const holder> holders, std::span<const std::int64_t> steps,
                       std::int64_t global_offset, std::int64_t stride, std::int64_t rows) {
    find_columns(holders);
    const std::int64_t size = inner().extent * inner().unit;
    constexpr std::int64_t tile_size = 8192;  // doubles
    const std::int64_t tile_rows = (std::max)(std::int64_t{8}, tile_size / size / 8 * 8);
    tile_.resize(static_cast<std::size_t>(tile_rows * size));
    columns_mean(column_pattern{columns_.data(), begins_.data(), weight_of_.data(), size,
                                tile_.data(), tile_rows, ones_, how_},
                 this->holders_of(holders, steps),
                 pattern_rows<T>{global_ + global_offset, stride, rows});
    report_.held += rows * held_of_row_;
  }

  std::vector<double> tile_;  // sums of some rows

 private:
  void find_columns(std::span<const holder> holders) {
    const std::int64_t unit = inner().unit;
    this->find_weights(holders);
    columns_.clear();
    begins_.assign(1, 0);
    for (const holder& h : holders) {
      columns_.resize(begins_.back() + static_cast<std::size_t>(this->row_size(h.participant)));
      for (const subfed::run& r : inner().runs_of(h.participant)) {
        std::size_t at = begins_.back() + static_cast<std::size_t>(r.position * unit);
        for (std::int64_t i = r.first * unit; i < (r.first + r.length) * unit; ++i) {
          columns_[at++] = static_cast<std::uint16_t>(i);
        }
      }
      begins_.push_back(columns_.size());
    }
  }

  std::vector<std::uint16_t> columns_;  // of the holders
  std::vector<std::size_t> begins_;
};

}  // namespace subfed::inline v0::detail
