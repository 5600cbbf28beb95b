// SPDX-License-Identifier: MIT
/// FedDrop's trajectory similarity: for each node, how similarly the clients of a round updated its
/// parameters.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/scalar.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// S^n_ij for all nodes n that schemes cut, numbered as keep_probabilities::values(), and pairs of
/// clients: symmetric, kept as lower triangles. Cost: 4 N C (C + 1) bytes.
class trajectory_similarity {
 public:
  trajectory_similarity(std::size_t nodes, std::size_t clients)
      : nodes_(nodes), clients_(clients), values_(nodes * clients * (clients + 1) / 2, 0.0) {}

  std::size_t nodes() const noexcept { return nodes_; }
  std::size_t clients() const noexcept { return clients_; }

  /// S^n_ij = S^n_ji. Pre: n, i and j are in range.
  double operator()(std::size_t n, std::size_t i, std::size_t j) const noexcept {
    return triangle(n)[place(i, j)];
  }
  double& operator()(std::size_t n, std::size_t i, std::size_t j) noexcept {
    return values_[n * triangle_size() + place(i, j)];
  }
  /// Of one node: element (i, j), j <= i, at i (i + 1) / 2 + j.
  std::span<const double> triangle(std::size_t n) const noexcept {
    return std::span<const double>(values_).subspan(n * triangle_size(), triangle_size());
  }

  /// Sum over n, i and j: the objective's minimum without a budget. [FedDrop, Theorem 3]
  double total() const noexcept {
    double sum = 0;
    for (std::size_t n = 0; n < nodes_; ++n) {
      for (std::size_t i = 0; i < clients_; ++i) {
        for (std::size_t j = 0; j < i; ++j) sum += 2 * (*this)(n, i, j);
        sum += (*this)(n, i, i);
      }
    }
    return sum;
  }
  /// Sum over n and i of S^n_ii: the size of the updates, positive whatever their direction.
  /// total() is near 0 where clients disagree.
  double trace() const noexcept {
    double sum = 0;
    for (std::size_t n = 0; n < nodes_; ++n) {
      for (std::size_t i = 0; i < clients_; ++i) sum += (*this)(n, i, i);
    }
    return sum;
  }
  /// Multiplies all values by a factor: the size of updates changes over a run, the barrier of Eq.
  /// 8 does not.
  void scale(double factor) noexcept {
    for (double& s : values_) s *= factor;
  }

 private:
  std::size_t triangle_size() const noexcept { return clients_ * (clients_ + 1) / 2; }
  static std::size_t place(std::size_t i, std::size_t j) noexcept {
    return i < j ? j * (j + 1) / 2 + i : i * (i + 1) / 2 + j;
  }

  std::size_t nodes_;
  std::size_t clients_;
  std::vector<double> values_;
};

namespace detail {

/// A client's tensor, row by row of the global one; a row is an index of its first dimension.
template <class T>
class row_walk {
 public:
  row_walk(const selection& chosen, std::span<const std::int64_t> extents,
           const tensor_view<const T>& local)
      : data_(local.data_handle()),
        stride_(local.stride(0)),
        inner_(inner_of(chosen), extents.subspan(1),
               tensor_view<const T>(local.data_handle(), local.extents().subspan(1),
                                    local.strides().subspan(1))),
        position_(static_cast<std::size_t>(extents[0]), -1) {
    for (const run& r : chosen.dimension(0).runs) {
      for (std::int64_t i = 0; i < r.length; ++i) {
        position_[static_cast<std::size_t>(r.first + i)] = r.position + i;
      }
    }
  }

