// SPDX-License-Identifier: MIT
/// Sets of nodes without their order, as ascending runs.
#pragma once

#include <subfed/index_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// First nodes and ends of a set's runs, ascending; adjacent ones are joined.
using node_ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Cost  O(n log n) for n runs.
inline node_ranges ranges_of(std::span<const run> runs) {
  node_ranges out;
  out.reserve(runs.size());
  for (const run& r : runs) out.emplace_back(r.first, r.first + r.length);
  std::sort(out.begin(), out.end());
  std::size_t last = 0;
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i].first == out[last].second) {
      out[last].second = out[i].second;
    } else {
      out[++last] = out[i];
    }
  }
  if (!out.empty()) out.resize(last + 1);
  return out;
}

/// The nodes that both have.
inline std::int64_t shared(const node_ranges& a, const node_ranges& b) {
  std::int64_t out = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t begin = (std::max)(a[i].first, b[j].first);
    const std::int64_t end = (std::min)(a[i].second, b[j].second);
    if (end > begin) out += end - begin;
    ++(a[i].second < b[j].second ? i : j);
  }
  return out;
}

/// The runs in their order, without the nodes that are not in `nodes`.
///
/// Cost  O(n log n) for n runs and ranges.
inline std::vector<run> common_runs(std::span<const run> runs, const node_ranges& nodes) {
  std::vector<run> out;
  for (const run& r : runs) {
    const std::int64_t r_end = r.first + r.length;
    auto range =
        std::upper_bound(nodes.begin(), nodes.end(), r.first,
                         [](std::int64_t n, const auto& other) { return n < other.second; });
    for (; range != nodes.end() && range->first < r_end; ++range) {
      const std::int64_t begin = (std::max)(r.first, range->first);
      const std::int64_t end = (std::min)(r_end, range->second);
      append_run(out, run{r.position + (begin - r.first), begin, end - begin});
    }
  }
  return out;
}

}  // namespace subfed::inline v0::detail
