// SPDX-License-Identifier: MIT
/// What elementwise operators, reductions and the like say about axes.
#pragma once

#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Values are combined element by element; equal axes are joined.
inline void elementwise_rule(graph_walk& w, const graph_node& n) {
  std::vector<traced_value*> inputs;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (w.has(n, i)) inputs.push_back(&w.in(n, i));
  }
  std::vector<axis> out;
  if (!w.broadcast(inputs, out)) return w.opaque(n, "the shapes do not broadcast");
  w.set(n, 0, std::move(out));
}
/// Operators of one tensor, whose other inputs are numbers, and which keep its shape.
inline void unary_rule(graph_walk& w, const graph_node& n) {
  const std::vector<axis> axes = w.in(n, 0).axes;
  for (std::size_t o = 0; o < n.outputs.size(); ++o) w.set(n, o, axes);
}
/// An Identity of a parameter is another tensor with the same values: exporters merge those that are equal.
inline void identity_rule(graph_walk& w, const graph_node& n) {
  const graph_value& from = w.graph.values[n.inputs[0]];
  const std::string& name = w.graph.values[n.outputs[0]].name;
  const bool own = from.kind == value_kind::parameter && !from.is_integer && !name.empty() &&
                   name[0] != '/' && name.find("::") == std::string::npos &&
                   name.find_first_not_of("0123456789") != std::string::npos;
  if (own) return w.make_parameter(n.outputs[0], from.extents);
  unary_rule(w, n);
}

inline void prelu_rule(graph_walk& w, const graph_node& n) {
  if (n.inputs.size() != 2) return w.opaque(n, "it has not two inputs");
  elementwise_rule(w, n);
}

/// The elements along the axis are compared or added up in order: it stays whole.
inline void make_axis_whole(graph_walk& w, const graph_node& n, std::size_t at, const char* what) {
  const std::vector<axis> axes = w.in(n, 0).axes;
  w.space.make_whole(axes[at], w.space.reason(std::string(what) + " " + w.text(n)));
}
inline void softmax_rule(graph_walk& w, const graph_node& n) {
  const std::size_t rank = w.in(n, 0).rank();
  const bool flattens = w.graph.opset < 13;  // the axis and all behind it
  const std::size_t at = graph_walk::axis_of(n.integer("axis", flattens ? 1 : -1), rank);
  if (at == rank) return w.opaque(n, "it has no such axis");
  for (std::size_t r = at; r < (flattens ? rank : at + 1); ++r) {
    make_axis_whole(w, n, r, "it is the axis of the");
  }
  unary_rule(w, n);
}
inline void cumsum_rule(graph_walk& w, const graph_node& n) {
  const std::size_t rank = w.in(n, 0).rank();
  const auto axes = w.integers(n, "axis", 1);
  if (!axes || axes->size() != 1) return w.opaque(n, "its axis is not a constant");
  const std::size_t at = graph_walk::axis_of((*axes)[0], rank);
  if (at == rank) return w.opaque(n, "it has no such axis");
  make_axis_whole(w, n, at, "it is added up in order by the");
  unary_rule(w, n);
}

/// A triangle of the last two axes.
inline void triangle_rule(graph_walk& w, const graph_node& n) {
  const std::size_t rank = w.in(n, 0).rank();
  if (rank < 2) return w.opaque(n, "its input is no matrix");
  make_axis_whole(w, n, rank - 2, "it is an axis of the");
  make_axis_whole(w, n, rank - 1, "it is an axis of the");
  w.set(n, 0, w.in(n, 0).axes);
}
/// Each element is divided by the norm of those along the axis.
inline void normalization_rule(graph_walk& w, const graph_node& n) {
  const std::size_t rank = w.in(n, 0).rank();
  const std::size_t at = graph_walk::axis_of(n.integer("axis", -1), rank);
  if (at == rank) return w.opaque(n, "it has no such axis");
  w.note(w.in(n, 0).axes[at], w.text(n));
  unary_rule(w, n);
}
/// Each channel is divided by the norm of its neighbours.
inline void neighbours_rule(graph_walk& w, const graph_node& n) {
  if (w.in(n, 0).rank() < 2) return w.opaque(n, "its input has no channels");
  make_axis_whole(w, n, 1, "its neighbours are counted by the");
  unary_rule(w, n);
}
/// A new axis of truth values.
inline void one_hot_rule(graph_walk& w, const graph_node& n) {
  std::vector<axis> axes = w.in(n, 0).axes;
  const auto depth = w.integers(n, "depth", 1);
  const std::size_t at = graph_walk::axis_of(n.integer("axis", -1), axes.size() + 1);
  if (!depth || depth->size() != 1 || (*depth)[0] < 1 || at > axes.size()) {
    return w.opaque(n, "its depth is not a constant");
  }
  const std::size_t why = w.space.reason("its nodes are numbered by " + w.text(n));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at),
              w.space.fresh_whole((*depth)[0], why));
  w.set(n, 0, std::move(axes));
}

