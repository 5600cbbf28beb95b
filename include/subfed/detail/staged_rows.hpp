// SPDX-License-Identifier: MIT
/// Slices of rows of short runs, which follow each other in the result: past the cache, as long runs are.
#pragma once

#include <subfed/detail/copy_rows.hpp>
#include <subfed/detail/copy_run.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/index_set.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace subfed::inline v0::detail {

/// Collects bytes for addresses that follow each other, and writes them past the cache, in whole cache
/// lines where they fill any.
class staged_writes {
 public:
  static constexpr std::size_t line = 64;
  /// The most bytes of one call of place().
  static constexpr std::size_t most = (std::size_t{16} << 10) - line;
  /// So much is written at once: processors read on meanwhile.
  static constexpr std::size_t batch = 1024;

  staged_writes() = default;
  staged_writes(const staged_writes&) = delete;
  staged_writes& operator=(const staged_writes&) = delete;
  ~staged_writes() {
    write_all();
    end_of_copies(placement::memory);
  }

  /// Where to put what belongs to the addresses from `to` on.
  ///
  /// Pre  bytes <= most
  std::byte* place(std::byte* to, std::size_t bytes) noexcept {
    if (to != start_ + filled_) {
      write_all();
      begin_ = filled_ = reinterpret_cast<std::uintptr_t>(to) % line;
      start_ = to - begin_;
    }
    if (filled_ >= batch || filled_ + bytes > sizeof(stage_)) write_lines();
    std::byte* const out = stage_ + filled_;
    filled_ += bytes;
    return out;
  }

 private:
  void write_all() noexcept {
    if (filled_ > begin_) copy_past_cache(stage_ + begin_, start_ + begin_, filled_ - begin_);
  }
  /// What does not fill a line stays.
  void write_lines() noexcept {
    const std::size_t whole = filled_ / line * line;
    if (whole > begin_) {
      copy_past_cache(stage_ + begin_, start_ + begin_, whole - begin_);
      begin_ = 0;
    }
    std::memmove(stage_, stage_ + whole, filled_ - whole);
    start_ += whole;
    filled_ -= whole;
  }

  alignas(line) std::byte stage_[most + line];
  std::byte* start_ = nullptr;          // where the first byte of the stage belongs
  std::size_t begin_ = 0, filled_ = 0;  // of the stage
};

/// Copies the steps begin .. end-1 of a walk from the global tensor to the local one. False: rows are long,
/// or have long runs, or stay in the cache, and nothing was done.
template <class E>
bool copy_staged_rows(const loop_nest& walk, std::int64_t begin, std::int64_t end, const E* global,
                      E* local, placement where) {
  if (!bypasses_cache || where != placement::memory || !walk.has_rows() ||
      walk.global_stride() != 1 || walk.local_stride() != 1) {
    return false;
  }
  constexpr std::size_t long_run = 1024;  // bytes, on average
  const std::span<const run> runs = walk.row_runs();
  const auto bytes = static_cast<std::size_t>(walk.elements_a_row()) * sizeof(E);
  if (bytes == 0 || bytes > staged_writes::most || bytes >= long_run * runs.size()) return false;
  staged_writes writes;
  // Every row begins new streams, where the processor's own prefetching starts over.
  const auto row = static_cast<std::size_t>(walk.row_extent()) * sizeof(E);
  constexpr std::size_t ahead = 1024;
  const auto prefetch = [&](const E* from) {
    for (std::size_t at = 0; at < row; at += staged_writes::line) {
      SUBFED_PREFETCH(reinterpret_cast<std::uintptr_t>(from) + ahead + at);
    }
  };
  const auto copy_units = [&](const row_units& units, std::int64_t g, std::int64_t l) {
    prefetch(global + g);
    units.copy_out(bytes_at(global + g), writes.place(bytes_at(local + l), bytes));
  };
  if (for_each_row_of_units(walk, begin, end, sizeof(E), copy_units)) return true;
  walk.for_each_row(begin, end, [&](std::int64_t g, std::int64_t l) {
    prefetch(global + g);
    std::byte* const to = writes.place(bytes_at(local + l), bytes);
    for (const run& r : runs) {
      std::memcpy(to + static_cast<std::size_t>(r.position) * sizeof(E), global + g + r.first,
                  static_cast<std::size_t>(r.length) * sizeof(E));
    }
  });
  return true;
}

}  // namespace subfed::inline v0::detail
