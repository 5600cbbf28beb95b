// SPDX-License-Identifier: MIT
/// Names, shapes and nodes of what layer helpers describe.
#pragma once

#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace support {

/// "fc.weight (10, 64)" for each tensor of a model.
inline std::vector<std::string> layout_of(const subfed::model& net) {
  std::vector<std::string> out;
  for (const auto& t : net.tensors()) {
    out.push_back(t.name + " " + subfed::detail::shape_text(t.extents));
  }
  return out;
}

/// The global elements along one dimension of a tensor that a client holds, in its order.
inline std::vector<std::int64_t> held(const subfed::submodel& part, subfed::tensor_id tensor,
                                      int dimension) {
  const auto chosen = part[tensor].dimension(dimension);
  std::vector<std::int64_t> out(static_cast<std::size_t>(chosen.local_extent), -1);
  for (const subfed::run& r : chosen.runs) {
    for (std::int64_t i = 0; i < r.length; ++i) {
      out[static_cast<std::size_t>(r.position + i)] = r.first + i;
    }
  }
  return out;
}

using node_list = std::vector<std::int64_t>;
using tensor_lines = std::vector<std::string>;

}  // namespace support
