// SPDX-License-Identifier: MIT
/// FedDrop's synchronised dropout: keep probabilities of a client's nodes, thresholds that all
/// clients share, the sets that result, and the scale of what is kept.
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/model.hpp>
#include <subfed/philox.hpp>
#include <subfed/scheme.hpp>
#include <subfed/submodel.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// p_c[n]: the probability with which a client keeps each node of the groups that schemes cut.
/// Nodes of groups declared cut::never are always kept. [FedDrop, 3.3]
///
/// keep_probabilities(net, p), the same for all nodes and never changed, is UniDrop. [FedDrop, 4]
class keep_probabilities {
 public:
  /// Throws  error when p is not in [0, 1].
  explicit keep_probabilities(model net, double p = 1) : net_(std::move(net)) {
    std::size_t nodes = 0;
    for (const auto& group : net_.groups()) {
      first_.push_back(nodes);
      if (group.cut != cut::never) nodes += detail::memory_size<double>(group.extent);
    }
    first_.push_back(nodes);
    values_.assign(nodes, checked(p));
  }

  const model& parent() const noexcept { return net_; }

  /// Of the nodes of a group; empty for a group that is never cut.
  std::span<const double> operator[](group_id group) const {
    static_cast<void>(net_[group]);  // refuses a foreign group
    return std::span<const double>(values_).subspan(
        first_[group.number()], first_[group.number() + 1] - first_[group.number()]);
  }

  /// Of all nodes, group by group.
  std::span<const double> values() const noexcept { return values_; }
  /// Number of a group's first node in values().
  std::size_t first(group_id group) const {
    static_cast<void>(net_[group]);
    return first_[group.number()];
  }

  /// Throws  error for another number of values, or one that is not in [0, 1]; nothing has been
  ///         changed then.
  void assign(std::span<const double> values) {
    if (values.size() != values_.size()) {
      detail::fail("subfed: keep_probabilities: " + std::to_string(values.size()) +
                   " values are given for " + std::to_string(values_.size()) + " nodes");
    }
    for (const double p : values) checked(p);
    values_.assign(values.begin(), values.end());
  }

 private:
  static double checked(double p) {
    if (p == 0 || detail::in_unit_interval(p)) return p;
    detail::fail("subfed: keep_probabilities: " + detail::text(p) + " is outside [0, 1]");
  }

  model net_;
  std::vector<std::size_t> first_;
  std::vector<double> values_;
};

namespace detail {

/// The random numbers of a group's thresholds: word number n for node n.
inline random_stream sync_stream(std::uint64_t seed, std::uint64_t round, std::uint64_t step,
                                 std::string_view group) noexcept {
  return {seed, round, step, name_hash(group) ^ name_hash("subfed sync_dropout")};
}
inline double unit_of(std::uint64_t word) noexcept {
  return static_cast<double>(word >> 11) * 0x1.0p-53;
}

}  // namespace detail

/// t_n ~ U(0, 1): the threshold of a node, the same for all clients in a round and local step.
///
/// Numerics  A multiple of 2^-53 that follows from its arguments alone, the same on every platform.
inline double sync_threshold(std::uint64_t seed, std::uint64_t round, std::uint64_t step,
                             std::string_view group, std::int64_t node) {
  return detail::unit_of(
      detail::sync_stream(seed, round, step, group).bits(static_cast<std::uint64_t>(node)));
}

/// S = {n : t_n < p_c[n]}. [FedDrop, Eq. 3] A scheme of one client, whose capacity and number do
/// not matter: draw(net, sync_dropout{p, step}, {.seed = seed, .round = round}).
///
/// If one of two clients has the larger probability everywhere, their sets are nested, and
/// E[d_i d_j] = min(p_i, p_j). [FedDrop, Eq. 4] A set may be empty.
struct sync_dropout {
  keep_probabilities keep;
  std::uint64_t step = 0;  ///< number of the local mini-batch; always 0: thresholds per round

  /// Throws  error for a group that the model does not have, or of another extent.
  index_set operator()(const draw_request& where) const {
    const group_id group = keep.parent().find_group(where.group);
    const std::int64_t extent = keep.parent()[group].extent;
    if (extent != where.extent) {
      detail::fail("subfed: sync_dropout: group '" + std::string(where.group) + "' has " +
                   std::to_string(where.extent) + " nodes, expected " + std::to_string(extent) +
                   " as in the model of the keep probabilities");
    }
    const std::span<const double> p = keep[group];
    if (p.empty()) return index_set::full(extent);
    std::vector<std::int64_t> nodes;
    const random_stream stream = detail::sync_stream(where.seed, where.round, step, where.group);
    for (std::size_t n = 0; n < p.size(); n += 2) {
      const auto [even, odd] = stream.bits_pair(n / 2);
      if (detail::unit_of(even) < p[n]) nodes.push_back(static_cast<std::int64_t>(n));
      if (n + 1 < p.size() && detail::unit_of(odd) < p[n + 1]) {
        nodes.push_back(static_cast<std::int64_t>(n + 1));
      }
    }
    return {extent, nodes};
  }
};

/// 1 / p_c[n] for the nodes of a group that a submodel keeps, in its order: the factors for their
/// values in training. [FedDrop, Eq. 3]
///
/// Throws  error for a submodel of another model, or a kept node of probability 0 or so small that
///         1 / p is not finite.
inline std::vector<double> keep_scale(const keep_probabilities& keep, const submodel& kept,
                                      group_id group) {
  if (!(kept.parent() == keep.parent())) {
    detail::fail("subfed: keep_scale: the submodel is of another model than the probabilities");
  }
  const std::span<const double> p = keep[group];
  std::vector<double> out;
  for (const std::int64_t node : kept[group]) {
    const double own = p.empty() ? 1.0 : p[static_cast<std::size_t>(node)];
    if (own < 0x1p-1022) {
      detail::fail("subfed: keep_scale: node " + std::to_string(node) + " of group '" +
                       keep.parent()[group].name + "' is kept but has the keep probability " +
                       detail::text(own),
                   {.group = keep.parent()[group].name});
    }
    out.push_back(1 / own);
  }
  return out;
}

/// Standard deviation of the weights at the start: sqrt(2 p / N), N the inputs of a node, p the
/// keep probability of the dropout after the layer. [FedDrop, Theorem 1]
///
/// Throws  error unless p is in (0, 1] and inputs >= 1.
inline double initial_deviation(double p, std::int64_t inputs) {
  if (!detail::in_unit_interval(p) || inputs < 1) {
    detail::fail("subfed: initial_deviation: a keep probability of " + detail::text(p) + " with " +
                 std::to_string(inputs) + " inputs, expected one in (0, 1] and at least 1 input");
  }
  return std::sqrt(2 * p / static_cast<double>(inputs));
}

}  // namespace subfed::inline v0
