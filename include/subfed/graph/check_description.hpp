// SPDX-License-Identifier: MIT
/// A description compared with the network's graph: no value is computed.
#pragma once

#include <subfed/error.hpp>
#include <subfed/graph/detail/axes.hpp>
#include <subfed/graph/detail/equal_parts.hpp>
#include <subfed/graph/detail/rules.hpp>
#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What a graph says of a description.
struct description_check {
  std::vector<std::string> wrong;    ///< a sentence each: clients would get no sub-network
  std::vector<std::string> missing;  ///< tensors of the graph that are not described
  std::vector<std::string> unknown;  ///< tensors that are described, and not of the graph

  bool is_right() const noexcept { return wrong.empty(); }
};

namespace detail {

class description_checker {
 public:
  description_checker(const network_graph& graph, const model& net) : walk_(graph), net_(net) {
    walk_through(walk_);
  }

  description_check check() {
    describe_groups();
    std::map<std::string_view, std::size_t> tensors;
    for (std::size_t t = 0; t < net_.tensors().size(); ++t) {
      tensors.emplace(net_.tensors()[t].name, t);
    }
    std::vector<bool> seen(net_.tensors().size(), false);
    for (const traced_parameter& p : walk_.parameters) {
      const auto at = tensors.find(p.name);
      if (at == tensors.end()) {
        out_.missing.push_back(p.name);
        continue;
      }
      seen[at->second] = true;
      compare(net_.tensors()[at->second], walk_.values[p.value]);
    }
    cut_parts_alike(walk_);
    // What a later tensor, or a division in equal parts, has made wrong of an earlier group.
    for (std::size_t g = 0; g < nodes_.size(); ++g) report(g, "");
    for (std::size_t t = 0; t < seen.size(); ++t) {
      if (!seen[t]) out_.unknown.push_back(net_.tensors()[t].name);
    }
    return std::move(out_);
  }

 private:
  void describe_groups() {
    for (const auto& g : net_.groups()) {
      nodes_.push_back(walk_.space.fresh(g.extent));
      told_.push_back(false);
      if (g.cut == cut::by_scheme) continue;
      walk_.space.make_whole(nodes_.back(), walk_.space.reason("it is described as never cut"));
    }
  }

  void compare(const model::tensor_info& described, const traced_value& found) {
    if (described.extents != found.extents) {
      out_.wrong.push_back(described.name + " is " + shape_text(described.extents) +
                           " in the description and " + shape_text(found.extents) +
                           " in the network");
      return;
    }
    for (std::size_t r = 0; r < found.axes.size(); ++r) {
      value_axis own;
      for (const dimension::part& p : described.dimensions[r].parts()) {
        value_axis nodes;
        if (p.group == dimension::no_group) {
          const std::size_t why = walk_.space.reason("dimension " + std::to_string(r) + " of " +
                                                     described.name + " is described as whole");
          nodes = walk_.space.fresh_whole(p.whole, why);
        } else {
          nodes = nodes_[p.group];
        }
        if (p.repeat != 1) nodes = walk_.space.product(copies(p.repeat), nodes);
        if (p.block != 1) nodes = walk_.space.product(nodes, copies(p.block));
        own.insert(own.end(), nodes.begin(), nodes.end());
      }
      walk_.space.unify(found.axes[r], own);
      const std::string where =
          "with dimension " + std::to_string(r) + " of " + described.name + ", ";
      for (const dimension::part& p : described.dimensions[r].parts()) {
        if (p.group != dimension::no_group) report(p.group, where);
      }
    }
  }
  value_axis copies(std::int64_t times) { return walk_.space.fresh_whole(times, walk_.image); }

  /// What is wrong with a group, once.
  void report(std::size_t g, const std::string& where) {
    const auto& info = net_.groups()[g];
    if (told_[g] || info.cut == cut::never || info.extent <= 1) return;
    const value_axis own = walk_.space.leaves(nodes_[g]);
    std::string what;
    if (walk_.space.is_whole(own)) {
      what = "cannot be cut: " + reason_text(own);
    } else if (own.size() != 1 || own[0].size() != 1) {
      what = "is not of " + std::to_string(info.extent) + " nodes, but of " + parts_text(own);
    } else {
      for (std::size_t other = 0; other < nodes_.size(); ++other) {
        if (other == g || told_[other] || walk_.space.leaves(nodes_[other]) != own) continue;
        what = "and the group '" + net_.groups()[other].name + "' are the same nodes";
      }
    }
    if (what.empty()) return;
    told_[g] = true;
    out_.wrong.push_back(where + "the group '" + info.name + "' " + what);
  }
  /// Why an axis is whole. Parts of one element have no factor, and no reason.
  std::string reason_text(const value_axis& whole) const {
    for (const factor_product& product : whole) {
      if (!product.empty()) return walk_.space.reason_of(product[0]).text;
    }
    return "it is of single elements";
  }
  std::string parts_text(const value_axis& parts) const {
    std::string out;
    for (const factor_product& product : parts) {
      if (!out.empty()) out += " and ";
      for (std::size_t i = 0; i < product.size(); ++i) {
        out += (i == 0 ? "" : " x ") + std::to_string(walk_.space.extent(product[i]));
      }
      if (product.empty()) out += "1";
    }
    return out;
  }

  graph_walk walk_;
  const model& net_;
  std::vector<value_axis> nodes_;  // by group
  std::vector<bool> told_;         // by group
  description_check out_;
};

}  // namespace detail

/// Whether what a description cuts can be cut: each of its groups is of nodes that the graph has as such,
/// two groups are not the same nodes, and parts that the network divides equally are cut alike. Finds a
/// tensor that is bound to another group, also one of another model whose number this one has; copies for
/// blocks; and what is cut although it reaches an output or is read by an operator that is not known. A
/// description may cut less than the graph allows, and tie more.
///
/// Tensors are compared by name. Each sentence of `wrong` names the first tensor at which the group is
/// wrong, in the graph's order.
///
/// Throws  error as network_graph::check.
inline description_check check_description(const network_graph& graph, const model& net) {
  graph.check();
  return detail::description_checker(graph, net).check();
}

}  // namespace subfed::inline v0
