// SPDX-License-Identifier: MIT
/// Models in words and as a drawing, and the check that actual tensors are the ones described.
#pragma once

#include <subfed/detail/dimension_text.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

inline bool uses_group(const model::tensor_info& tensor, std::size_t group) {
  for (const dimension& d : tensor.dimensions) {
    for (const dimension::part& p : d.parts()) {
      if (p.group == group) return true;
    }
  }
  return false;
}

/// The tensors that each group ties, by name.
inline std::vector<std::string> tied_texts(const model& net) {
  std::vector<std::string> out(net.groups().size());
  std::vector<std::size_t> told(out.size(), 0);  // tensors up to the one that was listed last
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& tensor = net.tensors()[t];
    for (const dimension& d : tensor.dimensions) {
      for (const dimension::part& p : d.parts()) {
        if (p.group == dimension::no_group || told[p.group] == t + 1) continue;
        told[p.group] = t + 1;
        out[p.group] += (out[p.group].empty() ? "" : ", ") + tensor.name;
      }
    }
  }
  for (std::string& text : out) {
    if (text.empty()) text = "no tensor";
  }
  return out;
}

inline std::string group_line(const model::group_info& info, std::size_t name_width,
                              const std::string& nodes, const std::string& tied) {
  return "  " + padded(info.name, name_width) + "  " + nodes + " nodes" +
         (info.cut == cut::never ? ", never cut" : "") + ": " + tied + "\n";
}

/// ", statistic"; nothing for a parameter.
inline std::string role_note(const model::tensor_info& tensor) {
  return tensor.role == role::parameter ? "" : ", " + std::string(role_text(tensor.role));
}

template <class Items>
std::size_t widest_name(const Items& items) {
  std::size_t width = 0;
  for (const auto& item : items) width = (std::max)(width, item.name.size());
  return width;
}

/// A quoted string of the DOT language.
inline std::string dot_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace detail

/// The groups with their nodes and the tensors that each ties, then the tensors with their shapes,
/// what each dimension consists of, and their role unless they are parameters:
///
///   2 groups
///     hidden   64 nodes: fc1.weight, fc1.bias, fc2.weight
///     classes  10 nodes, never cut: fc2.weight, fc2.bias
///   4 tensors, 1994 elements
///     fc1.weight  (64, 20) = (hidden, 20)
///     ..
///     bn1.running_var  (64,) = (hidden,), statistic
inline std::string describe(const model& net) {
  const std::size_t groups = net.groups().size();
  const std::size_t tensors = net.tensors().size();
  std::string out = std::to_string(groups) + (groups == 1 ? " group\n" : " groups\n");
  const std::size_t group_width = detail::widest_name(net.groups());
  const std::vector<std::string> tied = detail::tied_texts(net);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto& group = net.groups()[g];
    out += detail::group_line(group, group_width, std::to_string(group.extent), tied[g]);
  }
  out += std::to_string(tensors) + (tensors == 1 ? " tensor, " : " tensors, ") +
         std::to_string(net.size()) + " elements\n";
  const std::size_t tensor_width = detail::widest_name(net.tensors());
  for (const auto& tensor : net.tensors()) {
    out += "  " + detail::padded(tensor.name, tensor_width) + "  " +
           detail::shape_text(tensor.extents) + " = " +
           detail::dimensions_text(net, tensor.dimensions) + detail::role_note(tensor) + "\n";
  }
  return out;
}

/// One tensor and the groups that it is bound to.
inline std::string describe(const model& net, tensor_id tensor) {
  const auto& info = net[tensor];
  std::string out = "  " + info.name + "  " + detail::shape_text(info.extents) + " = " +
                    detail::dimensions_text(net, info.dimensions) + detail::role_note(info) + "\n";
  const std::vector<std::string> tied = detail::tied_texts(net);
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    if (!detail::uses_group(info, g)) continue;
    const auto& group = net.groups()[g];
    out += detail::group_line(group, 0, std::to_string(group.extent), tied[g]);
  }
  return out;
}

