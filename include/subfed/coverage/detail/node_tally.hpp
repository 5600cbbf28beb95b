// SPDX-License-Identifier: MIT
/// What coverage keeps of the nodes of one group.
#pragma once

#include <subfed/detail/memory_size.hpp>
#include <subfed/index_set.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Counts of one group's nodes. A client changes two numbers per run of its set; the end of a round
/// sums them along the nodes.
struct node_tally {
  static constexpr std::int64_t never = -1;

  node_tally(std::int64_t extent, std::int64_t most_times)
      : nodes(memory_size<std::int64_t>(extent)),
        times(memory_size<char>(most_times)),
        change(nodes + 1, 0),
        counts(nodes, 0),
        last(nodes, never),
        held(memory_size<std::int64_t>(std::array{extent, most_times}), never),
        unfinished(extent),
        holders(1, 0) {}

  std::size_t nodes;
  std::size_t times;
  std::vector<std::int64_t> change;  ///< holders of node n minus those of n - 1, in the open round
  std::vector<std::int64_t> counts;  ///< times held
  std::vector<std::int64_t> last;    ///< round in which it was last held
  std::vector<std::int64_t>
      held;                 ///< [(m - 1) nodes + n]: round in which it was held the m-th time
  std::int64_t unfinished;  ///< nodes held less than `times` times
  std::vector<std::int64_t>
      holders;                   ///< [h]: pairs of a node and a round in which h clients held it
  std::int64_t consecutive = 0;  ///< pairs in which the previous round held the node too

  void record(std::span<const run> runs) {
    for (const run& r : runs) {
      ++change[static_cast<std::size_t>(r.first)];
      --change[static_cast<std::size_t>(r.first + r.length)];
    }
  }

  /// Takes the memory that the end of the open round needs; it may run out, and nothing has changed then.
  void prepare_end() {
    std::int64_t here = 0;
    std::int64_t most = 0;
    for (std::size_t n = 0; n < nodes; ++n) most = (std::max)(most, here += change[n]);
    const auto needed = static_cast<std::size_t>(most) + 1;
    if (needed > holders.capacity()) holders.reserve((std::max)(needed, 2 * holders.capacity()));
  }

  /// Pre  prepare_end()
  void end_round(std::int64_t round) noexcept {
    std::int64_t here = 0;
    for (std::size_t n = 0; n < nodes;) {
      here += change[n];
      change[n] = 0;
      std::size_t end = n + 1;
      while (end < nodes && change[end] == 0) ++end;
      hold(n, end, here, round);
      n = end;
    }
    change[nodes] = 0;
  }

  /// The rounds of `later` follow the `rounds` of this tally.
  void append(const node_tally& later, std::int64_t rounds) {
    holders.resize((std::max)(holders.size(), later.holders.size()), 0);
    for (std::size_t h = 0; h < later.holders.size(); ++h) holders[h] += later.holders[h];
    consecutive += later.consecutive;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (later.counts[n] == 0) continue;
      consecutive += rounds > 0 && last[n] == rounds - 1 && later.held[n] == 0;
      const auto had = static_cast<std::size_t>((std::min)(counts[n], limit()));
      const auto more = static_cast<std::size_t>((std::min)(later.counts[n], limit()));
      for (std::size_t m = had; m < (std::min)(had + more, times); ++m) {
        held[m * nodes + n] = rounds + later.held[(m - had) * nodes + n];
      }
      unfinished -= counts[n] < limit() && counts[n] + later.counts[n] >= limit();
      counts[n] += later.counts[n];
      last[n] = rounds + later.last[n];
    }
    for (std::size_t n = 0; n <= nodes; ++n) change[n] += later.change[n];
  }

  /// Rounds after which every node had been held m times.
  std::optional<std::int64_t> cover(std::int64_t m) const {
    std::int64_t out = never;
    const std::size_t offset = static_cast<std::size_t>(m - 1) * nodes;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (held[offset + n] == never) return std::nullopt;
      out = (std::max)(out, held[offset + n]);
    }
    return out + 1;
  }

  /// Pairs of a node and a round, from the second round on, in which the node was held.
  std::int64_t later_holdings() const {
    std::int64_t out = 0;
    for (std::size_t h = 1; h < holders.size(); ++h) out += holders[h];
    for (std::size_t n = 0; n < nodes; ++n) out -= held[n] == 0;
    return out;
  }

 private:
  std::int64_t limit() const { return static_cast<std::int64_t>(times); }

  void hold(std::size_t begin, std::size_t end, std::int64_t here, std::int64_t round) {
    const auto h = static_cast<std::size_t>(here);
    if (h >= holders.size()) holders.resize(h + 1, 0);
    holders[h] += static_cast<std::int64_t>(end - begin);
    if (here == 0) return;
    if (round > 0) {
      for (std::size_t n = begin; n < end; ++n) consecutive += last[n] == round - 1;
    }
    if (unfinished > 0) {
      for (std::size_t n = begin; n < end; ++n) {
        const std::int64_t to = (std::min)(counts[n] + here, limit());
        for (std::int64_t m = counts[n]; m < to; ++m) {
          held[static_cast<std::size_t>(m) * nodes + n] = round;
        }
        unfinished -= counts[n] < limit() && to == limit();
      }
    }
    for (std::size_t n = begin; n < end; ++n) counts[n] += here;
    for (std::size_t n = begin; n < end; ++n) last[n] = round;
  }
};

}  // namespace subfed::inline v0::detail