  /// Calls f(element of the row, row-major, value) for what the client holds of a row.
  template <class F>
  void for_each(std::size_t row, F&& f) const {
    if (position_[row] < 0) return;
    const std::int64_t start = position_[row] * stride_;
    inner_.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        f(g + i * inner_.global_stride(), data_[start + l + i * inner_.local_stride()]);
      }
    });
  }

 private:
  static selection inner_of(const selection& chosen) {
    std::vector<selected_dimension> out;
    for (int r = 1; r < chosen.rank(); ++r) out.push_back(chosen.dimension(r));
    return selection(std::move(out), chosen.name());
  }

  const T* data_;
  std::int64_t stride_;
  loop_nest inner_;
  std::vector<std::int64_t> position_;  // of each global row, or -1
};

}  // namespace detail

/// What a client trained in a round, and its probabilities.
template <class T>
struct trajectory {
  submodel sub;                   ///< what it was sent
  tensor_views<const T> tensors;  ///< its values after training
  keep_probabilities keep;
  double weight = 1;  ///< lambda, divided by the sum over all clients
};

/// S^n_ij = lambda_i lambda_j max(p_i[n], p_j[n]) Delta_i^n . Delta_j^n,
///
/// with Delta_c^n the old values minus the client's, for the parameters of node n.
/// [FedDrop, Theorem 2] These are the elements of all parameters whose first dimension is bound to
/// the node's group: the filter of an output channel and its bias, the rows of an LSTM's four
/// gates. What a client does not hold, it has not changed.
///
/// Shapes    `before` as in the model; a client's tensors as in its submodel.
/// Throws    error for clients, submodels, probabilities or tensors that do not fit the model, a
///           sum of weights that is not positive, an update with a value that is not finite, or
///           updates whose products are not.
/// Numerics  Sums of products in double, tensor by tensor in row-major order; the same bits
///           everywhere.
/// Cost      O(W C^2) for W parameters.
template <class T>
trajectory_similarity similarity_of(const model& net,
                                    const tensor_views<std::type_identity_t<const T>>& before,
                                    std::span<const std::type_identity_t<trajectory<T>>> clients) {
  const detail::float_mode mode;
  detail::check_all_globals("similarity_of", "global", net, before);
  double weights = 0;
  for (const trajectory<T>& c : clients) {
    detail::check_update<T>("similarity_of", net, c.sub, c.tensors, c.weight);
    if (!(c.keep.parent() == net)) {
      detail::fail("subfed: similarity_of: the keep probabilities of " +
                   detail::client_text(c.sub) + " are of another model");
    }
    weights += c.weight;
  }
  if (!(weights > 0) || !detail::is_finite_double(weights)) {
    detail::fail("subfed: similarity_of: the weights of the clients add up to " +
                 detail::text(weights) + ", expected a positive number");
  }
  for (const trajectory<T>& c : clients) {
    const auto [tensor, offset] = detail::find_non_finite(c.sub, c.tensors, integer_rule::keep);
    if (tensor != c.tensors.size()) {
      detail::fail_non_finite("similarity_of", c.sub, tensor, offset);
    }
  }

  const std::size_t count = clients.size();
  const keep_probabilities numbering(net);
  trajectory_similarity out(numbering.values().size(), count);
  std::vector<double> deltas, products(count);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    const bool is_empty =
        std::find(info.extents.begin(), info.extents.end(), 0) != info.extents.end();
    if (info.dimensions.empty() || is_empty || !info.is_parameter()) continue;
    std::int64_t row_elements = 1;
    for (std::size_t r = 1; r < info.extents.size(); ++r) row_elements *= info.extents[r];
    const auto rows = static_cast<std::size_t>(info.extents[0]);

    // The node of each row; then, row by row, all clients' updates, one client per column.
    std::vector<std::size_t> node(rows, numbering.values().size());
    std::size_t row = 0;
    for (const dimension::part& p : info.dimensions[0].parts()) {
      const bool bound = p.group != dimension::no_group;
      const auto nodes = static_cast<std::size_t>(bound ? net.groups()[p.group].extent : p.whole);
      const bool counted = bound && net.groups()[p.group].cut != cut::never;
      for (std::int64_t copy = 0; nodes != 0 && copy < p.repeat; ++copy) {
        for (std::size_t n = 0; n < nodes; ++n) {
          for (std::int64_t i = 0; i < p.block; ++i, ++row) {
            if (counted) node[row] = numbering.first(group_id(p.group)) + n;
          }
        }
      }
    }
    std::vector<double> old;
    old.reserve(rows * static_cast<std::size_t>(row_elements));
    detail::for_each_offset(before[t], [&](std::int64_t o) {
      old.push_back(scalar_traits<T>::load(before[t].data_handle()[o]));
    });
    std::vector<detail::row_walk<T>> walks;
    for (const trajectory<T>& c : clients) {
      walks.emplace_back(c.sub[tensor_id(t)], info.extents, c.tensors[t]);
    }
    for (row = 0; row < rows; ++row) {
      if (node[row] == numbering.values().size()) continue;
      deltas.assign(static_cast<std::size_t>(row_elements) * count, 0.0);
      const double* const start = old.data() + row * static_cast<std::size_t>(row_elements);
      for (std::size_t c = 0; c < count; ++c) {
        walks[c].for_each(row, [&](std::int64_t element, T value) {
          const auto e = static_cast<std::size_t>(element);
          deltas[e * count + c] = start[e] - scalar_traits<T>::load(value);
        });
      }
      for (std::size_t e = 0; e < static_cast<std::size_t>(row_elements); ++e) {
        const double* const x = deltas.data() + e * count;
        for (std::size_t i = 0; i < count; ++i) {
          double* const s = &out(node[row], i, 0);
          for (std::size_t j = 0; j <= i; ++j) s[j] += detail::rounded_product(x[i], x[j]);
        }
      }
    }
  }
  for (std::size_t n = 0; n < out.nodes(); ++n) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double p = (std::max)(clients[i].keep.values()[n], clients[j].keep.values()[n]);
        out(n, i, j) *= clients[i].weight / weights * (clients[j].weight / weights) * p;
        if (!detail::is_finite_double(out(n, i, j))) {
          detail::fail("subfed: similarity_of: the updates of node " + std::to_string(n) + " by " +
                       detail::client_text(clients[i].sub) + " and " +
                       detail::client_text(clients[j].sub) +
                       " are so large that their product is not finite, or an old value is not");
        }
      }
    }
  }
  return out;
}

