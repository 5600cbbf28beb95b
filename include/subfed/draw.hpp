// SPDX-License-Identifier: MIT
/// From a model, a scheme and a client's place in the run to the client's submodel.
#pragma once

#include <subfed/schemes/site.hpp>
#include <subfed/submodel.hpp>

#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Asks the scheme for a set of every group that it may cut; groups declared cut::never are whole.
///
/// A pure function: the same arguments give the same submodel on every platform, so the server and
/// a client derive it alike and no index travels.
///
/// Throws  error when the scheme does, or gives a set of another extent; it names the group.
template <scheme Scheme>
submodel draw(const model& net, const Scheme& which, const draw_key& key) {
  std::vector<index_set> sets;
  sets.reserve(net.groups().size());
  for (const auto& group : net.groups()) {
    if (group.cut == cut::never) {
      sets.push_back(index_set::full(group.extent));
      continue;
    }
    index_set chosen =
        which(site{key.seed, key.round, key.client, group.name, group.extent, key.capacity});
    if (chosen.extent() != group.extent) {
      detail::fail("subfed: draw: the scheme gave group '" + group.name + "' a set of extent " +
                   std::to_string(chosen.extent()) + ", expected " + std::to_string(group.extent));
    }
    sets.push_back(std::move(chosen));
  }
  return {net, std::move(sets), key};
}

}  // namespace subfed::inline v0
