// SPDX-License-Identifier: MIT
/// Copies of rows of which many short runs are selected, as by random sets.
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/compress_row.hpp>
#include <subfed/detail/element_masks.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/index_set.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Copies of `bytes`, the same for all calls, by two moves that overlap: nothing else is read or
/// written.
template <std::size_t Move>
struct two_moves {
  std::size_t bytes;  // Move .. 2 Move

  void operator()(const std::byte* from, std::byte* to) const noexcept {
    std::byte head[Move], tail[Move];
    std::memcpy(head, from, Move);
    std::memcpy(tail, from + (bytes - Move), Move);
    std::memcpy(to, head, Move);
    std::memcpy(to + (bytes - Move), tail, Move);
  }
};
template <std::size_t Bytes>
struct one_move {
  void operator()(const std::byte* from, std::byte* to) const noexcept {
    std::memcpy(to, from, Bytes);
  }
};

/// The runs of a row as units of one length, of at most 64 bytes: the kernel of a convolution, or single
/// elements. Rows of the global tensor are contiguous, and those of the local one.
class row_units {
 public:
  /// Does not apply.
  row_units() = default;
  /// rows: how many will be copied. element_size: in bytes.
  row_units(std::span<const run> runs, std::int64_t extent, std::int64_t rows,
            std::size_t element_size) {
    constexpr std::int64_t fewest_rows = 4;  // fewer do not pay for the lists
    constexpr std::size_t longest = 64;
    if (runs.size() <= 2 || rows < fewest_rows ||
        extent > (std::numeric_limits<std::int32_t>::max)()) {
      return;
    }
    std::int64_t unit = 0, selected = 0;
    for (const run& r : runs) {
      if (r.position != selected) return;  // not one after the other
      unit = std::gcd(unit, r.length);
      selected += r.length;
    }
    // Longer runs are copied as they are.
    if (selected / static_cast<std::int64_t>(runs.size()) *
                static_cast<std::int64_t>(element_size) >
            256 ||
        static_cast<std::size_t>(unit) * element_size > longest) {
      return;
    }
    element_size_ = element_size;
    bytes_ = static_cast<std::size_t>(unit) * element_size;
    size_ = extent;
    selected_ = selected;
    constexpr std::int64_t sparsest = 4;  // below 1 element in 4 a list is faster than masks
    if (unit == 1 && is_ascending(runs) && can_compress(element_size) &&
        selected * sparsest >= extent) {
      set_masks(runs);
    }
    for (const run& r : runs) {
      for (std::int64_t i = 0; i < r.length; i += unit) {
        firsts_.push_back(static_cast<std::int32_t>(r.first + i));
      }
    }
  }

  /// Whether rows are to be copied by this.
  bool apply() const noexcept { return bytes_ != 0; }

  /// Copies the selected elements of a row of the global tensor to a local row.
  void copy_out(const std::byte* global, std::byte* local) const noexcept {
    if (!masks_.empty()) {
      const row_masks row{masks_, size_, selected_};
      return element_size_ == 4 ? compress_row<4>(global, row, local)
                                : compress_row<2>(global, row, local);
    }
    with_move([&](auto move) {
      for (const std::int32_t first : firsts_) {
        move(global + static_cast<std::size_t>(first) * element_size_, local);
        local += bytes_;
      }
    });
  }
  /// The same from the local row to the global one.
  void copy_in(const std::byte* local, std::byte* global) const noexcept {
    with_move([&](auto move) {
      for (const std::int32_t first : firsts_) {
        move(local, global + static_cast<std::size_t>(first) * element_size_);
        local += bytes_;
      }
    });
  }

 private:
  static bool is_ascending(std::span<const run> runs) noexcept {
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (runs[i].first < runs[i - 1].first) return false;
    }
    return true;
  }

  void set_masks(std::span<const run> runs) {
    masks_.assign(static_cast<std::size_t>((size_ + 15) / 16), 0);
    for (const run& r : runs) set_bits(masks_, r.first, r.first + r.length);
  }

  /// Calls f(what moves a unit).
  template <class F>
  void with_move(F&& f) const {
    switch (bytes_) {
      case 1:
        return f(one_move<1>{});
      case 2:
        return f(one_move<2>{});
      case 4:
        return f(one_move<4>{});
      case 8:
        return f(one_move<8>{});
      case 16:
        return f(one_move<16>{});
      default:
        break;
    }
    if (bytes_ > 32) return f(two_moves<32>{bytes_});
    if (bytes_ > 16) return f(two_moves<16>{bytes_});
    if (bytes_ > 8) return f(two_moves<8>{bytes_});
    if (bytes_ > 4) return f(two_moves<4>{bytes_});
    f(two_moves<2>{bytes_});
  }

  std::size_t element_size_ = 0;
  std::size_t bytes_ = 0;  // of a unit; 0: they do not apply
  std::int64_t size_ = 0, selected_ = 0;
  std::vector<std::int32_t> firsts_;  // of each unit
  std::vector<std::uint16_t> masks_;  // of single elements, where vectors are faster
};

inline const std::byte* bytes_at(const void* elements) noexcept {
  return static_cast<const std::byte*>(elements);
}
inline std::byte* bytes_at(void* elements) noexcept { return static_cast<std::byte*>(elements); }

/// Calls copy(units, offset of a row in the global tensor, in the local one) for the rows of the steps
/// begin .. end-1 of a walk whose innermost runs are short. False: they are not, and nothing was done.
template <class F>
bool for_each_row_of_units(const loop_nest& walk, std::int64_t begin, std::int64_t end,
                           std::size_t element_size, F&& copy) {
  if (!walk.has_rows() || walk.global_stride() != 1 || walk.local_stride() != 1) return false;
  const std::int64_t size = walk.elements_a_row();
  if (size == 0) return false;
  const row_units units(walk.row_runs(), walk.row_extent(),
                        (end - begin) * (walk.elements_a_step() / size), element_size);
  if (!units.apply()) return false;
  walk.for_each_row(begin, end,
                    [&](std::int64_t global, std::int64_t local) { copy(units, global, local); });
  return true;
}

}  // namespace subfed::inline v0::detail
