// SPDX-License-Identifier: MIT
/// Rows of which an update has many short runs, as dense rows: whole rows are added to sums faster than
/// run after run.
#pragma once

#include <subfed/average/detail/stream.hpp>
#include <subfed/average/detail/variants.hpp>
#include <subfed/detail/copy_rows.hpp>
#include <subfed/detail/element_masks.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/index_set.hpp>
#include <subfed/scalar.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// How an update's elements of a row are spread: by masks in vectors, or unit by unit.
class row_spread {
 public:
  /// Does not apply.
  row_spread() = default;

  /// For the rows of a walk, of elements of type E. Applies where it pays.
  template <class E>
  static row_spread of(const loop_nest& walk) {
    constexpr std::int64_t sparsest = 64;  // elements of the dense row per run
    row_spread out;
    if (!walk.has_rows() || walk.global_stride() != 1 || walk.local_stride() != 1) return out;
    const std::span<const run> runs = walk.row_runs();
    const std::int64_t extent = walk.row_extent();
    if (runs.size() <= 2 || extent > sparsest * static_cast<std::int64_t>(runs.size())) return out;
    out.extent_ = extent;
    if constexpr (in_vectors<E>) {
      if (in_lanes<E>()) out.masks_ = masks_of(runs, extent, 1);
    }
    constexpr bool is_wide = sizeof(E) >= 4;  // converting narrow gaps one by one costs what is won
    if (is_wide && out.masks_.empty()) {
      const std::int64_t rows = walk.outer_steps() * walk.elements_a_step() / walk.elements_a_row();
      out.units_ = row_units(runs, extent, rows, sizeof(E));
    }
    return out;
  }

  bool applies() const noexcept { return !masks_.empty() || units_.apply(); }

 private:
  template <class E>
  static constexpr bool in_vectors = has_lanes<E> && sizeof(E) <= 4;
  template <class E>
  friend class dense_row;

  std::int64_t extent_ = 0;
  element_masks masks_;
  row_units units_;
};

/// One row at a time, -0 where nothing is held: it changes no sum.
template <class E>
class dense_row {
 public:
  /// Pre  by.applies(), was made for E and lives as long
  explicit dense_row(const row_spread& by) : by_(by) {
    const auto size = static_cast<std::size_t>(by.extent_);
    if (by.masks_.empty()) {
      elements_.resize(size, scalar_traits<E>::store(-0.0));
    } else {
      floats_.resize((size + 15) / 16 * 16);
    }
  }

  /// Calls f(elements of the dense row, how many). from: the update's elements of the row; what may be read
  /// ends at `end`.
  template <class F>
  void operator()(const E* from, const E* end, F&& f) {
    if constexpr (row_spread::in_vectors<E>) {
      if (!by_.masks_.empty()) {
        const masked_holder<E> own{
            from, by_.masks_.masks.data(), by_.masks_.starts.data(), end - from, 1, false};
        spread_masked(own, by_.extent_, floats_.data());
        f(static_cast<const float*>(floats_.data()), by_.extent_);
        return;
      }
    }
    by_.units_.copy_in(bytes_at(from), bytes_at(elements_.data()));
    f(static_cast<const E*>(elements_.data()), by_.extent_);
  }

 private:
  const row_spread& by_;
  std::vector<E> elements_;
  std::vector<float> floats_;
};

}  // namespace subfed::inline v0::detail
