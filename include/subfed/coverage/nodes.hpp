// SPDX-License-Identifier: MIT
/// How evenly the nodes of a model are trained: counted from the submodels that clients held.
#pragma once

#include <subfed/coverage/detail/node_tally.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/detail/arithmetic.hpp>
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

class coverage_by_class;
namespace detail {
struct coverage_access;
}

/// Evenness of the nodes of one group, or of all groups that schemes cut.
struct coverage_summary : evenness {
  /// Rounds after which every node had been held; empty as long as some have not.
  std::optional<std::int64_t> first_full_cover = {};
};

/// How many clients of a round hold a node, over all rounds and the nodes of a group.
struct holder_summary {
  double mean = 0;
  std::int64_t least = 0;  ///< smallest positive number; 0 when nothing was held
  std::int64_t most = 0;
  /// Of the nodes held in a round, the share that was also held in the previous round; 0 for a
  /// single round.
  double held_again = 0;
  /// Of all nodes, the share that two clients of the same round both hold: mean over all such
  /// pairs.
  double shared_by_two = 0;
};

/// Counts how often each node of each group is held. record() every client's submodel of a round,
/// then end_round().
///
/// Of a restricted submodel (see submodel::restricted) only the nodes that take part are counted.
/// Shards can be joined without loss: append() adds the rounds that follow, merge() the clients
/// that another server recorded in the same round. coverage/text.hpp writes and reads it.
///
/// Up to 2^31 clients in a round; rounds, and clients of all rounds, up to
/// 2^62 / (nodes of the largest group), pairs of clients up to 2^62: so that all sums fit in 64
/// bits. More are refused.
///
/// Cost  record: O(runs). end_round: O(nodes). 24 + 8 `times` bytes per node.
class coverage {
 public:
  /// First covers are kept for 1 .. `times` times.
  ///
  /// Throws  error when times < 1, or when a group would need more than 2^59 numbers.
  explicit coverage(model net, std::int64_t times = 1) : model_(std::move(net)), times_(times) {
    if (times < 1) {
      detail::fail("subfed: coverage: first covers are asked for up to " + std::to_string(times) +
                   " times, expected at least 1");
    }
    std::int64_t largest = 1;
    for (const auto& group : model_.groups()) {
      constexpr std::int64_t most_numbers = std::int64_t{1} << 59;
      std::int64_t numbers = times;
      if (!detail::multiply(numbers, group.extent) || numbers > most_numbers ||
          group.extent > most_numbers) {
        detail::fail("subfed: coverage: first covers of " + std::to_string(group.extent) +
                         " nodes of group '" + group.name + "' up to " + std::to_string(times) +
                         " times are over 2^59 numbers",
                     {.group = group.name});
      }
      largest = (std::max)(largest, group.extent);
    }
    most_ = most_pairs / largest;
    for (const auto& group : model_.groups()) groups_.emplace_back(group.extent, times);
  }

  /// The model whose nodes are counted.
  const model& parent() const noexcept { return model_; }

  /// Counts a client of the current round.
  ///
  /// Throws  error when the submodel is of another model, or for too many clients.
  void record(const submodel& sub) {
    if (!(sub.parent() == model_)) {
      detail::fail("subfed: coverage: the submodel is of another model");
    }
    check_room(1, 0, 0, 0);
    for (std::size_t g = 0; g < groups_.size(); ++g) groups_[g].record(sub.runs(group_id(g)));
    ++open_clients_;
  }

  /// Throws  error for too many rounds or pairs of clients.
  void end_round() {
    prepare_end();
    for (detail::node_tally& group : groups_) group.end_round(rounds_);
    clients_ += open_clients_;
    client_pairs_ += open_pairs(open_clients_);
    open_clients_ = 0;
    ++rounds_;
  }

  /// The rounds of `later` follow those recorded here, as if one object had recorded all.
  ///
  /// Throws  error for another model or other `times`, while a round is open here, or for too many
  ///         rounds or clients.
  void append(const coverage& later) {
    check_like(later);
    if (open_clients_ != 0) {
      detail::fail("subfed: coverage: " + std::to_string(open_clients_) +
                   " clients of a round that has not ended are recorded; end it before appending");
    }
    check_room(later.open_clients_, later.clients_, later.rounds_, later.client_pairs_);
    std::vector<detail::node_tally> joined = groups_;  // later may be *this, and memory run out
    for (std::size_t g = 0; g < groups_.size(); ++g) joined[g].append(later.groups_[g], rounds_);
    groups_ = std::move(joined);
    clients_ += later.clients_;
    client_pairs_ += later.client_pairs_;
    open_clients_ = later.open_clients_;
    rounds_ += later.rounds_;
  }

