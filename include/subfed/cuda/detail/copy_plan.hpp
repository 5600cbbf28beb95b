// SPDX-License-Identifier: MIT
/// Plans a cohort's copies on the host: which block of which launch copies what. Needs no GPU.
#pragma once

#include <subfed/cuda/detail/copy_kernel.hpp>
#include <subfed/cuda/detail/node_tables.hpp>
#include <subfed/cuda/detail/packed_arrays.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda::detail {

/// Whether the global tensor is read or written.
enum class direction { slice, scatter };

/// The blocks of a launch: which job each works for.
class block_list {
 public:
  /// Reserves blocks for a job of that many packs. Returns the first.
  std::int64_t add(std::int64_t packs, std::int64_t packs_a_block) {
    const auto first = static_cast<std::int64_t>(jobs_.size());
    const std::int64_t blocks = (packs + packs_a_block - 1) / packs_a_block;
    if (blocks > (std::numeric_limits<std::int32_t>::max)() - first) {
      subfed::detail::fail("subfed: cuda: one launch would have more than 2^31 - 1 blocks");
    }
    jobs_.insert(jobs_.end(), static_cast<std::size_t>(blocks), count_++);
    return first;
  }
  const std::vector<std::int32_t>& jobs() const noexcept { return jobs_; }

 private:
  std::vector<std::int32_t> jobs_;
  std::int32_t count_ = 0;
};

/// Every element of a run begins a multiple of `width` elements away from the first element, in both
/// tensors: then so does every pack.
inline bool aligned_runs(const selected_dimension& d, std::int64_t unit, int width) noexcept {
  return std::all_of(d.runs.begin(), d.runs.end(), [&](const run& x) {
    return x.first * unit % width == 0 && x.position * unit % width == 0 &&
           x.length * unit % width == 0;
  });
}

