// SPDX-License-Identifier: MIT
/// What one thread of a selective average does: each element of a global tensor belongs to one
/// thread, which visits the clients in their order. Host and device run the same function.
#pragma once

#include <subfed/config.hpp>
#include <subfed/cuda/detail/copy_kernel.hpp>
#include <subfed/cuda/detail/device_math.hpp>
#include <subfed/cuda/detail/fixed_divisor.hpp>
#include <subfed/cuda/detail/packed_arrays.hpp>

#include <cstddef>
#include <cstdint>

namespace subfed::inline v0::cuda::detail {

/// A dimension of the global tensor, or several merged ones; its nodes have `unit` elements each.
struct average_axis {
  fixed_divisor extent;  ///< of the last axis in packs
  fixed_divisor unit;
  std::int64_t global_stride, sum_stride;
};

/// The same dimension in a client's tensor: node n is at n + shift where
/// first <= n < first + count, or at table[n] where that is not negative.
struct client_axis {
  std::int64_t first, count, shift;
  std::int64_t table;
  std::int64_t stride;
};

struct average_member {
  const void* data;  ///< null: it is already in the sums
  double weight;
  std::int64_t axes;  ///< of client_axis
};

/// All elements of one global tensor.
struct average_job {
  void* global;
  const double* sums;  ///< row-major; null: from -0
  std::int64_t packs;
  std::int64_t first_block;
  std::int64_t axes;     ///< of average_axis
  std::int64_t members;  ///< of average_member, all with positive weights
  std::int64_t member_count;
  std::int32_t rank;
  std::int32_t width;  ///< 1, or widest: then a client holds all of a pack or none of it
};

/// The options of an average as numbers. See average_options.
struct average_rule {
  bool plain;  ///< the sum divided by the holders' weight
  bool by_cohort;
  bool deltas;
  bool skip_elements;
  double step;
  double cohort_weight;
  double weight_rounding;  ///< of it, as in average_terms
};

struct average_call {
  static constexpr int packs_a_thread = 4;
  static constexpr std::int64_t packs_a_block = packs_a_thread * threads_a_block;

