// SPDX-License-Identifier: MIT
/// The memory ceiling: what memcpy needs to move as many bytes as a case must move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

}  // namespace bench
