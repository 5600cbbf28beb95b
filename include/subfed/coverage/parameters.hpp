// SPDX-License-Identifier: MIT
/// How evenly parameters are trained: a weight is trained when one client holds the nodes at both
/// its ends.
#pragma once

#include <subfed/coverage/detail/holding_log.hpp>
#include <subfed/coverage/detail/joint_groups.hpp>
#include <subfed/coverage/detail/parameter_counts.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Counts how often each parameter is held, exactly and without a tensor of counts: it keeps the
/// distinct submodels and who held which, and derives counts from the runs of their sets on demand.
/// record() every client's submodel of a round, then end_round(). Queries cover the rounds that
/// have ended.
///
/// Of a restricted submodel (see submodel::restricted) only the nodes that take part are counted.
/// Answers about all tensors leave out those that stay with their client (role::local), because
/// nobody trains the server's; a query about such a tensor alone counts it like any other. Use one
/// object per class of clients. Shards can be joined without loss: append() adds the rounds that
/// follow, merge() the clients that other servers recorded in the same rounds. coverage/text.hpp
/// writes and reads it.
///
/// Cost  record: O(runs log(distinct submodels)). 4 bytes per client and round, and 16 bytes per
///       run of each distinct set: bounded for static and rolling sets, growing with the rounds for
///       random ones.
class parameter_coverage {
 public:
  explicit parameter_coverage(model net) : model_(std::move(net)), log_(model_.groups().size()) {}

  /// The model whose parameters are counted.
  const model& parent() const noexcept { return model_; }

  /// Counts a client of the current round.
  ///
  /// Throws  error when the submodel is of another model.
  void record(const submodel& sub) {
    if (!(sub.parent() == model_)) {
      detail::fail("subfed: parameter_coverage: the submodel is of another model");
    }
    std::vector<detail::node_ranges> sets;
    for (std::size_t g = 0; g < model_.groups().size(); ++g) {
      sets.push_back(detail::ranges_of(sub.runs(group_id(g))));
    }
    log_.record(std::move(sets));
  }
  void end_round() { log_.end_round(); }

  /// The rounds of `later` follow those recorded here.
  ///
  /// Throws  error for another model, or while a round is open here.
  void append(const parameter_coverage& later) {
    check_like(later);
    if (log_.open() != log_.entries().size()) {
      detail::fail(
          "subfed: parameter_coverage: clients of a round that has not ended are recorded; "
          "end it before appending");
    }
    if (&later == this) {
      const detail::holding_log same = log_;
      log_.append(same);
    } else {
      log_.append(later.log_);
    }
  }

  /// Adds the clients of the shard's rounds to the same rounds here.
  ///
  /// Throws  error for another model or another number of rounds.
  void merge(const parameter_coverage& shard) {
    check_like(shard);
    if (shard.rounds() != rounds()) {
      detail::fail("subfed: parameter_coverage: the shard to merge has " +
                   std::to_string(shard.rounds()) + " rounds, expected " +
                   std::to_string(rounds()));
    }
    detail::holding_log joined(model_.groups().size());
    for (std::size_t r = 0; r <= log_.rounds(); ++r) {
      joined.record_round(log_, r);
      joined.record_round(shard.log_, r);
      if (r < log_.rounds()) joined.end_round();
    }
    log_ = std::move(joined);
  }

  /// Rounds that have ended.
  std::int64_t rounds() const noexcept { return static_cast<std::int64_t>(log_.rounds()); }
  /// Number of different submodels that clients have held.
  std::int64_t distinct_submodels() const noexcept {
    return static_cast<std::int64_t>(log_.submodels().size());
  }

