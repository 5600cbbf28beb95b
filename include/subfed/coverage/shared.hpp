// SPDX-License-Identifier: MIT
/// What two clients hold in common.
#pragma once

#include <subfed/detail/node_ranges.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline void check_same_model(const std::string& caller, const submodel& a, const submodel& b) {
  if (a.parent() == b.parent()) return;
  fail("subfed: " + caller + ": the submodels are of different models");
}

}  // namespace detail

/// Number of nodes of a group that take part in both submodels.
///
/// Throws  error when they are of different models.
/// Cost    O(runs log runs).
inline std::int64_t shared_nodes(const submodel& a, const submodel& b, group_id group) {
  detail::check_same_model("shared_nodes", a, b);
  return detail::shared(detail::ranges_of(a.runs(group)), detail::ranges_of(b.runs(group)));
}

/// Number of parameters of all tensors that take part in both submodels; shared_parameters(a, a)
/// counts those of a. Tensors that stay with their client (role::local) are never shared.
///
/// Throws  error when they are of different models.
/// Cost    O(runs log runs + dimensions).
inline std::int64_t shared_parameters(const submodel& a, const submodel& b) {
  detail::check_same_model("shared_parameters", a, b);
  const model& net = a.parent();
  std::vector<std::int64_t> shared;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    shared.push_back(detail::shared(detail::ranges_of(a.runs(group_id(g))),
                                    detail::ranges_of(b.runs(group_id(g)))));
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
