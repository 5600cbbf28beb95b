// SPDX-License-Identifier: MIT
/// Many short rows with the same holders, each of whom has few runs of them: run by run.
#pragma once

#include <subfed/average/detail/column_row.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/variants.hpp>
#include <subfed/index_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// As in column_row each holder is read in pieces of some rows, which are added to sums of as many rows
/// that stay in the cache.
template <class T, class From>
class run_row : protected column_row<T, From> {
 protected:
  using base = column_row<T, From>;
  using base::base;
  ~run_row() = default;
  using base::global_;
  using base::held_of_row_;
  using base::inner;
  using base::layout_;
  using base::ones_;
  using base::report_;
  using base::tile_;
  using base::weight_of_;
  using typename base::holder;

  /// Whether runs are faster than masks and columns.
  ///
  /// Pre  pattern_applies to the rows
  bool runs_apply(std::span<const holder> holders) const noexcept {
    constexpr std::size_t fewest_holders = sizeof(T) == 2 ? 640 : 64;
    constexpr std::int64_t shortest = 8;  // elements per run
    if (holders.size() < fewest_holders) return false;
    std::int64_t runs = 0;
    std::int64_t held = 0;
    for (const holder& h : holders) {
      for (const subfed::run& r : inner().runs_of(h.participant)) {
        ++runs;
        held += r.length * inner().unit;
      }
    }
    return runs * shortest <= held;
  }

  /// The rows from global_offset on, stride apart. steps: of the holders' offsets from row to row.
  ///
  /// Pre  runs_apply(holders)
  void runs_mean_of(std::span<const holder> holders, std::span<const std::int64_t> steps,
                    std::int64_t global_offset, std::int64_t stride, std::int64_t rows) {
    find_runs(holders);
    const std::int64_t size = inner().extent * inner().unit;
    constexpr std::int64_t tile_size = 32768;  // doubles: 256 KiB
    constexpr std::int64_t vector = 8;
    const std::int64_t tile_rows = (std::max)(std::int64_t{1}, tile_size / size);
    tile_.resize(static_cast<std::size_t>(tile_rows * size + vector));
    runs_mean(run_pattern{runs_.data(), begins_.data(), reaches_.data(), weight_of_.data(), size,
                          tile_.data(), tile_rows, ones_},
              this->holders_of(holders, steps),
              pattern_rows<T>{global_ + global_offset, stride, rows});
    report_.held += rows * held_of_row_;
  }

 private:
  void find_runs(std::span<const holder> holders) {
    const std::int64_t unit = inner().unit;
    this->find_weights(holders);
    runs_.clear();
    reaches_.clear();
    begins_.assign(1, 0);
    for (const holder& h : holders) {
      for (const subfed::run& r : inner().runs_of(h.participant)) {
        runs_.push_back({r.position * unit, r.first * unit, r.length * unit});
      }
      begins_.push_back(runs_.size());
      reaches_.push_back(this->row_size(h.participant));
    }
  }

  std::vector<subfed::run> runs_;  // of the holders, in elements
  std::vector<std::size_t> begins_;
  std::vector<std::int64_t> reaches_;
};

}  // namespace subfed::inline v0::detail
