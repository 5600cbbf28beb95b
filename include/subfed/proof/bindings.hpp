// SPDX-License-Identifier: MIT
/// Where a model uses its groups.
#pragma once

#include <subfed/detail/dimension_text.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// One use of a group: part number `part` of a dimension of a tensor.
struct binding {
  tensor_id tensor;
  std::size_t dimension;
  std::size_t part;

  friend bool operator==(const binding&, const binding&) = default;
};

/// All uses of a group, in the order of the model's tensors.
inline std::vector<binding> bindings_of(const model& net, group_id group) {
  static_cast<void>(net[group]);
  std::vector<binding> out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& dimensions = net.tensors()[t].dimensions;
    for (std::size_t r = 0; r < dimensions.size(); ++r) {
      for (std::size_t p = 0; p < dimensions[r].parts().size(); ++p) {
        if (dimensions[r].parts()[p].group == group.number()) out.push_back({tensor_id(t), r, p});
      }
    }
  }
  return out;
}

/// "dimension 1 of fc.weight (hidden x 16)".
inline std::string binding_text(const model& net, const binding& where) {
  const auto& info = net[where.tensor];
  return "dimension " + std::to_string(where.dimension) + " of " + info.name + " (" +
         detail::dimension_text(net, info.dimensions[where.dimension]) + ")";
}

}  // namespace subfed::inline v0