  /// Adds the clients that a shard recorded in the current round.
  ///
  /// Throws  error for another model or other `times`, when a round of the shard has ended, or for too
  ///         many clients.
  void merge(const coverage& shard) {
    check_like(shard);
    if (shard.rounds_ != 0) {
      detail::fail("subfed: coverage: the shard to merge has ended " +
                   std::to_string(shard.rounds_) + " rounds, expected none");
    }
    check_room(shard.open_clients_, 0, 0, 0);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t n = 0; n < groups_[g].change.size(); ++n) {
        groups_[g].change[n] += shard.groups_[g].change[n];
      }
    }
    open_clients_ += shard.open_clients_;
  }

  /// Rounds that have ended.
  std::int64_t rounds() const noexcept { return rounds_; }
  /// Clients recorded in them.
  std::int64_t clients() const noexcept { return clients_; }
  /// First covers are kept up to this many times.
  std::int64_t times() const noexcept { return times_; }

  /// How often each node was held in the rounds that have ended.
  std::span<const std::int64_t> counts(group_id group) const { return at(group).counts; }

  /// Rounds since each node was last held: 0 when it was held in the last ended round, -1 when it
  /// never was.
  std::vector<std::int64_t> rounds_since(group_id group) const {
    std::vector<std::int64_t> out;
    for (const std::int64_t last : at(group).last) {
      out.push_back(last == detail::node_tally::never ? -1 : rounds_ - 1 - last);
    }
    return out;
  }

  coverage_summary summary(group_id group) const {
    return {evenness_of(at(group).counts), first_cover(group, 1)};
  }
  /// Over the nodes of all groups that schemes cut (cut::by_scheme).
  coverage_summary summary() const {
    std::vector<std::int64_t> all;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (model_.groups()[g].cut == cut::never) continue;
      all.insert(all.end(), groups_[g].counts.begin(), groups_[g].counts.end());
    }
    return {evenness_of(all), first_cover(1)};
  }

  /// Rounds after which every node of the group had been held m times; empty while some have not.
  ///
  /// Throws  error unless 1 <= m <= times().
  std::optional<std::int64_t> first_cover(group_id group, std::int64_t m) const {
    check_times(m);
    return at(group).cover(m);
  }
  /// Over all groups that schemes cut.
  std::optional<std::int64_t> first_cover(std::int64_t m) const {
    check_times(m);
    std::int64_t latest = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (model_.groups()[g].cut == cut::never) continue;
      const auto own = groups_[g].cover(m);
      if (!own) return std::nullopt;
      latest = (std::max)(latest, *own);
    }
    return latest;
  }
  /// Whether every node of the groups that schemes cut has been held times() times.
  ///
  /// Cost  O(groups).
  bool complete() const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (model_.groups()[g].cut != cut::never && groups_[g].unfinished != 0) return false;
    }
    return true;
  }

  /// Entry h: pairs of a node and a round in which h clients held the node.
  std::span<const std::int64_t> holder_counts(group_id group) const { return at(group).holders; }
  holder_summary holders(group_id group) const {
    const auto& tally = at(group);
    holder_summary out;
    double pairs = 0;  // of a node and a round
    double total = 0;
    double shared = 0;
    for (std::size_t h = 0; h < tally.holders.size(); ++h) {
      const auto number = static_cast<double>(tally.holders[h]);
      pairs += number;
      total += detail::rounded_product(number, static_cast<double>(h));
      shared += detail::rounded_product(number * static_cast<double>(h),
                                        (static_cast<double>(h) - 1) / 2);
      if (tally.holders[h] == 0 || h == 0) continue;
      if (out.least == 0) out.least = static_cast<std::int64_t>(h);
      out.most = static_cast<std::int64_t>(h);
    }
    if (pairs == 0) return out;
    out.mean = total / pairs;
    const std::int64_t later = tally.later_holdings();
    if (later > 0) {
      out.held_again = static_cast<double>(tally.consecutive) / static_cast<double>(later);
    }
    if (client_pairs_ > 0) {
      out.shared_by_two =
          shared / (static_cast<double>(client_pairs_) * static_cast<double>(tally.nodes));
    }
    return out;
  }

 private:
  friend struct detail::coverage_access;
  friend class coverage_by_class;

  const detail::node_tally& at(group_id group) const {
    static_cast<void>(model_[group]);  // refuses a foreign group
    return groups_[group.number()];
  }
  static constexpr std::int64_t most_pairs = std::int64_t{1} << 62;
  static constexpr std::int64_t most_open = std::int64_t{1} << 31;

  static std::int64_t open_pairs(std::int64_t clients) { return clients * (clients - 1) / 2; }

  /// What may fail of end_round(), which does not fail after it.
  void prepare_end() {
    check_room(0, 0, 1, 0);
    for (detail::node_tally& group : groups_) group.prepare_end();
  }

  /// Throws unless there is room for more clients of the current round, and for more ended rounds
  /// with their clients and pairs.
  void check_room(std::int64_t open, std::int64_t clients, std::int64_t rounds,
                  std::int64_t pairs) const {
    const auto refuse = [](const char* what) {
      detail::fail(std::string("subfed: coverage: ") + what);
    };
    // Each summand is at most 2^62, and there are no more than two of that size.
    if (open_clients_ + open > most_open) refuse("more than 2^31 clients take part in a round");
    if (clients_ > most_ - clients || clients_ + clients > most_ - open_clients_ - open) {
      refuse("the clients of all rounds are over 2^62 / (nodes of the largest group)");
    }
    if (rounds_ > most_ - rounds) refuse("the rounds are over 2^62 / (nodes of the largest group)");
    if (client_pairs_ > most_pairs - pairs - open_pairs(open_clients_ + open)) {
      refuse("the pairs of clients of one round are over 2^62");
    }
  }
  void check_times(std::int64_t m) const {
    if (m >= 1 && m <= times_) return;
    detail::fail("subfed: coverage: the first cover " + std::to_string(m) +
                 " times is asked for, but covers are kept for 1 to " + std::to_string(times_) +
                 " times");
  }
  void check_like(const coverage& other) const {
    if (!(other.model_ == model_)) {
      detail::fail("subfed: coverage: the coverage to join is of another model");
    }
    if (other.times_ != times_) {
      detail::fail("subfed: coverage: the coverage to join keeps first covers up to " +
                   std::to_string(other.times_) + " times, expected " + std::to_string(times_));
    }
  }

  model model_;
  std::int64_t times_;
  std::int64_t most_ = 0;  ///< rounds, and clients
  std::vector<detail::node_tally> groups_;
  std::int64_t open_clients_ = 0;
  std::int64_t clients_ = 0;
  std::int64_t client_pairs_ = 0;
  std::int64_t rounds_ = 0;
};

}  // namespace subfed::inline v0