template <class T>
bool is_aligned_to_pack(const T* data, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// Collects the copies of a launch. From, To: the element types in kernels.
template <direction Direction, class From, class To>
class copy_plan {
 public:
  explicit copy_plan(const model& net) : tables_(net, packed_) {}

  /// All tensors of one client. Pre: shapes are right.
  template <class Global, class Local>
  void add(const submodel& sub, const tensor_views<Global>& globals,
           const tensor_views<Local>& locals, double weight = 1) {
    const std::size_t s = tables_.number_of(sub);
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (locals[t].size() == 0) continue;
      add_tensor(s, t, sub, globals[t], locals[t], weight);
    }
  }

  /// Ends the collection. The call is without the address of the packed arrays.
  copy_call finish() {
    copy_call out;
    out.jobs = packed_.append(jobs_);
    out.job_of_block = packed_.append(blocks_.jobs());
    out.blocks = static_cast<std::int64_t>(blocks_.jobs().size());
    return out;
  }
  const packed_arrays& bytes() const noexcept { return packed_; }

 private:
  struct axis {
    std::int64_t global_stride, local_stride;
    std::int64_t unit;
    paired_nodes nodes;
    const selected_dimension* selected;
  };
  /// What tensors of the same submodel, number, strides and alignment share.
  struct shape {
    std::int64_t packs = 0;
    std::int64_t axes = no_array;
    std::int32_t rank = 0;
    std::int32_t width = 1;
    std::int64_t global_start = 0;
    std::int64_t local_start = 0;
  };
  struct shape_key {
    std::size_t submodel, tensor;
    std::array<std::int64_t, max_rank> global_strides{}, local_strides{};
    bool aligned;
    friend auto operator<=>(const shape_key&, const shape_key&) = default;
  };

  template <class Global, class Local>
  void add_tensor(std::size_t s, std::size_t t, const submodel& sub,
                  const tensor_view<Global>& global, const tensor_view<Local>& local,
                  double weight) {
    constexpr auto global_pack = Direction == direction::slice ? pack_bytes<From> : pack_bytes<To>;
    constexpr auto local_pack = Direction == direction::slice ? pack_bytes<To> : pack_bytes<From>;
    shape_key key{s, t, {}, {}, false};
    std::copy(global.strides().begin(), global.strides().end(), key.global_strides.begin());
    std::copy(local.strides().begin(), local.strides().end(), key.local_strides.begin());
    key.aligned = is_aligned_to_pack(global.data_handle(), global_pack) &&
                  is_aligned_to_pack(local.data_handle(), local_pack);
    const auto [at, is_new] = shapes_.try_emplace(key);
    if (is_new) at->second = make_shape(key, sub[tensor_id(t)]);
    const shape& found = at->second;
    if (found.packs == 0) return;
    auto* const global_data = global.data_handle() + found.global_start;
    auto* const local_data = local.data_handle() + found.local_start;
    copy_job job{};
    if constexpr (Direction == direction::slice) {
      job.from = global_data;
      job.to = local_data;
    } else {
      job.from = local_data;
      job.to = global_data;
    }
    job.weight = weight;
    job.packs = found.packs;
    job.axes = found.axes;
    job.rank = found.rank;
    job.width = found.width;
    job.first_block = blocks_.add(found.packs, copy_call::packs_a_block);
    jobs_.push_back(job);
  }

  /// The address of a widest pack is a multiple of this.
  template <class E>
  static constexpr std::size_t pack_bytes = alignof(pack<E, widest<From>>);

  shape make_shape(const shape_key& key, const selection& chosen) {
    shape out;
    std::vector<axis> axes;
    for (int r = 0; r < chosen.rank(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      const paired_nodes nodes = tables_.paired(key.submodel, key.tensor, r, chosen);
      if (nodes.count == 0) return out;
      out.global_start += nodes.first_global * key.global_strides[i];
      out.local_start += nodes.first_local * key.local_strides[i];
      if (nodes.count == 1) continue;
      axes.push_back({key.global_strides[i], key.local_strides[i], 1, nodes, &chosen.dimension(r)});
    }
    // Neighbouring threads write neighbouring elements.
    std::stable_sort(axes.begin(), axes.end(), [](const axis& a, const axis& b) {
      return std::abs(to_stride(a)) > std::abs(to_stride(b));
    });
    merge(axes);
    if (key.aligned && packs_fit(axes, out)) out.width = widest<From>;
    if (axes.empty()) axes.push_back({1, 1, 1, {1, 0, 0, no_array, no_array}, nullptr});
    out.packs = 1;
    std::vector<copy_axis> written;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      std::int64_t extent = axes[a].nodes.count * axes[a].unit;
      if (a + 1 == axes.size()) extent /= out.width;
      out.packs *= extent;
      written.push_back(device_axis(axes[a], extent));
    }
    out.rank = static_cast<std::int32_t>(written.size());
    out.axes = packed_.append(written);
    return out;
  }

  static std::int64_t to_stride(const axis& a) noexcept {
    return Direction == direction::slice ? a.local_stride : a.global_stride;
  }

  static copy_axis device_axis(const axis& a, std::int64_t extent) noexcept {
    const bool cuts = Direction == direction::slice;
    return {make_divisor(extent),
            make_divisor(a.unit),
            cuts ? a.global_stride : a.local_stride,
            cuts ? a.local_stride : a.global_stride,
            cuts ? a.nodes.global_table : a.nodes.local_table,
            cuts ? a.nodes.local_table : a.nodes.global_table};
  }

  /// Joins a dimension that takes part completely with the one around it, where both are contiguous
  /// in both tensors.
  static void merge(std::vector<axis>& axes) {
    for (std::size_t i = axes.size(); i-- > 1;) {
      axis& outer = axes[i - 1];
      const axis& inner = axes[i];
      const std::int64_t elements = inner.nodes.count * inner.unit;
      if (!inner.selected->is_whole() || outer.global_stride != elements * inner.global_stride ||
          outer.local_stride != elements * inner.local_stride) {
        continue;
      }
      outer.unit = elements;
      outer.global_stride = inner.global_stride;
      outer.local_stride = inner.local_stride;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// Whether the elements can be copied in the widest packs.
  static bool packs_fit(const std::vector<axis>& axes, const shape& where) noexcept {
    constexpr int width = widest<From>;
    if (axes.empty() || where.global_start % width != 0 || where.local_start % width != 0) {
      return false;
    }
    const axis& inner = axes.back();
    if (inner.global_stride != 1 || inner.local_stride != 1) return false;
    if (!aligned_runs(*inner.selected, inner.unit, width)) return false;
    return std::all_of(axes.begin(), axes.end() - 1, [](const axis& a) {
      return a.global_stride % width == 0 && a.local_stride % width == 0;
    });
  }

  packed_arrays packed_;
  node_tables tables_;
  std::map<shape_key, shape> shapes_;
  std::vector<copy_job> jobs_;
  block_list blocks_;
};

}  // namespace subfed::inline v0::cuda::detail
