// SPDX-License-Identifier: MIT
/// What two clients hold in common.
#pragma once

#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// First nodes and ends of a set's stretches, ascending, those that touch joined.
using node_ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

inline node_ranges ranges_of(std::span<const run> runs) {
  node_ranges out;
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

inline void check_same_model(const submodel& a, const submodel& b) {
  if (!(a.parent() == b.parent())) fail("subfed: overlap: the submodels are of different models");
}

}  // namespace detail

/// Nodes of a group that both submodels have taking part.
///
/// Throws  error when they are of different models.
/// Cost    O(runs log runs).
inline std::int64_t shared_nodes(const submodel& a, const submodel& b, group_id group) {
  detail::check_same_model(a, b);
  return detail::shared(detail::ranges_of(a.runs(group)), detail::ranges_of(b.runs(group)));
}

/// Parameters of all tensors that both submodels have taking part; shared_parameters(a, a) counts
/// those of a. Tensors that stay with their client (role::local) are shared by nobody.
///
/// Throws  error when they are of different models.
/// Cost    O(runs log runs + dimensions).
inline std::int64_t shared_parameters(const submodel& a, const submodel& b) {
  detail::check_same_model(a, b);
  const model& net = a.parent();
  std::vector<std::int64_t> shared;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    shared.push_back(shared_nodes(a, b, group_id(g)));
  }
  std::int64_t out = 0;
  for (const auto& tensor : net.tensors()) {
    if (tensor.is_local()) continue;
    std::int64_t elements = 1;
    for (const dimension& d : tensor.dimensions) {
      std::int64_t along = 0;
      for (const dimension::part& p : d.parts()) {
        along += p.repeat * p.block * (p.group == dimension::no_group ? p.whole : shared[p.group]);
      }
      elements *= along;
    }
    out += elements;
  }
  return out;
}

}  // namespace subfed::inline v0
