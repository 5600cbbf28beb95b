// SPDX-License-Identifier: MIT
/// Rows of random sets of kernels, node by node.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/run_row.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Each node is summed over its holders in registers; its holders are known as bits.
template <class T, class From>
class node_row : protected run_row<T, From> {
 protected:
  using base = run_row<T, From>;
  using base::base;
  ~node_row() = default;
  using base::global_;
  using base::inner;
  using base::layout_;
  using base::report_;
  using typename base::holder;

  /// For sets of short runs: the weight of each number of holders, where all weights are 1.
  void prepare_nodes() {
    ones_ = true;
    for (const auto& p : layout_.participants()) ones_ = ones_ && p.weight == 1;
    for (std::size_t n = 0; n <= layout_.participants().size(); ++n) {
      dividers_.emplace_back(static_cast<double>((std::max)(n, std::size_t{1})));
    }
  }

  /// Nodes begin .. end-1, each summed over its holders in registers. U: elements of a node.
  template <std::int64_t U>
  void node_by_node_mean(std::span<const holder> holders, std::int64_t global_offset,
                         std::int64_t begin, std::int64_t end) {
    const node_holders& nodes = layout_.nodes();
    std::array<const T*, 64> data{};
    std::array<const std::int32_t*, 64> positions{};
    std::array<double, 64> weights{};
    std::uint64_t here = 0;
    for (const holder& h : holders) {
      const std::size_t p = h.participant;
      here |= std::uint64_t{1} << p;
      data[p] = layout_.participants()[p].data + h.offset;
      positions[p] = nodes.positions.data() + p * static_cast<std::size_t>(inner().extent);
      weights[p] = layout_.participants()[p].weight;
    }
    for (std::int64_t n = begin; n < end; ++n) {
      std::uint64_t left = nodes.masks[static_cast<std::size_t>(n)] & here;
      if (left == 0) continue;
      T* const out = global_ + global_offset + n * U;
      const int held_by = std::popcount(left);
      double sums[static_cast<std::size_t>(U)];
      std::fill_n(sums, U, -0.0);
      if (ones_) {
        for (; left != 0; left &= left - 1) {
          const auto p = static_cast<std::size_t>(std::countr_zero(left));
          add_unit<U>(data[p] + positions[p][n] * U, sums);
        }
        divide_unit<U>(sums, dividers_[static_cast<std::size_t>(held_by)], out);
      } else {
        double weight = 0;
        for (; left != 0; left &= left - 1) {
          const auto p = static_cast<std::size_t>(std::countr_zero(left));
          accumulate_units<U>(data[p] + positions[p][n] * U, weights[p], sums, 1);
          weight += weights[p];
        }
        divide_unit<U>(sums, divider(weight), out);
      }
      report_.held += U;
    }
  }

  bool ones_ = false;
  std::vector<divider> dividers_;  // of each number of holders; empty unless nodes go one by one
};

}  // namespace subfed::inline v0::detail