/// sum over n, i and j of S^n_ij / max(q_i[n], q_j[n]). [FedDrop, Eq. 7]
///
/// Throws  error for another number of clients or nodes, a pair of probabilities that are both 0,
///         or a sum that is not finite.
/// Cost    O(N C^2).
inline double trajectory_objective(const trajectory_similarity& similarity,
                                   std::span<const keep_probabilities> clients) {
  const std::size_t count = similarity.clients();
  if (clients.size() != count) {
    detail::fail("subfed: trajectory_objective: " + std::to_string(clients.size()) +
                 " clients are given, expected " + std::to_string(count));
  }
  for (const keep_probabilities& keep : clients) {
    if (keep.values().size() != similarity.nodes()) {
      detail::fail("subfed: trajectory_objective: keep probabilities of " +
                   std::to_string(keep.values().size()) + " nodes are given, expected " +
                   std::to_string(similarity.nodes()));
    }
  }
  double sum = 0;
  for (std::size_t n = 0; n < similarity.nodes(); ++n) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double q = (std::max)(clients[i].values()[n], clients[j].values()[n]);
        if (q == 0) {
          detail::fail("subfed: trajectory_objective: clients " + std::to_string(i) + " and " +
                       std::to_string(j) + " both have the keep probability 0 for node " +
                       std::to_string(n));
        }
        sum += (i == j ? 1 : 2) * similarity(n, i, j) / q;
      }
    }
  }
  if (!detail::is_finite_double(sum)) {
    detail::fail("subfed: trajectory_objective: the sum is not finite");
  }
  return sum;
}

}  // namespace subfed::inline v0
