// SPDX-License-Identifier: MIT
/// Uniform random sets: Federated Dropout. [Rolex, Eq. 5; Cheng, Alg. 1]
#pragma once

#include <subfed/detail/memory_size.hpp>
#include <subfed/philox.hpp>
#include <subfed/scheme.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Which requests share a random set: the design axes of [Cheng, Sec. 3 and Tables 2-5].
class seed_policy {
 public:
  /// A new set for every client in every round (Federated Dropout; the default).
  static seed_policy per_client_and_round() { return {kind::client_and_round, 1}; }
  /// A set for every client, the same for the whole run.
  static seed_policy per_client() { return {kind::client, 1}; }
  /// Every client picks one of `size` shared sets, |S| in [Cheng], and keeps it for the whole run.
  /// [Cheng, Sec. 4.2]
  ///
  /// Throws  error when size < 1.
  static seed_policy pool(std::int64_t size) { return {kind::pool, checked("pool size", size)}; }
  /// The same sets, but every client picks one anew in every round.
  ///
  /// Throws  error when size < 1.
  static seed_policy pool_per_round(std::int64_t size) {
    return {kind::pool_per_round, checked("pool size", size)};
  }
  /// One set for all clients, changed every `rounds` rounds, E in [Cheng]. 1 gives synchronised
  /// dropout.
  ///
  /// Throws  error when rounds < 1.
  static seed_policy shared(std::int64_t rounds = 1) {
    return {kind::shared, checked("number of rounds", rounds)};
  }

  /// The random numbers that determine a request's set.
  random_stream stream(const draw_request& where) const {
    const std::uint64_t group = name_hash(where.group);
    switch (kind_) {
      case kind::client:
        return {where.seed, 0, where.client, group ^ name_hash("per client")};
      case kind::pool:
      case kind::pool_per_round: {
        // One pick for all groups: a submodel of the pool.
        const std::uint64_t round = kind_ == kind::pool ? 0 : where.round;
        random_stream pick(where.seed, round, where.client, "subfed seed_policy pool");
        return {where.seed, 0, pick.below(count_), group ^ name_hash("pool")};
      }
      case kind::shared:
        return {where.seed, where.round / count_, 0, group ^ name_hash("shared")};
      default:
        return {where.seed, where.round, where.client, group};
    }
  }

 private:
  enum class kind { client_and_round, client, pool, pool_per_round, shared };

  seed_policy(kind k, std::int64_t count) : kind_(k), count_(static_cast<std::uint64_t>(count)) {}

  static std::int64_t checked(const char* what, std::int64_t count) {
    if (count < 1) {
      detail::fail(std::string("subfed: seed_policy: the ") + what + " is " +
                   std::to_string(count) + ", expected at least 1");
    }
    return count;
  }

  kind kind_;
  std::uint64_t count_;
};

/// L distinct nodes of K, uniform over all subsets of that size, ascending. [Rolex, Eq. 5]
///
/// Node n has the 64-bit key number n of the request's random stream (addressed by seed, round, client
/// and the group's name); the L nodes with the smallest keys are kept, ties to the smaller node.
/// Hence a smaller set of the same client and round is a subset of a larger one.
///
/// Numerics  The same set on every platform and compiler; the streams are pinned by golden tests.
///           The deviation from uniform is below K^2 / 2^64.
/// Cost      O(K) keys; 16 bytes per node while it runs.
struct random_subset {
  seed_policy seeds = seed_policy::per_client_and_round();
  rounding round_to = rounding::floor;
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;

  index_set operator()(const draw_request& where) const {
    const std::int64_t kept = where.kept(round_to, minimum);
    if (kept == where.extent) return index_set::full(kept);
    const random_stream stream = seeds.stream(where);

    const std::size_t extent = detail::memory_size<std::uint64_t>(where.extent);
    std::vector<std::uint64_t> keys(extent);
    stream.first_words(keys);
    const auto [bound, at_bound] = largest_kept(keys, static_cast<std::size_t>(kept));
    std::vector<std::int64_t> nodes(static_cast<std::size_t>(kept) + 1);
    std::size_t count = 0;
    for (std::size_t n = 0, ties = at_bound; n < extent; ++n) {
      const bool tie = keys[n] == bound && ties > 0;
      nodes[count] = static_cast<std::int64_t>(n);  // overwritten unless it counts
      count += keys[n] < bound || tie;
      ties -= tie;
    }
    nodes.resize(count);
    return {where.extent, nodes};
  }

 private:
  struct limit {
    std::uint64_t key;
    std::size_t keys;  ///< of that value that are kept
  };
  /// The count-th smallest key. Keys are uniform, so few share its leading byte.
  static limit largest_kept(const std::vector<std::uint64_t>& keys, std::size_t count) {
    if (count == 0) return {0, 0};
    std::array<std::size_t, 256> with_byte{};
    for (const std::uint64_t key : keys) ++with_byte[static_cast<std::size_t>(key >> 56)];
    std::size_t before = 0;  // keys with a smaller leading byte
    std::size_t byte = 0;
    while (before + with_byte[byte] < count) before += with_byte[byte++];
    std::vector<std::uint64_t> close_keys;
    for (const std::uint64_t key : keys) {
      if (key >> 56 == byte) close_keys.push_back(key);
    }
    const auto last = close_keys.begin() + static_cast<std::ptrdiff_t>(count - before - 1);
    std::nth_element(close_keys.begin(), last, close_keys.end());
    const std::uint64_t bound = *last;
    const auto less =
        std::count_if(close_keys.begin(), last, [bound](auto key) { return key < bound; });
    return {bound, count - before - static_cast<std::size_t>(less)};
  }
};

}  // namespace subfed::inline v0
