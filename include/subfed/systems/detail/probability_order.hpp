// SPDX-License-Identifier: MIT
/// The clients of one node in the order of their keep probabilities, and the resulting coefficients
/// of FedDrop's objective.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// sum_ij S_ij / max(q_i, q_j) = sum_i a_i / q_i with
///
///   a_i = S_ii + 2 sum over j after i of S_ij
///
/// for every order in which the probabilities do not increase; equal ones may be in any order. The
/// a_i change only where the order does: O(1) for each pair of clients that swap places.
///
/// order and a are the caller's, C elements each.
struct probability_order {
  const float* square;             ///< S of the node, all C rows: a client's row is contiguous
  std::span<std::uint32_t> order;  ///< clients, by decreasing probability
  std::span<double> a;             ///< of each client

  double similarity(std::size_t i, std::size_t j) const noexcept {
    return static_cast<double>(square[i * order.size() + j]);
  }

  /// From scratch: O(C^2).
  void build(const double* q) const noexcept {
    const std::size_t count = order.size();
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [q](std::uint32_t x, std::uint32_t y) {
      return q[x] > q[y] || (q[x] == q[y] && x < y);
    });
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = order[k];
      a[i] = similarity(i, i);
      for (std::size_t l = k + 1; l < count; ++l) a[i] += 2 * similarity(i, order[l]);
    }
  }

  /// From the previous order to that of q. Equal ones keep their places.
  void update(const double* q) const noexcept {
    for (std::size_t k = 1; k < order.size(); ++k) {
      const std::uint32_t moving = order[k];
      std::size_t at = k;
      for (; at > 0 && q[order[at - 1]] < q[moving]; --at) {
        pass(moving, order[at - 1]);
        order[at] = order[at - 1];
      }
      order[at] = moving;
    }
  }

  /// Moves the client at place `from` to the place `to`.
  void move(std::size_t from, std::size_t to) const noexcept {
    // By pointers: GCC 12 warns of indices that could be too large for any span.
    std::uint32_t* place = order.data() + from;
    std::uint32_t* const last = order.data() + to;
    const std::uint32_t moving = *place;
    for (; place > last; --place) {
      pass(moving, place[-1]);
      *place = place[-1];
    }
    for (; place < last; ++place) {
      pass(place[1], moving);
      *place = place[1];
    }
    *last = moving;
  }

 private:
  /// `front` moves before `back`, its neighbour.
  void pass(std::size_t front, std::size_t back) const noexcept {
    const double s = 2 * similarity(front, back);
    a[front] += s;
    a[back] -= s;
  }
};

}  // namespace subfed::inline v0::detail
