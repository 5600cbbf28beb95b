// SPDX-License-Identifier: MIT
/// The model as a client sees it, and smaller submodels within what the client holds.
#pragma once

#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The model that consists of what the client holds: the same groups and tensors by name and role,
/// each group with as many nodes as the submodel holds.
inline model local_model(const submodel& held) {
  const model& net = held.parent();
  model out;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    out.group(net.groups()[g].name, held.extent(group_id(g)), net.groups()[g].cut);
  }
  for (const auto& tensor : net.tensors()) {
    out.tensor(tensor.name, tensor.dimensions, tensor.role);
  }
  return out;
}

/// A smaller submodel as part of a larger one: node n of the model is position p in the result
/// where held[group][p] = n. With it a client slices its own tensors in every step, as the server
/// slices the model: FjORD's width of a step, the channels that FedDrop keeps in a mini-batch.
///
///   const auto step = within(draw(net, widths, key), held);   // a submodel of local_model(held)
///   slice<float>(own, step, smaller);                         // .. train ..
///   scatter<float>(smaller, step, own);
///
/// If the smaller submodel is restricted, the same nodes take part in the result.
///
/// Throws  error when the two are of different models, or for a node that the larger one lacks; it
///         names the group and the node.
/// Cost    O(n log n) for n nodes.
inline submodel within(const submodel& smaller, const submodel& held) {
  const model& net = held.parent();
  if (!(smaller.parent() == net)) {
    detail::fail("subfed: within: the two submodels are of different models");
  }
  std::vector<index_set> sets;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    std::vector<std::pair<std::int64_t, std::int64_t>> position;  // by node
    std::int64_t at = 0;
    for (const std::int64_t node : held[group_id(g)]) position.emplace_back(node, at++);
    std::sort(position.begin(), position.end());
    std::vector<std::int64_t> places;
    for (const std::int64_t node : smaller[group_id(g)]) {
      const auto found =
          std::lower_bound(position.begin(), position.end(), std::pair(node, std::int64_t{0}));
      if (found == position.end() || found->first != node) {
        detail::fail("subfed: within: node " + std::to_string(node) + " of group '" +
                     net.groups()[g].name + "' is not held by the larger submodel");
      }
      places.push_back(found->second);
    }
    sets.emplace_back(static_cast<std::int64_t>(position.size()), places);
  }
  submodel out(local_model(held), std::move(sets), smaller.origin());
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const group_id group(g);
    std::int64_t taking_part = 0;
    std::vector<std::int64_t> places;
    for (const run& r : smaller.runs(group)) {
      taking_part += r.length;
      for (std::int64_t i = 0; i < r.length; ++i) places.push_back(out[group][r.position + i]);
    }
    if (taking_part == smaller.extent(group)) continue;
    out = out.restricted(group, index_set(held.extent(group), places));
  }
  return out;
}

}  // namespace subfed::inline v0
