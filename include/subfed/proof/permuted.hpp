// SPDX-License-Identifier: MIT
/// Submodels that hold everything, with the nodes of groups in another order: a network that is
/// described rightly computes the same with them.
#pragma once

#include <subfed/detail/memory_size.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/philox.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// nodes[p] = nodes[0] + p modulo their number.
inline bool is_rotation(const std::vector<std::int64_t>& nodes) {
  const auto extent = static_cast<std::int64_t>(nodes.size());
  for (std::size_t p = 1; p < nodes.size(); ++p) {
    if (nodes[p] != (nodes[p - 1] + 1) % extent) return false;
  }
  return true;
}

}  // namespace detail

/// All nodes of a group in a random order in which none is in its old place; from four nodes on it is no
/// rotation either, since a rotation is a symmetry of some wrong descriptions.
///
/// Numerics  A pure function of the seed and the group's name.
/// Cost      O(extent).
inline index_set shuffled(std::int64_t extent, std::string_view group, std::uint64_t seed) {
  random_stream stream(seed, 0, 0, name_hash(group) ^ name_hash("subfed shuffled"));
  std::vector<std::int64_t> nodes(detail::memory_size<std::int64_t>(extent));
  do {
    std::iota(nodes.begin(), nodes.end(), std::int64_t{0});
    // Sattolo's way: one cycle through all nodes, every such cycle equally likely.
    for (std::size_t i = nodes.size(); i-- > 1;) {
      std::swap(nodes[i], nodes[static_cast<std::size_t>(stream.below(i))]);
    }
  } while (extent > 3 && detail::is_rotation(nodes));
  return {extent, nodes};
}

/// All of the model, with the nodes of every group shuffled; groups that are never cut keep their
/// order, as the network's inputs and outputs must.
///
/// A group says by itself which orders are legal: heads that are cut inside (group.repeat(heads)) have
/// their nodes shuffled alike in each head, whole heads (group.block(width)) change places, rotary pairs
/// (pair.repeat(2)) move as pairs, and so do the channels or the groups of a grouped convolution.
///
///   slice<float>(globals, permuted(net, 1), shuffled);  // forward(shuffled) is forward(globals)
inline submodel permuted(const model& net, std::uint64_t seed) {
  std::vector<index_set> sets;
  sets.reserve(net.groups().size());
  for (const auto& group : net.groups()) {
    sets.push_back(group.cut == cut::never ? index_set::full(group.extent)
                                           : shuffled(group.extent, group.name, seed));
  }
  return {net, std::move(sets)};
}

/// All of the model, with the nodes of one group shuffled.
inline submodel permuted(const model& net, group_id group, std::uint64_t seed) {
  const auto& info = net[group];
  return submodel::full(net).with(group, shuffled(info.extent, info.name, seed));
}

}  // namespace subfed::inline v0
