// SPDX-License-Identifier: MIT
/// The clients of one node in the order of their keep probabilities, and the coefficients of
/// FedDrop's objective that follow from it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// sum_ij S_ij / max(q_i, q_j) = sum_i a_i / q_i with
///
///   a_i = S_ii + 2 sum over j with q_j < q_i of S_ij + sum over j != i with q_j = q_i of S_ij
///
/// The a_i change only where the order does: a change of probabilities costs O(C), and O(1) for
/// each pair of clients whose order changes. What is equal is split evenly, as a subgradient.
///
/// order, group and a are the caller's, C elements each. group numbers runs of equal probabilities.
struct keep_order {
  const float* square;  ///< S of the node, all C rows: a client's row is read at a stretch
  std::span<std::uint32_t> order;  ///< clients, by falling probability
  std::span<std::uint32_t> group;  ///< of each client; equal where the probabilities are
  std::span<double> a;

  double similarity(std::size_t i, std::size_t j) const noexcept {
    return static_cast<double>(square[i * order.size() + j]);
  }

  /// From nothing: O(C^2).
  void build(const double* q) const noexcept {
    const std::size_t count = order.size();
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [q](std::uint32_t x, std::uint32_t y) {
      return q[x] > q[y] || (q[x] == q[y] && x < y);
    });
    number_groups(q);
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = similarity(i, i);
      for (std::size_t j = 0; j < count; ++j) {
        if (j == i || q[j] > q[i]) continue;
        a[i] += (q[j] < q[i] ? 2 : 1) * similarity(i, j);
      }
    }
  }

  /// From the state of the probabilities before to that of q.
  void update(const double* q) const noexcept {
    const std::size_t count = order.size();
    if (unchanged(q)) return;
    // Equal ones that part: those earlier in the order count as the larger ones. Most stay
    // together, so only those that leave the rest are looked at.
    constexpr std::uint32_t alone = 0xFFFFFFFFu;
    for (std::size_t from = 0; from < count;) {
      const std::size_t to = end_of_group(from);
      if (to == from + 1) {
        from = to;
        continue;
      }
      const double rest = most_common(q, from, to);
      for (std::size_t k = from; k < to; ++k) {
        if (q[order[k]] == rest) continue;
        for (std::size_t l = from; l < to; ++l) {
          if (l == k || (l < k && q[order[l]] != rest)) continue;  // that pair was looked at
          shift(order[k], order[l], l < k ? -1 : 1);
        }
      }
      for (std::size_t k = from; k < to; ++k) {
        if (q[order[k]] != rest) group[order[k]] = alone;
      }
      from = to;
    }
    for (std::size_t k = 1; k < count; ++k) {
      const std::uint32_t moving = order[k];
      std::size_t at = k;
      for (; at > 0 && q[order[at - 1]] < q[moving]; --at) {
        shift(moving, order[at - 1], 2);
        order[at] = order[at - 1];
      }
      order[at] = moving;
    }
    // Those that have become equal.
    for (std::size_t from = 0; from < count;) {
      std::size_t to = from + 1;
      while (to < count && q[order[to]] == q[order[from]]) ++to;
      if (to == from + 1) {
        from = to;
        continue;
      }
      std::uint32_t rest = alone;  // pairs of one number are equal already
      for (std::size_t k = from; k < to && rest == alone; ++k) rest = group[order[k]];
      for (std::size_t k = from; k < to; ++k) {
        const std::uint32_t own = group[order[k]];
        if (own == rest && own != alone) continue;
        for (std::size_t l = from; l < to; ++l) {
          const std::uint32_t other = group[order[l]];
          if (l == k || (own == other && own != alone)) continue;
          if (l < k && !(other == rest && other != alone)) continue;  // that pair was looked at
          shift(order[k], order[l], l < k ? 1 : -1);
        }
      }
      from = to;
    }
    number_groups(q);
  }

 private:
  /// `moving` goes up by so many halves of the way from below to above the other.
  void shift(std::size_t moving, std::size_t other, double halves) const noexcept {
    const double s = halves * similarity(moving, other);
    a[moving] += s;
    a[other] -= s;
  }
  /// The value that more than half of a run have, if there is one; else that of any of them.
  double most_common(const double* q, std::size_t from, std::size_t to) const noexcept {
    double out = q[order[from]];
    std::size_t lead = 0;
    for (std::size_t k = from; k < to; ++k) {
      if (lead == 0) out = q[order[k]];
      lead = q[order[k]] == out ? lead + 1 : lead - 1;
    }
    return out;
  }
  std::size_t end_of_group(std::size_t from) const noexcept {
    std::size_t to = from + 1;
    while (to < order.size() && group[order[to]] == group[order[from]]) ++to;
    return to;
  }
  bool unchanged(const double* q) const noexcept {
    for (std::size_t k = 1; k < order.size(); ++k) {
      const bool equal = group[order[k - 1]] == group[order[k]];
      const double above = q[order[k - 1]], below = q[order[k]];
      if (equal ? above != below : !(above > below)) return false;
    }
    return true;
  }
  void number_groups(const double* q) const noexcept {
    std::uint32_t number = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k != 0 && q[order[k]] != q[order[k - 1]]) ++number;
      group[order[k]] = number;
    }
  }
};

}  // namespace subfed::inline v0::detail
