// SPDX-License-Identifier: MIT
/// The memory ceiling: what memcpy needs to move as many bytes as a case must move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace bench {

/// Moves `read` bytes in and `written` bytes out at the speed of memcpy, on `threads` threads: copies
/// of half the sum, from one buffer to another that do not fit into the cache together.
class ceiling {
 public:
  explicit ceiling(std::int64_t bytes_moved, int threads)
      : each_((bytes_moved / 2 + threads - 1) / threads), threads_(threads) {
    buffer_ = std::clamp<std::int64_t>(each_, 1, (std::int64_t{256} << 20) / threads);
    from_.assign(static_cast<std::size_t>(buffer_ * threads), std::byte{1});
    to_.assign(static_cast<std::size_t>(buffer_ * threads), std::byte{2});
  }

  void operator()() {
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
#endif
    for (int t = 0; t < threads_; ++t) {
      const std::byte* const from = from_.data() + t * buffer_;
      std::byte* const to = to_.data() + t * buffer_;
      for (std::int64_t left = each_; left > 0; left -= buffer_) {
        std::memcpy(to, from, static_cast<std::size_t>((std::min)(left, buffer_)));
      }
    }
  }

 private:
  std::int64_t each_, buffer_ = 0;
  int threads_;
  std::vector<std::byte> from_, to_;
};

/// Reads 1 GiB on `threads` threads and writes nothing: what averages of many clients come down to.
class reading {
 public:
  explicit reading(int threads)
      : threads_(threads), from_(static_cast<std::size_t>(bytes / 8), std::uint64_t{1}) {}

  static constexpr std::int64_t bytes = std::int64_t{1} << 30;

  std::uint64_t operator()() const {
    std::uint64_t out = 0;
    const std::size_t each = from_.size() / static_cast<std::size_t>(threads_);
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads_) schedule(static, 1) reduction(+ : out)
#endif
    for (int t = 0; t < threads_; ++t) {
      const auto first = from_.begin() + static_cast<std::ptrdiff_t>(each) * t;
      out += std::accumulate(first, first + static_cast<std::ptrdiff_t>(each), std::uint64_t{0});
    }
    return out;
  }

 private:
  int threads_;
  std::vector<std::uint64_t> from_;
};

}  // namespace bench
