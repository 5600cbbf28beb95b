// SPDX-License-Identifier: MIT
/// From a model, a scheme and a client's round and number to the client's submodel.
#pragma once

#include <subfed/scheme.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A group whose share is not the client's capacity: FjORD's width p per layer, a layer that stays
/// whole.
struct group_capacity {
  group_id group;
  subfed::capacity capacity;
};

/// Asks the scheme for a set of every group that it may cut; groups declared cut::never are whole.
/// Groups listed in `exceptions` have the capacity given there, the others key.capacity.
///
///   draw(net, rolling{}, {.round = 3, .capacity = 0.25}, {{embedding, 1.0}, {hidden, 0.5}});
///
/// A pure function: the same arguments give the same submodel on every platform, so the server and
/// a client derive the same one and no index travels.
///
/// Throws  error when the scheme does or returns a set of another extent, and when `exceptions` has a
///         group twice, or one that is never cut. The message names the group.
template <scheme Scheme>
submodel draw(const model& net, const Scheme& which, const draw_key& key,
              std::span<const group_capacity> exceptions = {}) {
  std::vector<std::optional<capacity>> own(net.groups().size());
  for (const group_capacity& e : exceptions) {
    const auto& group = net[e.group];
    if (group.cut == cut::never || own[e.group.number()]) {
      detail::fail("subfed: draw: a capacity is given for group '" + group.name + "', which " +
                   (group.cut == cut::never ? "is never cut" : "has one already"));
    }
    own[e.group.number()] = e.capacity;
  }
  std::vector<index_set> sets;
  sets.reserve(net.groups().size());
  for (const auto& group : net.groups()) {
    if (group.cut == cut::never) {
      sets.push_back(index_set::full(group.extent));
      continue;
    }
    index_set chosen = which(draw_request{key.seed, key.round, key.client, group.name, group.extent,
                                          own[sets.size()].value_or(key.capacity)});
    if (chosen.extent() != group.extent) {
      detail::fail("subfed: draw: the scheme gave group '" + group.name + "' a set of extent " +
                   std::to_string(chosen.extent()) + ", expected " + std::to_string(group.extent));
    }
    sets.push_back(std::move(chosen));
  }
  return {net, std::move(sets), key};
}
template <scheme Scheme>
submodel draw(const model& net, const Scheme& which, const draw_key& key,
              std::initializer_list<group_capacity> exceptions) {
  return draw(net, which, key,
              std::span<const group_capacity>(exceptions.begin(), exceptions.size()));
}

}  // namespace subfed::inline v0