  /// How often one parameter was held.
  ///
  /// Throws  error unless the index is inside the tensor.
  std::int64_t count(tensor_id tensor, std::span<const std::int64_t> index) const {
    const auto nodes = nodes_of(tensor, index);
    std::vector<bool> holds;
    for (std::size_t s = 0; s < log_.submodels().size(); ++s) {
      const auto& sets = log_.submodels()[s];
      holds.push_back(std::all_of(nodes.begin(), nodes.end(), [&](const auto& at) {
        const auto& ranges = log_.sets(at.first)[sets[at.first]];
        return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
          return at.second >= range.first && at.second < range.second;
        });
      }));
    }
    std::int64_t out = 0;
    for (const auto e : log_.ended()) out += holds[e];
    return out;
  }

  /// Parameters by how often they were held: of a tensor, or of all tensors.
  ///
  /// Cost  For each pair of groups that tensors bind, distinct submodels times (nodes of one group)
  ///       times (runs of the other), and the different pairs of nodes.
  count_histogram histogram(tensor_id tensor) const {
    return counts(tensor).histogram(log_.ended());
  }
  count_histogram histogram() const { return counts().histogram(log_.ended()); }

  /// Evenness over the parameters of a tensor, or of all tensors.
  coverage_summary summary(tensor_id tensor) const {
    return {evenness_of(histogram(tensor)), first_cover(tensor, 1)};
  }
  coverage_summary summary() const { return {evenness_of(histogram()), first_cover(1)}; }

  /// Rounds after which every parameter had been held m times; empty while some have not.
  ///
  /// Throws  error when m < 1.
  /// Cost    For each pair of groups, (different nodes of one group) times (clients until then).
  std::optional<std::int64_t> first_cover(tensor_id tensor, std::int64_t m) const {
    check_times(m);
    return counts(tensor).first_cover(m);
  }
  std::optional<std::int64_t> first_cover(std::int64_t m) const {
    check_times(m);
    return counts().first_cover(m);
  }

  /// Rounds since parameters of a tensor, or of all tensors, were last held -> parameters: 0 in the
  /// last round, -1 never.
  ///
  /// Cost  For each pair of groups, (different nodes of one group) times (clients since).
  count_histogram rounds_since(tensor_id tensor) const { return counts(tensor).rounds_since(); }
  count_histogram rounds_since() const { return counts().rounds_since(); }

  /// How many clients of a round hold a parameter, over all rounds and the parameters of a tensor,
  /// or of all tensors.
  ///
  /// Cost  As histogram(), for each different round and for each pair of different consecutive
  ///       rounds.
  holder_summary holders(tensor_id tensor) const { return counts(tensor).holders(); }
  holder_summary holders() const { return counts().holders(); }

 private:
  friend struct detail::coverage_access;

  void check_like(const parameter_coverage& other) const {
    if (other.model_ == model_) return;
    detail::fail("subfed: parameter_coverage: the coverage to join is of another model");
  }

  static void check_times(std::int64_t m) {
    if (m >= 1) return;
    detail::fail("subfed: parameter_coverage: the first cover " + std::to_string(m) +
                 " times is asked for, expected at least 1");
  }

  detail::parameter_counts counts(tensor_id tensor) const {
    detail::joint_groups joints;
    detail::add_joint_groups(model_[tensor], joints);
    return {model_, log_, std::move(joints)};
  }
  detail::parameter_counts counts() const {
    detail::joint_groups joints;
    for (const auto& tensor : model_.tensors()) {
      if (!tensor.is_local()) detail::add_joint_groups(tensor, joints);
    }
    return {model_, log_, std::move(joints)};
  }

  /// The nodes on which one element depends: pairs of a group and a node of it.
  std::vector<std::pair<std::size_t, std::int64_t>> nodes_of(
      tensor_id tensor, std::span<const std::int64_t> index) const {
    const auto& info = model_[tensor];
    bool inside = index.size() == info.extents.size();
    for (std::size_t r = 0; inside && r < index.size(); ++r) {
      inside = index[r] >= 0 && index[r] < info.extents[r];
    }
    if (!inside) {
      detail::fail("subfed: parameter_coverage: index " + detail::shape_text(index) +
                   " is asked of tensor '" + info.name + "' of shape " +
                   detail::shape_text(info.extents));
    }
    std::vector<std::pair<std::size_t, std::int64_t>> out;
    for (std::size_t r = 0; r < index.size(); ++r) {
      std::int64_t at = index[r];
      for (const dimension::part& p : info.dimensions[r].parts()) {
        const bool bound = p.group != dimension::no_group;
        const std::int64_t nodes = bound ? model_.groups()[p.group].extent : p.whole;
        const std::int64_t extent = p.repeat * nodes * p.block;
        if (at < extent) {
          if (bound) out.emplace_back(p.group, at / p.block % nodes);
          break;
        }
        at -= extent;
      }
    }
    return out;
  }

  model model_;
  detail::holding_log log_;
};

}  // namespace subfed::inline v0