/// As for a model, with the nodes that are held, "16 of 64 nodes", and the shapes of the client's
/// tensors.
inline std::string describe(const submodel& part) {
  const model& net = part.parent();
  const std::size_t groups = net.groups().size();
  const std::size_t tensors = net.tensors().size();
  std::string out = std::to_string(groups) + (groups == 1 ? " group\n" : " groups\n");
  const std::size_t group_width = detail::widest_name(net.groups());
  const std::vector<std::string> tied = detail::tied_texts(net);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto& group = net.groups()[g];
    const std::string nodes =
        std::to_string(part.extent(group_id(g))) + " of " + std::to_string(group.extent);
    out += detail::group_line(group, group_width, nodes, tied[g]);
  }
  out += std::to_string(tensors) + (tensors == 1 ? " tensor, " : " tensors, ") +
         std::to_string(part.size()) + " of " + std::to_string(net.size()) + " elements\n";
  const std::size_t tensor_width = detail::widest_name(net.tensors());
  for (std::size_t t = 0; t < tensors; ++t) {
    out += "  " + detail::padded(net.tensors()[t].name, tensor_width) + "  " +
           detail::shape_text(part.extents(tensor_id(t))) + " of " +
           detail::shape_text(net.tensors()[t].extents) + detail::role_note(net.tensors()[t]) +
           "\n";
  }
  return out;
}

/// Which tensors each group ties, in the DOT language of Graphviz: groups are ellipses, tensors
/// boxes, and an edge says which dimension is bound how.
inline std::string draw_dot(const model& net) {
  std::string out = "graph model {\n  rankdir=LR;\n";
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const auto& group = net.groups()[g];
    out += "  g" + std::to_string(g) + " [shape=ellipse" +
           (group.cut == cut::never ? ", style=dashed" : "") +
           ", label=" + detail::dot_text(group.name + " " + std::to_string(group.extent)) + "];\n";
  }
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& tensor = net.tensors()[t];
    out += "  t" + std::to_string(t) + " [shape=box, label=" +
           detail::dot_text(tensor.name + " " + detail::shape_text(tensor.extents) +
                            detail::role_note(tensor)) +
           "];\n";
    for (std::size_t r = 0; r < tensor.dimensions.size(); ++r) {
      for (const dimension::part& p : tensor.dimensions[r].parts()) {
        if (p.group == dimension::no_group) continue;
        std::string label = std::to_string(r);
        if (p.repeat != 1) label += ", repeat " + std::to_string(p.repeat);
        if (p.block != 1) label += ", block " + std::to_string(p.block);
        out += "  g" + std::to_string(p.group) + " -- t" + std::to_string(t) +
               " [label=" + detail::dot_text(label) + "];\n";
      }
    }
  }
  return out + "}\n";
}

/// A tensor as it is in a network or a checkpoint.
struct named_shape {
  std::string name;
  std::vector<std::int64_t> extents;

  friend bool operator==(const named_shape&, const named_shape&) = default;
};

/// Compares a network's tensors with the description, one to one and in order.
///
/// Throws  error for the first that differs in name or shape. Where an extent differs, the message
///         names the group and the other tensors that it ties.
inline void check_shapes(const model& net, std::span<const named_shape> found) {
  const auto described = net.tensors();
  const std::size_t both = (std::min)(found.size(), described.size());
  for (std::size_t t = 0; t < both; ++t) {
    if (found[t].name != described[t].name) {
      detail::fail("subfed: check_shapes: tensor " + std::to_string(t) + " is '" + found[t].name +
                   "', but the description has '" + described[t].name + "' there");
    }
    if (found[t].extents != described[t].extents) {
      detail::fail("subfed: check_shapes: tensor '" + found[t].name + "' has shape " +
                   detail::shape_text(found[t].extents) + ", but the description says\n" +
                   describe(net, tensor_id(t)));
    }
  }
  if (found.size() == described.size()) return;
  const bool more = found.size() > both;
  detail::fail("subfed: check_shapes: there are " + std::to_string(found.size()) +
               " tensors, but the description has " + std::to_string(described.size()) + "; '" +
               (more ? found[both].name : described[both].name) + "' is the first that " +
               (more ? "it lacks" : "is missing"));
}

}  // namespace subfed::inline v0
