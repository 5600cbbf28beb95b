// SPDX-License-Identifier: MIT
/// What looks wrong in a description, where no network is at hand.
#pragma once

#include <subfed/describe.hpp>
#include <subfed/model.hpp>
#include <subfed/proof/bindings.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace subfed::inline v0 {

enum class doubt_kind {
  no_tensor,   ///< a group that no tensor uses
  one_tensor,  ///< a group that one tensor uses: what reads or writes its nodes is not described
  /// First dimensions of one matrix alone: outputs that a scheme would cut, or a reader left whole. Of
  /// several matrices they may be multiplied with each other, as queries and keys are.
  nobody_reads,
};

struct doubt {
  doubt_kind kind;
  group_id group;
  std::string text;  ///< one sentence, with the tensors

  friend bool operator==(const doubt&, const doubt&) = default;
};

/// Looks at the groups that a scheme may cut. An empty list does not say that the description is right:
/// prove_description does, with the network.
inline std::vector<doubt> find_doubts(const model& net) {
  std::vector<doubt> out;
  const std::vector<std::string> tied = detail::tied_texts(net);
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const auto& info = net.groups()[g];
    const group_id group(g);
    const std::string start =
        "group '" + info.name + "' of " + std::to_string(info.extent) + " nodes ";
    const std::vector<binding> uses = bindings_of(net, group);
    if (uses.empty()) {
      out.push_back({doubt_kind::no_tensor, group, start + "is of no tensor"});
      continue;
    }
    if (info.cut == cut::never) continue;
    bool one = true;
    bool read = false;
    int matrices = 0;
    for (const binding& use : uses) {
      matrices += net[use.tensor].dimensions.size() > 1 ? 1 : 0;
      one = one && use.tensor == uses[0].tensor;
      read = read || use.dimension > 0;
    }
    if (one) {
      const bool on_both_sides = uses.size() > 1;  // a matrix from the nodes to themselves
      if (on_both_sides && read) continue;
      out.push_back({doubt_kind::one_tensor, group,
                     start + "is of one tensor only, " + tied[g] +
                         "; what else writes or reads its nodes is to be cut with it"});
    } else if (!read && matrices < 2) {
      out.push_back(
          {doubt_kind::nobody_reads, group,
           start + "is written by " + tied[g] +
               " and read by no tensor; outputs are cut::never, and a reader is bound to it"});
    }
  }
  return out;
}

}  // namespace subfed::inline v0
