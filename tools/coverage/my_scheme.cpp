// SPDX-License-Identifier: MIT
/// A place for a scheme of your own. Change the lambda, then check whether it starves a node:
///
///   scripts/coverage --schemes mine,rolling,random
#include "schemes.hpp"

#include <subfed/subfed.hpp>
#include <vector>

namespace coverage_tool {

scheme_function my_scheme() {
  // Every other node, in turn. A client of capacity 1/4 gets only the first half of them: nodes in
  // the second half of a group are held only by clients of capacity 1/2 and more.
  return [](const subfed::draw_request& s) {
    std::vector<std::int64_t> nodes;
    for (auto n = std::int64_t(s.round % 2); n < s.extent; n += 2) {
      if (std::int64_t(nodes.size()) < s.kept()) nodes.push_back(n);
    }
    return subfed::index_set(s.extent, nodes);  // refuses repeated and out-of-range nodes
  };
}

}  // namespace coverage_tool
