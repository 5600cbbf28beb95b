// SPDX-License-Identifier: MIT
/// From a network's graph to its description.
#pragma once

#include <subfed/describe.hpp>
#include <subfed/dimension.hpp>
#include <subfed/graph/detail/axes.hpp>
#include <subfed/graph/detail/description_of.hpp>
#include <subfed/graph/detail/rules.hpp>
#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Derives the description of a network from its graph: axes that must be cut together are one group, found
/// by following every axis of every value through the operators.
///
/// Nothing is guessed. A softmax over an axis, a lookup, an axis of the network's inputs and outputs, or an
/// operator that is not known leave an axis whole, and `whole` says why. Groups are called after the first
/// tensor that writes their nodes. Batch norms' running means and variances are statistics; buffers of
/// integers are not described.
///
///   const subfed::derived_description derived = subfed::derive_model(graph);
///   std::puts(subfed::describe(derived).c_str());
///
/// Pre     Every tensor of the network's state has a name of its own in the graph, and is there once.
/// Throws  error as network_graph::check, and what the model refuses.
/// Cost    O(n log n) for n operators; no elements of parameters are read.
inline derived_description derive_model(const network_graph& graph,
                                        const derive_options& options = {}) {
  graph.check();
  detail::graph_walk walk(graph);
  detail::walk_through(walk);
  return detail::description_maker(walk, options).make();
}

namespace detail {

/// "a, b, c and 4 more"
inline std::string first_few(const std::vector<std::string>& all) {
  constexpr std::size_t most = 4;
  std::string out;
  for (std::size_t i = 0; i < (std::min)(most, all.size()); ++i)
    out += (i == 0 ? "" : ", ") + all[i];
  return all.size() > most ? out + " and " + std::to_string(all.size() - most) + " more" : out;
}

}  // namespace detail

/// The description, what stays whole and why, and what else is to be known.
inline std::string describe(const derived_description& derived) {
  std::string out = describe(derived.net);
  const auto list = [&out](const std::vector<std::string>& lines, const char* title) {
    if (!lines.empty()) out += std::string(title) + "\n";
    for (const std::string& line : lines) out += "  " + line + "\n";
  };
  std::vector<std::string> lines;
  for (const whole_nodes& w : derived.whole) {
    lines.push_back(std::to_string(w.extent) + " nodes of " + detail::first_few(w.tensors) + ": " +
                    w.reason);
  }
  list(lines, "not cut");
  lines.clear();
  for (const group_note& n : derived.notes) {
    lines.push_back(derived.net[n.group].name + ": " + detail::first_few(n.operators));
  }
  list(lines, "computed over the nodes that a client holds, so that cutting is not masking");
  list(derived.unknown, "not understood, so that what they touch is whole");
  list(derived.unused, "read by no operator");
  return out;
}

}  // namespace subfed::inline v0
