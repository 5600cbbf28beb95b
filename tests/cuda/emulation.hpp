// SPDX-License-Identifier: MIT
/// Launches of the CUDA kernels without a GPU: every (block, thread) calls the function that the
/// kernel calls, one after the other, forwards or backwards.
#pragma once

#include <subfed/cuda/detail/average_plan.hpp>
#include <subfed/cuda/detail/copy_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace emulation {

namespace kernels = subfed::cuda::detail;

enum class order { forwards, backwards };

/// The packed arrays in memory of its own, as aligned as on a device.
class uploaded {
 public:
  explicit uploaded(const kernels::packed_arrays& from) : blocks_(from.size() / sizeof(block)) {
    if (from.size() != 0) std::memcpy(static_cast<void*>(blocks_.data()), from.data(), from.size());
  }
  const std::byte* data() const {
    return static_cast<const std::byte*>(static_cast<const void*>(blocks_.data()));
  }

 private:
  struct alignas(kernels::packed_arrays::alignment) block {
    std::byte bytes[kernels::packed_arrays::alignment];
  };
  std::vector<block> blocks_;
};

template <class F>
void every_thread(std::int64_t blocks, order by, F&& f) {
  const std::int64_t threads = blocks * kernels::threads_a_block;
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t n = by == order::forwards ? i : threads - 1 - i;
    f(n / kernels::threads_a_block, static_cast<int>(n % kernels::threads_a_block));
  }
}

template <class From, class To, class Operation>
void launch(kernels::copy_call call, const kernels::packed_arrays& bytes, Operation operation,
            order by) {
  const uploaded arrays(bytes);
  call.packed = arrays.data();
  every_thread(call.blocks, by, [&](std::int64_t block, int thread) {
    kernels::copy_thread<From, To>(call, block, thread, operation);
  });
}

template <class E>
kernels::average_counts launch(kernels::average_call call, const kernels::packed_arrays& bytes,
                               order by) {
  const uploaded arrays(bytes);
  call.packed = arrays.data();
  kernels::average_counts out;
  every_thread(call.blocks, by, [&](std::int64_t block, int thread) {
    const kernels::average_counts own = kernels::average_thread<E>(call, block, thread);
    out.held += own.held;
    out.skipped += own.skipped;
  });
  return out;
}

/// Jobs of a plan that use wide packs.
template <class Job>
std::int64_t wide_jobs(const kernels::packed_arrays& bytes, std::int64_t jobs, std::int64_t count) {
  const uploaded arrays(bytes);
  std::int64_t out = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    out += kernels::array_at<Job>(arrays.data(), jobs)[j].width != 1;
  }
  return out;
}

}  // namespace emulation
