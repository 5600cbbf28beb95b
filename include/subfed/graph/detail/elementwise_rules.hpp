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
  std::vector<value_axis> out;
  if (!w.broadcast(inputs, out)) return w.opaque(n, "the shapes do not broadcast");
  w.set(n, 0, std::move(out));
}
/// Operators of one tensor, whose other inputs are numbers, and which keep its shape.
inline void unary_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
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
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  w.space.make_whole(axes[at], w.space.reason(std::string(what) + " " + w.text(n)));
}
inline void softmax_rule(graph_walk& w, const graph_node& n) {
  const std::size_t rank = w.in(n, 0).rank();
  const bool flattens = w.graph.opset < 13;  // the axis and all after it
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
  std::vector<value_axis> axes = w.in(n, 0).axes;
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
  const std::vector<value_axis> axes = w.in(n, 0).axes;
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
  std::vector<value_axis> out;
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
  std::vector<value_axis> axes = w.in(n, 0).axes;
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
  std::vector<value_axis> axes = w.in(n, 0).axes;
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

/// The letters of an Einsum, one an axis. The axes of an ellipsis, counted from its end, are letters too.
struct einsum_letters {
  std::vector<std::string> inputs;
  std::string output;

  /// False where the equation does not fit.
  bool read(const std::string& equation, const std::vector<std::size_t>& ranks) {
    std::string text;
    for (const char c : equation) {
      if (c != ' ') text += c;
    }
    const std::size_t arrow = text.find("->");
    std::string terms = text.substr(0, arrow);
    std::size_t most = 0;  // axes of an ellipsis
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::size_t comma = terms.find(',');
      if ((comma == std::string::npos) != (i + 1 == ranks.size())) return false;
      std::string own = terms.substr(0, comma);
      if (comma != std::string::npos) terms.erase(0, comma + 1);
      const std::size_t dots = own.find("...");
      if (dots != std::string::npos) {
        if (own.size() - 3 > ranks[i]) return false;
        const std::size_t count = ranks[i] - (own.size() - 3);
        if (count > 8) return false;
        own.replace(dots, 3, ellipsis(count));
        most = (std::max)(most, count);
      }
      if (own.size() != ranks[i]) return false;
      inputs.push_back(own);
    }
    if (arrow != std::string::npos) {
      output = text.substr(arrow + 2);
      const std::size_t dots = output.find("...");
      if (dots != std::string::npos) output.replace(dots, 3, ellipsis(most));
      return true;
    }
    // Without an output: the ellipsis, then letters that are there once, in order.
    std::string all;
    for (const std::string& own : inputs) all += own;
    std::sort(all.begin(), all.end());
    output = ellipsis(most);
    for (const char c : all) {
      if (c > '9' && std::count(all.begin(), all.end(), c) == 1) output += c;
    }
    return true;
  }

 private:
  /// "3210": the digit counts from the end.
  static std::string ellipsis(std::size_t count) {
    std::string out;
    while (count > 0) out += static_cast<char>('0' + --count);
    return out;
  }
};
inline void einsum_rule(graph_walk& w, const graph_node& n) {
  const graph_attribute* equation = n.find("equation");
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!w.has(n, i)) return w.opaque(n, "it lacks an input");
    ranks.push_back(w.in(n, i).rank());
  }
  einsum_letters letters;
  if (equation == nullptr || !letters.read(equation->text, ranks)) {
    return w.opaque(n, "its equation does not fit");
  }
  std::vector<std::optional<value_axis>> axes(256);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t r = 0; r < ranks[i]; ++r) {
      const char letter = letters.inputs[i][r];
      const value_axis& a = w.in(n, i).axes[r];
      auto& known = axes[static_cast<unsigned char>(letter)];
      if (!known || w.space.extent(*known) == 1) {
        known = a;
      } else if (w.space.extent(a) == w.space.extent(*known)) {
        w.space.unify(*known, a);
      } else if (w.space.extent(a) != 1) {
        return w.opaque(n, "the shapes do not fit its equation");
      }
      if (letters.output.find(letter) != std::string::npos) w.written(n.inputs[i], r);
    }
  }
  std::vector<value_axis> out;
  for (const char letter : letters.output) {
    const auto& known = axes[static_cast<unsigned char>(letter)];
    if (!known) return w.opaque(n, "its output does not fit its equation");
    out.push_back(*known);
  }
  w.set(n, 0, std::move(out));
}

}  // namespace subfed::inline v0::detail
