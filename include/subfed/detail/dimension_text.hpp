// SPDX-License-Identifier: MIT
/// Dimensions in words, for messages and for describe.
#pragma once

#include <subfed/model.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace subfed::inline v0::detail {

/// "hidden"; "4 x hidden" when it is repeated, "hidden x 49" when each node is a block; "64" when
/// it is whole; "[a | b]" for a concatenation.
inline std::string dimension_text(const model& net, const dimension& d) {
  std::string out;
  for (const dimension::part& p : d.parts()) {
    if (!out.empty()) out += " | ";
    if (p.repeat != 1) out += std::to_string(p.repeat) + " x ";
    out += p.group == dimension::no_group ? std::to_string(p.whole) : net[group_id(p.group)].name;
    if (p.block != 1) out += " x " + std::to_string(p.block);
  }
  return d.parts().size() == 1 ? out : "[" + out + "]";
}

/// "(4 x hidden, 64)", as shapes look.
inline std::string dimensions_text(const model& net, std::span<const dimension> dimensions) {
  std::string out = "(";
  for (std::size_t r = 0; r < dimensions.size(); ++r) {
    if (r != 0) out += ", ";
    out += dimension_text(net, dimensions[r]);
  }
  return out + (dimensions.size() == 1 ? ",)" : ")");
}

}  // namespace subfed::inline v0::detail
