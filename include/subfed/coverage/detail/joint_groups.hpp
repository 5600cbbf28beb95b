// SPDX-License-Identifier: MIT
/// On which groups together the elements of a tensor depend.
#pragma once

#include <subfed/coverage/detail/list_less.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace subfed::inline v0::detail {

/// Groups, ascending (a group appears twice where it is bound twice) -> elements for each choice of
/// one node of each. An element is held when all its nodes are, so its count depends on the nodes
/// alone: a kernel or a repeated gate needs no count of its own.
using joint_groups = std::map<std::vector<std::size_t>, std::int64_t, list_less>;

/// Adds the elements of a tensor: each combination of a part of each dimension.
inline void add_joint_groups(const model::tensor_info& tensor, joint_groups& out) {
  joint_groups made{{{}, 1}};
  for (const dimension& d : tensor.dimensions) {
    joint_groups next;
    for (const auto& [groups, elements] : made) {
      for (const dimension::part& p : d.parts()) {
        std::vector<std::size_t> key = groups;
        std::int64_t times = p.repeat * p.block;
        if (p.group == dimension::no_group) {
          times *= p.whole;
        } else {
          key.insert(std::upper_bound(key.begin(), key.end(), p.group), p.group);
        }
        next[std::move(key)] += elements * times;
      }
    }
    made = std::move(next);
  }
  for (const auto& [groups, elements] : made) {
    if (elements != 0) out[groups] += elements;
  }
}

}  // namespace subfed::inline v0::detail
