// SPDX-License-Identifier: MIT
/// Plans a cohort's average on the host: which block of the launch averages what. Needs no GPU.
#pragma once

#include <subfed/average/detail/terms.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/cuda/detail/average_kernel.hpp>
#include <subfed/cuda/detail/copy_plan.hpp>
#include <subfed/cuda/detail/node_tables.hpp>
#include <subfed/cuda/detail/packed_arrays.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda::detail {

using subfed::detail::member;

/// Whether a launch averages a tensor: not those that stay with their clients, and not counters,
/// whose server value is kept.
inline bool is_averaged(const model::tensor_info& tensor) noexcept {
  return !tensor.is_local() && tensor.role != role::counter;
}

inline average_rule rule_of(const average_options& options, double cohort_weight,
                            std::int64_t clients) noexcept {
  average_rule out{};
  out.by_cohort = options.divide_by == subfed::divisor::cohort;
  out.deltas = options.content == content::deltas;
  out.plain = !out.by_cohort && !out.deltas && options.step == 1;
  out.skip_elements = options.on_non_finite == non_finite::skip_element;
  out.step = options.step;
  out.cohort_weight = cohort_weight;
  out.weight_rounding = subfed::detail::rounding_of_weights(clients);
  return out;
}

/// The launch that averages all tensors of a model. E: the element type in kernels.
template <class E>
class average_plan {
 public:
  /// sums: of all tensors, also those that are not averaged, row-major, one after the other; null
  /// for none. Pre: shapes are right, the parts are in the order in which they are added.
  template <class T>
  average_plan(const model& net, const tensor_views<T>& globals, std::span<const member<T>> parts,
               const double* sums, const average_rule& rule)
      : tables_(net, packed_), skip_elements_(rule.skip_elements) {
    for (const auto& p : parts) numbers_.push_back(tables_.number_of(*p.sub));
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (is_averaged(net.tensors()[t])) {
        elements_ += globals[t].size();
        if (globals[t].size() != 0 && !parts.empty()) add_tensor(t, globals[t], parts, sums);
      }
      if (sums != nullptr) sums += globals[t].size();
    }
    call_.jobs = packed_.append(jobs_);
    call_.job_of_block = packed_.append(blocks_.jobs());
    call_.blocks = static_cast<std::int64_t>(blocks_.jobs().size());
    call_.rule = rule;
  }

  /// Without the address of the packed arrays.
  const average_call& call() const noexcept { return call_; }
  const packed_arrays& bytes() const noexcept { return packed_; }
  std::int64_t jobs() const noexcept { return static_cast<std::int64_t>(jobs_.size()); }
  /// Elements of all global tensors that are averaged.
  std::int64_t elements() const noexcept { return elements_; }

 private:
  struct axis {
    std::size_t dimension;
    std::int64_t nodes, unit;
    std::int64_t global_stride, sum_stride;
  };
  /// One submodel's tensor, with its strides.
  struct holding_key {
    std::size_t submodel;
    std::array<std::int64_t, max_rank> strides{};
    friend auto operator<=>(const holding_key&, const holding_key&) = default;
  };
  struct holding {
    selection chosen;
    std::int64_t axes = no_array;
  };

  template <class T>
  void add_tensor(std::size_t t, const tensor_view<T>& global, std::span<const member<T>> parts,
                  const double* sums) {
    // The different holdings, and which one each part has.
    std::map<holding_key, holding> holdings;
    std::vector<std::pair<const holding_key, holding>*> of_part;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      holding_key key{numbers_[p]};
      if (parts[p].tensors != nullptr) {
        const auto strides = (*parts[p].tensors)[t].strides();
        std::copy(strides.begin(), strides.end(), key.strides.begin());
      }
      const auto [at, is_new] = holdings.try_emplace(key);
      if (is_new) at->second.chosen = (*parts[p].sub)[tensor_id(t)];
      of_part.push_back(&*at);
    }
    const bool have_data = parts.front().tensors != nullptr;
    const std::vector<axis> axes = merged_axes(global, holdings, have_data);

    average_job job{};
    job.width = widest<E>;
    bool aligned = packs_fit(global, axes, holdings, have_data);
    for (std::size_t p = 0; have_data && p < parts.size(); ++p) {
      const auto& tensor = (*parts[p].tensors)[t];
      aligned = aligned && (tensor.size() == 0 || is_aligned_to_pack(tensor.data_handle(), 16));
    }
    if (!aligned) job.width = 1;

    job.packs = 1;
    std::vector<average_axis> written;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      std::int64_t extent = axes[a].nodes * axes[a].unit;
      if (a + 1 == axes.size()) extent /= job.width;
      job.packs *= extent;
      written.push_back({make_divisor(extent), make_divisor(axes[a].unit), axes[a].global_stride,
                         axes[a].sum_stride});
    }
    job.axes = packed_.append(written);
    job.rank = static_cast<std::int32_t>(written.size());

    for (auto& [key, own] : holdings) {
      std::vector<client_axis> held;
      for (const axis& a : axes) {
        if (a.dimension == no_dimension) {
          held.push_back({0, 1, 0, no_array, 1});
          continue;
        }
        const held_nodes nodes =
            tables_.held(key.submodel, t, static_cast<int>(a.dimension), own.chosen);
        held.push_back(
            {nodes.first, nodes.count, nodes.shift, nodes.table, inner_stride(a, key.strides)});
      }
      own.axes = packed_.append(held);
    }
    std::vector<average_member> members;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      // An empty tensor has no data; it holds nothing.
      if (have_data && (*parts[p].tensors)[t].size() == 0) continue;
      members.push_back({have_data ? (*parts[p].tensors)[t].data_handle() : nullptr,
                         parts[p].weight, of_part[p]->second.axes});
    }
    job.members = packed_.append(members);
    job.member_count = static_cast<std::int64_t>(members.size());
    job.global = global.data_handle();
    job.sums = sums;
    job.first_block = blocks_.add(job.packs, average_call::packs_a_block);
    jobs_.push_back(job);
  }

  static constexpr std::size_t no_dimension = static_cast<std::size_t>(-1);

  /// Stride of an element of a merged axis in a client's tensor: of the innermost dimension in it.
  static std::int64_t inner_stride(const axis& a,
                                   const std::array<std::int64_t, max_rank>& strides) noexcept {
    return strides[a.dimension] / a.unit;
  }

  /// Dimensions by decreasing global stride; those that everybody holds completely are merged into
  /// the one around them, where both are contiguous in all tensors.
  template <class T>
  static std::vector<axis> merged_axes(const tensor_view<T>& global,
                                       const std::map<holding_key, holding>& holdings,
                                       bool have_data) {
    std::vector<axis> axes;
    std::int64_t sum_stride = 1;
    for (int r = global.rank() - 1; r >= 0; --r) {
      const auto d = static_cast<std::size_t>(r);
      if (global.extent(r) != 1 || !whole(holdings, d)) {
        axes.push_back({d, global.extent(r), 1, global.stride(r), sum_stride});
      }
      sum_stride *= global.extent(r);
    }
    std::reverse(axes.begin(), axes.end());
    std::stable_sort(axes.begin(), axes.end(), [](const axis& a, const axis& b) {
      return std::abs(a.global_stride) > std::abs(b.global_stride);
    });
    for (std::size_t i = axes.size(); i-- > 1;) {
      axis& outer = axes[i - 1];
      const axis& inner = axes[i];
      const std::int64_t elements = inner.nodes * inner.unit;
      bool merges = whole(holdings, inner.dimension) &&
                    outer.global_stride == elements * inner.global_stride &&
                    outer.sum_stride == elements * inner.sum_stride;
      for (const auto& [key, own] : holdings) {
        merges = merges && (!have_data || key.strides[outer.dimension] ==
                                              inner.nodes * key.strides[inner.dimension]);
      }
      if (!merges) continue;
      outer.unit = elements;
      outer.global_stride = inner.global_stride;
      outer.sum_stride = inner.sum_stride;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (axes.empty()) axes.push_back({no_dimension, 1, 1, 1, 1});
    return axes;
  }

  static bool whole(const std::map<holding_key, holding>& holdings, std::size_t dimension) {
    return std::all_of(holdings.begin(), holdings.end(), [&](const auto& h) {
      return h.second.chosen.dimension(static_cast<int>(dimension)).is_whole();
    });
  }

  /// Every pack is contiguous and aligned in all tensors, and a client holds all or none of it.
  template <class T>
  bool packs_fit(const tensor_view<T>& global, const std::vector<axis>& axes,
                 const std::map<holding_key, holding>& holdings, bool have_data) const {
    constexpr int width = widest<E>;
    if (skip_elements_ || axes.back().dimension == no_dimension) return false;
    if (!is_aligned_to_pack(global.data_handle(), 16)) return false;
    const axis& inner = axes.back();
    if (inner.global_stride != 1 || inner.sum_stride != 1) return false;
    if (inner.nodes * inner.unit % width != 0) return false;
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
      if (axes[a].global_stride % width != 0) return false;
    }
    for (const auto& [key, own] : holdings) {
      const auto r = static_cast<int>(inner.dimension);
      if (!aligned_runs(own.chosen.dimension(r), inner.unit, width)) return false;
      if (!have_data) continue;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        const std::int64_t stride = inner_stride(axes[a], key.strides);
        if (a + 1 == axes.size() ? stride != 1 : stride % width != 0) return false;
      }
    }
    return true;
  }

  packed_arrays packed_;
  node_tables tables_;
  bool skip_elements_;
  std::vector<std::size_t> numbers_;  // of the parts' submodels
  std::vector<average_job> jobs_;
  block_list blocks_;
  average_call call_;
  std::int64_t elements_ = 0;
};

}  // namespace subfed::inline v0::cuda::detail