/// Sums, means, extremes over axes.
inline void reduce_rule(graph_walk& w, const graph_node& n) {
  const std::vector<axis> axes = w.in(n, 0).axes;
  const std::size_t rank = axes.size();
  std::vector<bool> goes(rank, false);
  const auto given = w.integers(n, "axes", 1);
  if (!given && w.has(n, 1)) return w.opaque(n, "its axes are not a constant");
  if ((!given || given->empty()) && n.integer("noop_with_empty_axes", 0) == 0) {
    goes.assign(rank, true);
  } else if (given) {
    for (const std::int64_t a : *given) {
      const std::size_t at = graph_walk::axis_of(a, rank);
      if (at == rank) return w.opaque(n, "it has no such axis");
      goes[at] = true;
    }
  }
  const bool keeps = n.integer("keepdims", 1) != 0;
  std::vector<axis> out;
  for (std::size_t r = 0; r < rank; ++r) {
    if (!goes[r]) {
      out.push_back(axes[r]);
    } else {
      if (n.op != "ReduceSum") w.note(axes[r], w.text(n));
      if (keeps) out.push_back({{}});
    }
  }
  w.set(n, 0, std::move(out));
}
/// Indices along an axis.
inline void arg_rule(graph_walk& w, const graph_node& n) {
  std::vector<axis> axes = w.in(n, 0).axes;
  const std::size_t at = graph_walk::axis_of(n.integer("axis", 0), axes.size());
  if (at == axes.size()) return w.opaque(n, "it has no such axis");
  make_axis_whole(w, n, at, "its nodes are numbered by the");
  if (n.integer("keepdims", 1) != 0) {
    axes[at] = {{}};
  } else {
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  w.set(n, 0, std::move(axes));
}
/// Largest elements along an axis.
inline void topk_rule(graph_walk& w, const graph_node& n) {
  std::vector<axis> axes = w.in(n, 0).axes;
  const std::size_t at = graph_walk::axis_of(n.integer("axis", -1), axes.size());
  const auto count = w.integers(n, "k", 1);
  if (at == axes.size() || !count || count->size() != 1 || (*count)[0] < 0) {
    return w.opaque(n, "its axis or number is not a constant");
  }
  make_axis_whole(w, n, at, "its nodes are sorted by the");
  axes[at] = w.space.fresh_whole((*count)[0], w.image);
  w.set(n, 0, axes);
  w.set(n, 1, axes);
}

/// Letters of the equation are axes.
inline void einsum_rule(graph_walk& w, const graph_node& n) {
  const graph_attribute* equation = n.find("equation");
  if (equation == nullptr) return w.opaque(n, "it has no equation");
  std::string terms;
  for (const char c : equation->text) {
    if (c != ' ') terms += c;
  }
  const std::size_t arrow = terms.find("->");
  if (arrow == std::string::npos || terms.find('.') != std::string::npos) {
    return w.opaque(n, "its equation has no output, or an ellipsis");
  }
  const std::string result = terms.substr(arrow + 2);
  std::vector<std::optional<axis>> letters(256);
  std::vector<std::size_t> seen(256, 0);
  std::size_t from = 0;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const std::size_t end = (std::min)(terms.find(',', from), arrow);
    const std::string own = terms.substr(from, end < from ? 0 : end - from);
    from = end + 1;
    if (own.size() != w.in(n, i).rank()) return w.opaque(n, "an input does not fit its equation");
    for (std::size_t r = 0; r < own.size(); ++r) {
      const auto letter = static_cast<unsigned char>(own[r]);
      const axis& a = w.in(n, i).axes[r];
      auto& known = letters[letter];
      ++seen[letter];
      if (!known || w.space.extent(*known) == 1) {
        known = a;
      } else if (w.space.extent(a) == w.space.extent(*known)) {
        w.space.unify(*known, a);
      } else if (w.space.extent(a) != 1) {
        return w.opaque(n, "an input does not fit its equation");
      }
      if (result.find(own[r]) != std::string::npos) w.written(n.inputs[i], r);
    }
  }
  std::vector<axis> out;
  for (const char c : result) {
    const auto& known = letters[static_cast<unsigned char>(c)];
    if (!known) return w.opaque(n, "its output does not fit its equation");
    out.push_back(*known);
  }
  w.set(n, 0, std::move(out));
}

}  // namespace subfed::inline v0::detail