  const std::byte* packed = nullptr;
  std::int64_t jobs = no_array;          ///< of average_job
  std::int64_t job_of_block = no_array;  ///< of std::int32_t
  std::int64_t blocks = 0;
  average_rule rule = {};
};

/// What a thread did: elements written, and values left out as not finite.
struct average_counts {
  std::int64_t held = 0;
  std::int64_t skipped = 0;
};

/// The new value where options are not the plain selective average.
SUBFED_HD inline double combined(const average_rule& rule, double total_sum, double weight,
                                 double old) noexcept {
  const double total = rule.by_cohort ? rule.cohort_weight : weight;
  if (rule.deltas) return sum(old, product(rule.step, quotient(total_sum, total)));
  const double absent = sum(total, -weight);
  const double rounding = product(total, rule.weight_rounding);
  if (rule.by_cohort && (absent > rounding || absent < -rounding)) {
    total_sum = sum(total_sum, product(absent, old));
  }
  const double average = quotient(total_sum, total);
  return rule.step == 1 ? average : sum(old, product(rule.step, sum(average, -old)));
}

/// One pack. Rank: the job's, or more. With a Rank of 2 the loops over it are unrolled and the
/// indices stay in registers; with more they are in local memory.
template <class E, int Width, int Rank>
SUBFED_HD void average_pack(const std::byte* packed, const average_job& job,
                            const average_rule& rule, std::int64_t n, average_counts& counts) {
  const average_axis* const axes = array_at<average_axis>(packed, job.axes);
  const int loops = Rank <= 2 ? Rank : job.rank;
  std::int64_t node[std::size_t{Rank}];
  std::int64_t rest[std::size_t{Rank}];
  std::int64_t units[std::size_t{Rank}];
  std::int64_t global_offset = 0;
  std::int64_t sum_offset = 0;
  for (int r = loops - 1; r >= 0; --r) {
    if (r >= job.rank) continue;
    const quotient_and_rest outer = divide(n, axes[r].extent);
    n = outer.quotient;
    const std::int64_t index = r == job.rank - 1 ? outer.rest * job.width : outer.rest;
    global_offset += index * axes[r].global_stride;
    sum_offset += index * axes[r].sum_stride;
    const quotient_and_rest split = divide(index, axes[r].unit);
    node[r] = split.quotient;
    rest[r] = split.rest;
    units[r] = axes[r].unit.value;
  }

  double sums[std::size_t{Width}];
  for (int k = 0; k < Width; ++k) sums[k] = job.sums != nullptr ? job.sums[sum_offset + k] : -0.0;
  double weight = 0;
  const average_member* const members = array_at<average_member>(packed, job.members);
  for (std::int64_t m = 0; m < job.member_count; ++m) {
    const average_member& member = members[m];
    const client_axis* const held = array_at<client_axis>(packed, member.axes);
    std::int64_t offset = 0;
    bool holds = true;
    for (int r = 0; r < loops; ++r) {
      if (r >= job.rank || !holds) continue;
      const client_axis& axis = held[r];
      std::int64_t position = node[r] + axis.shift;
      if (axis.table >= 0) {
        position = array_at<std::int32_t>(packed, axis.table)[node[r]];
        holds = position >= 0;
      } else {
        holds = node[r] >= axis.first && node[r] - axis.first < axis.count;
      }
      offset += (position * units[r] + rest[r]) * axis.stride;
    }
    if (!holds) continue;
    if (member.data != nullptr) {
      const auto* const from = static_cast<const E*>(member.data) + offset;
      const pack<E, Width> values = pack_at<const pack<E, Width>>(from);
      if (rule.skip_elements && Width == 1 && !is_finite(load(values.values[0]))) {
        ++counts.skipped;
        continue;
      }
      for (int k = 0; k < Width; ++k) {
        sums[k] = sum(sums[k], product(member.weight, load(values.values[k])));
      }
    }
    weight = sum(weight, member.weight);
  }
  if (!(weight > 0)) return;  // nobody holds it: its bits stay
  counts.held += Width;
  auto& out = pack_at<pack<E, Width>>(static_cast<E*>(job.global) + global_offset);
  pack<E, Width> result;
  if (rule.plain) {
    for (int k = 0; k < Width; ++k) store(quotient(sums[k], weight), result.values[k]);
  } else {
    result = out;
    for (int k = 0; k < Width; ++k) {
      store(combined(rule, sums[k], weight, load(result.values[k])), result.values[k]);
    }
  }
  out = result;
}

/// The work of one thread.
template <class E>
SUBFED_HD average_counts average_thread(const average_call& call, std::int64_t block, int thread) {
  constexpr int any_rank = 8;
  const std::int32_t number = array_at<std::int32_t>(call.packed, call.job_of_block)[block];
  const average_job& job = array_at<average_job>(call.packed, call.jobs)[number];
  average_counts counts;
  std::int64_t n = (block - job.first_block) * average_call::packs_a_block + thread;
  for (int p = 0; p < average_call::packs_a_thread; ++p, n += threads_a_block) {
    if (n >= job.packs) break;
    if (job.width != 1) {
      if (job.rank <= 2) {
        average_pack<E, widest<E>, 2>(call.packed, job, call.rule, n, counts);
      } else {
        average_pack<E, widest<E>, any_rank>(call.packed, job, call.rule, n, counts);
      }
    } else if (job.rank <= 2) {
      average_pack<E, 1, 2>(call.packed, job, call.rule, n, counts);
    } else {
      average_pack<E, 1, any_rank>(call.packed, job, call.rule, n, counts);
    }
  }
  return counts;
}

}  // namespace subfed::inline v0::cuda::detail
