// SPDX-License-Identifier: MIT
/// Groups that tie more than they have to: two independent ones described as one.
#pragma once

#include <subfed/model.hpp>
#include <subfed/proof/bindings.hpp>
#include <subfed/proof/description.hpp>
#include <subfed/proof/detail/advice.hpp>
#include <subfed/proof/detail/parts_table.hpp>
#include <subfed/proof/detail/probe.hpp>
#include <subfed/proof/forward.hpp>
#include <subfed/proof/permuted.hpp>
#include <subfed/proof/random_values.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensors.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Uses of a group that could be a group of their own.
struct coarse_tie {
  group_id group;
  std::vector<binding> apart;  ///< these can change their order without the others
};

/// A description that ties too much is right, and gives clients less choice than the network leaves.
/// prove_description cannot see it; this looks for layers in a row, in the model's order, whose nodes can
/// change places while those of the other layers of their group stay.
///
/// Pre     prove_description says that the description is right.
/// Throws  as prove_description.
/// Cost    Runs of the network: for a group that n layers use, up to n^2.
template <std::floating_point T, class Forward>
requires forward_function<std::remove_reference_t<Forward>, T> std::vector<coarse_tie>
find_coarse_ties(const model& net, Forward&& forward, const proof_options& options = {}) {
  using forward_type = std::remove_reference_t<Forward>;
  const tensors<T> values = random_values<T>(net, options.seed);
  detail::probe<T, forward_type> network("find_coarse_ties", net, values, forward);
  const double tolerance =
      options.tolerance > 0 ? options.tolerance : detail::default_tolerance<T>();
  const detail::parts_table described(net);
  std::vector<coarse_tie> out;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const group_id group(g);
    const auto& info = net.groups()[g];
    if (info.cut == cut::never || info.extent < 2) continue;
    const index_set nodes = shuffled(info.extent, info.name, options.seed);
    const auto keeps = [&](const std::vector<binding>& uses) {
      detail::parts_table table = described;
      table.unbind(group);
      for (const binding& use : uses) table[use] = described[use];
      return network.change(submodel::full(table.made()).with(group, nodes)) <= tolerance;
    };
    std::vector<detail::layer_side> sides =
        detail::layer_sides(net, described, [&](const dimension::part& p) { return p.group == g; });
    std::erase_if(sides, [&](const detail::layer_side& s) { return keeps(s.uses); });  // no effect
    std::size_t first = 0;
    while (first < sides.size()) {
      std::vector<binding> row;
      std::size_t next = first + 1;
      for (std::size_t last = first; last < sides.size(); ++last) {
        row.insert(row.end(), sides[last].uses.begin(), sides[last].uses.end());
        const bool all = first == 0 && last + 1 == sides.size();
        if (last == first || all || !keeps(row)) continue;
        out.push_back({group, row});
        next = last + 1;
        break;
      }
      first = next;
    }
  }
  return out;
}

}  // namespace subfed::inline v0
