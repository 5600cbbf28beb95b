// SPDX-License-Identifier: MIT
/// What one thread of a slice, a scatter or a streaming add does. Host and device run the same
/// function, so that tests without a GPU go through every thread.
#pragma once

#include <subfed/config.hpp>
#include <subfed/cuda/detail/device_math.hpp>
#include <subfed/cuda/detail/fixed_divisor.hpp>
#include <subfed/cuda/detail/packed_arrays.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace subfed::inline v0::cuda::detail {

inline constexpr int threads_a_block = 256;
/// Blocks that fit on an SM: at most 64 registers per thread, to hide the memory's latency.
inline constexpr int blocks_at_once = 4;

/// Contiguous elements that are read and written at once.
template <class E, int Width>
struct alignas(Width * sizeof(E) < 16 ? Width * sizeof(E) : 16) pack {
  E values[std::size_t{Width}];
};

/// Elements of the widest pack: 16 bytes of what is read.
template <class E>
inline constexpr int widest = static_cast<int>(16 / sizeof(E));

/// The pack at an address. Pre: it is a multiple of the pack's alignment; a device faults otherwise,
/// and so does this function on the host, where tests run it.
template <class Pack, class Address>
SUBFED_HD Pack& pack_at(Address* at) noexcept {
#if !defined(__CUDA_ARCH__)
  SUBFED_ASSERT(reinterpret_cast<std::uintptr_t>(at) % alignof(Pack) == 0);
#endif
  using bytes = std::conditional_t<std::is_const_v<Address>, const void, void>;
  return *static_cast<Pack*>(static_cast<bytes*>(at));
}

/// A dimension of a copy, or several merged ones. Index i is element i % unit of node i / unit; the
/// tables give a node's position.
struct copy_axis {
  fixed_divisor extent;  ///< of the last axis in packs
  fixed_divisor unit;
  std::int64_t from_stride, to_stride;
  std::int64_t from_table, to_table;  ///< of std::int32_t; no_array: the node itself
};

/// All elements of one client's tensor.
struct copy_job {
  const void* from;
  void* to;
  double weight;
  std::int64_t packs;
  std::int64_t first_block;
  std::int64_t axes;  ///< of copy_axis
  std::int32_t rank;
  std::int32_t width;  ///< elements per pack: 1 or widest
};

/// A launch: `blocks` blocks of threads_a_block threads.
struct copy_call {
  static constexpr int packs_a_thread = 8;
  static constexpr std::int64_t packs_a_block = packs_a_thread * threads_a_block;

  const std::byte* packed = nullptr;
  std::int64_t jobs = no_array;          ///< of copy_job
  std::int64_t job_of_block = no_array;  ///< of std::int32_t
  std::int64_t blocks = 0;
};

struct assign {
  template <class E, int Width>
  SUBFED_HD void operator()(const pack<E, Width>& from, pack<E, Width>& to, double) const noexcept {
    to = from;
  }
};
struct add {
  template <class E, int Width>
  SUBFED_HD void operator()(const pack<E, Width>& from, pack<E, Width>& to, double) const noexcept {
    pack<E, Width> held = to;
    for (int k = 0; k < Width; ++k) {
      held.values[k] = element_sum(held.values[k], from.values[k]);
    }
    to = held;
  }
};
/// to += weight * from, in double.
struct accumulate {
  template <class E, int Width>
  SUBFED_HD void operator()(const pack<E, Width>& from, pack<double, Width>& to,
                            double weight) const noexcept {
    pack<double, Width> held = to;
    for (int k = 0; k < Width; ++k) {
      held.values[k] = sum(held.values[k], product(weight, load(from.values[k])));
    }
    to = held;
  }
};

struct copy_place {
  std::int64_t from, to;
};

/// Where pack n of a job is.
SUBFED_HD inline copy_place place_of(const std::byte* packed, const copy_job& job, std::int64_t n) {
  const copy_axis* const axes = array_at<copy_axis>(packed, job.axes);
  copy_place at{0, 0};
  for (int r = job.rank - 1; r >= 0; --r) {
    const copy_axis& axis = axes[r];
    const quotient_and_rest outer = divide(n, axis.extent);
    n = outer.quotient;
    const std::int64_t index = r == job.rank - 1 ? outer.rest * job.width : outer.rest;
    const quotient_and_rest node = divide(index, axis.unit);
    const std::int64_t from = axis.from_table < 0
                                  ? node.quotient
                                  : array_at<std::int32_t>(packed, axis.from_table)[node.quotient];
    const std::int64_t to = axis.to_table < 0
                                ? node.quotient
                                : array_at<std::int32_t>(packed, axis.to_table)[node.quotient];
    at.from += (from * axis.unit.value + node.rest) * axis.from_stride;
    at.to += (to * axis.unit.value + node.rest) * axis.to_stride;
  }
  return at;
}

/// Packs first, first + threads_a_block, .. of a job.
template <int Width, class From, class To, class Operation>
SUBFED_HD void copy_packs(const std::byte* packed, const copy_job& job, std::int64_t first,
                          Operation operation) {
  constexpr int at_once = 4;  // so many reads are in flight before the first write
  const auto* const from = static_cast<const From*>(job.from);
  auto* const to = static_cast<To*>(job.to);
  for (int done = 0; done < copy_call::packs_a_thread; done += at_once) {
    pack<From, Width> held[at_once];
    std::int64_t target[at_once];
    bool there[at_once];
    for (int k = 0; k < at_once; ++k) {
      const std::int64_t n = first + static_cast<std::int64_t>(done + k) * threads_a_block;
      there[k] = n < job.packs;
      if (!there[k]) continue;
      const copy_place at = place_of(packed, job, n);
      held[k] = pack_at<const pack<From, Width>>(from + at.from);
      target[k] = at.to;
    }
    for (int k = 0; k < at_once; ++k) {
      if (!there[k]) continue;
      operation(held[k], pack_at<pack<To, Width>>(to + target[k]), job.weight);
    }
  }
}

/// The work of one thread. No element is touched by two threads of a launch.
template <class From, class To, class Operation>
SUBFED_HD void copy_thread(const copy_call& call, std::int64_t block, int thread,
                           Operation operation) {
  const std::int32_t number = array_at<std::int32_t>(call.packed, call.job_of_block)[block];
  const copy_job& job = array_at<copy_job>(call.packed, call.jobs)[number];
  const std::int64_t first = (block - job.first_block) * copy_call::packs_a_block + thread;
  if (job.width == 1) {
    copy_packs<1, From, To>(call.packed, job, first, operation);
  } else {
    copy_packs<widest<From>, From, To>(call.packed, job, first, operation);
  }
}

}  // namespace subfed::inline v0::cuda::detail
