// SPDX-License-Identifier: MIT
/// The walk through a graph: what is known of its values, and what the rules of operators share.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/graph/detail/axes.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// A value of the graph with its axes. Numbers are evaluated where they are small: shapes and bounds are
/// computed by operators too.
struct traced_value {
  bool is_known = false;  ///< its shape
  std::vector<std::int64_t> extents{};
  std::vector<value_axis> axes{};
  std::vector<double> elements{};
  bool is_constant = false;  ///< the elements are there
  bool is_integer = false;
  bool is_uniform = false;  ///< all elements are equal, whether they are there or not

  std::size_t rank() const { return extents.size(); }
};

/// Which elements of an axis a Slice takes.
struct sliced_range {
  std::int64_t begin;
  std::int64_t count;

  /// Nothing for a step of 0 or an empty axis.
  static std::optional<sliced_range> of(std::int64_t begin, std::int64_t end, std::int64_t step,
                                        std::int64_t extent) {
    if (extent == 0 || step == 0) return std::nullopt;
    const std::int64_t least = step > 0 ? 0 : -1;
    const std::int64_t most = step > 0 ? extent : extent - 1;
    const auto bound = [&](std::int64_t at, std::int64_t lowest) {
      if (at < 0) at = at < -extent ? lowest : at + extent;
      return (std::min)(at, most);
    };
    begin = bound(begin, 0);
    // Far below 0, the end of a negative step is "through the first".
    end = bound(end, least);
    const std::int64_t distance = step > 0 ? end - begin : begin - end;
    const std::int64_t stride = step > 0 ? step : step < -extent ? extent : -step;
    return sliced_range{begin, distance <= 0 ? 0 : (distance - 1) / stride + 1};
  }
};

/// A tensor of the network's state.
struct traced_parameter {
  std::string name;
  std::size_t value;
  bool is_statistic = false;
  bool is_used = false;
};

/// A group of nodes is computed over: the client's network computes over those that it holds.
struct computed_over {
  value_axis nodes;
  std::string text;
};

/// Part of a value's axis, which operators take one by one.
struct taken_part {
  std::size_t value;
  std::size_t dimension;
  std::int64_t begin;
  value_axis part;
};

class graph_walk {
 public:
  explicit graph_walk(const network_graph& given)
      : graph(given),
        values(given.values.size()),
        parameter_of_(given.values.size(), axis_space::none) {
    image = space.reason("it is of positions", whole_kind::positions);
    for (std::size_t v = 0; v < graph.values.size(); ++v) begin(v);
  }

  const network_graph& graph;
  axis_space space;
  std::vector<traced_value> values;
  std::vector<traced_parameter> parameters;
  std::vector<std::string> labels;
  std::vector<computed_over> over;
  std::vector<taken_part> taken;
  std::vector<std::string> unknown;  ///< operators that were not understood, a sentence each
  std::size_t following = 0;         ///< operators that read values of unknown shape
  std::size_t image;                 ///< the quiet reason of heights, widths, kernels, times

  bool has(const graph_node& n, std::size_t input) const {
    return input < n.inputs.size() && n.inputs[input] != network_graph::no_value;
  }
  traced_value& in(const graph_node& n, std::size_t input) { return values[n.inputs[input]]; }
  /// A name for messages.
  std::string text(const graph_node& n) const {
    if (!n.name.empty()) return n.op + " '" + n.name + "'";
    for (const std::size_t o : n.outputs) {
      if (o != network_graph::no_value && !graph.values[o].name.empty()) {
        return n.op + " of '" + graph.values[o].name + "'";
      }
    }
    return n.op;
  }

  /// What an operator reads and writes stays whole.
  void opaque(const graph_node& n, const std::string& why) {
    const std::string told = text(n) + ": " + why;
    const std::size_t because = space.reason("it meets " + told);
    std::string touched;
    for (const std::size_t i : n.inputs) {
      if (i == network_graph::no_value || graph.values[i].name.empty()) continue;
      touched += (touched.empty() ? " (reads '" : ", '") + graph.values[i].name + "'";
    }
    unknown.push_back(told + (touched.empty() ? "" : touched + ")"));
    make_all_whole(n, because);
  }
  /// An operator reads what one that is not understood has made.
  void after_opaque(const graph_node& n) {
    ++following;
    const std::size_t because =
        space.reason("it meets " + text(n) + ", which reads a value whose shape is not known");
    make_all_whole(n, because);
  }
  /// The value that an operator computes.
  void set(const graph_node& n, std::size_t output, std::vector<value_axis> axes) {
    if (output >= n.outputs.size() || n.outputs[output] == network_graph::no_value) return;
    std::vector<std::int64_t> extents;
    std::int64_t elements = 1;
    for (const value_axis& a : axes) {
      extents.push_back(space.extent(a));
      if (extents.back() == largest_size ||
          !multiply(elements, (std::max)(extents.back(), std::int64_t{1}))) {
        return opaque(n, "it makes a value of more than 2^63 - 1 elements");
      }
    }
    const graph_value& declared = graph.values[n.outputs[output]];
    if (declared.has_extents && declared.extents != extents) {
      return opaque(n, "its output should be " + shape_text(declared.extents) +
                           " and seems to be " + shape_text(extents));
    }
    traced_value made;
    made.is_known = true;
    made.extents = std::move(extents);
    made.axes = std::move(axes);
    values[n.outputs[output]] = std::move(made);
  }

  /// An axis counted from the end where it is negative; the rank where there is none.
  static std::size_t axis_of(std::int64_t number, std::size_t rank) {
    const auto r = static_cast<std::int64_t>(rank);
    if (number < 0) number += r;
    return number < 0 || number >= r ? rank : static_cast<std::size_t>(number);
  }

  static std::int64_t as_integer(double number) {
    constexpr double most = 9.2e18;
    if (std::isnan(number)) return 0;
    if (number > most) return (std::numeric_limits<std::int64_t>::max)();
    if (number < -most) return (std::numeric_limits<std::int64_t>::min)() + 1;
    return static_cast<std::int64_t>(number);
  }
  /// Integers of an attribute or, in later versions, of a constant input; nothing where both are missing
  /// or the input is computed from data.
  std::optional<std::vector<std::int64_t>> integers(const graph_node& n, std::string_view attribute,
                                                    std::size_t input) {
    if (const graph_attribute* a = n.find(attribute)) return a->integers;
    if (!has(n, input) || !in(n, input).is_constant) return std::nullopt;
    std::vector<std::int64_t> out;
    for (const double e : in(n, input).elements) out.push_back(as_integer(e));
    return out;
  }

  /// The parameter's dimension is where a layer writes its nodes, so that they are called after it.
  void written(std::size_t value, std::size_t dimension) {
    const std::string& name = graph.values[value].name;
    if (graph.values[value].kind != value_kind::parameter || name.empty()) return;
    labels.push_back(name);
    space.name(values[value].axes[dimension], labels.size() - 1);
  }

  void note(const value_axis& nodes, std::string text) { over.push_back({nodes, std::move(text)}); }

  /// The axes after broadcasting, which joins those of equal extent; false where shapes do not fit.
  bool broadcast(const std::vector<traced_value*>& inputs, std::vector<value_axis>& out,
                 std::size_t without_last = 0) {
    std::size_t rank = 0;
    for (const traced_value* v : inputs) {
      if (v->rank() < without_last) return false;
      rank = (std::max)(rank, v->rank() - without_last);
    }
    out.assign(rank, value_axis{{}});
    std::vector<std::int64_t> extents(rank, 1);
    for (traced_value* v : inputs) {
      const std::size_t own = v->rank() - without_last;
      for (std::size_t r = 0; r < own; ++r) {
        const std::size_t at = rank - own + r;
        if (v->extents[r] == 1) continue;
        if (extents[at] == 1) {
          extents[at] = v->extents[r];
          out[at] = v->axes[r];
        } else if (extents[at] == v->extents[r]) {
          space.unify(out[at], v->axes[r]);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  /// A parameter under a name that only the value has.
  void make_parameter(std::size_t value, const std::vector<std::int64_t>& extents) {
    traced_value& made = values[value];
    made = {};
    made.is_known = true;
    made.extents = extents;
    for (const std::int64_t e : extents) made.axes.push_back(space.fresh(e));
    parameter_of_[value] = parameters.size();
    parameters.push_back({graph.values[value].name, value});
  }
  /// Null where the value is no parameter.
  traced_parameter* parameter(std::size_t value) {
    return parameter_of_[value] == axis_space::none ? nullptr : &parameters[parameter_of_[value]];
  }

 private:
  void make_all_whole(const graph_node& n, std::size_t because) {
    for (const std::size_t i : n.inputs) {
      if (i == network_graph::no_value) continue;
      for (const value_axis& a : values[i].axes) space.make_whole(a, because);
    }
    for (const std::size_t o : n.outputs) {
      if (o == network_graph::no_value) continue;
      values[o] = {};
      if (!graph.values[o].has_extents) continue;
      values[o].is_known = true;
      values[o].extents = graph.values[o].extents;
      for (const std::int64_t e : values[o].extents) {
        values[o].axes.push_back(space.fresh_whole(e, because));
      }
    }
  }
  void begin(std::size_t v) {
    const graph_value& given = graph.values[v];
    if (given.kind == value_kind::computed) return;
    if (given.kind == value_kind::parameter && !given.is_integer) {
      return make_parameter(v, given.extents);
    }
    traced_value& made = values[v];
    made.is_known = true;
    made.extents = given.extents;
    made.is_integer = given.is_integer;
    std::int64_t count = 1;
    for (const std::int64_t e : given.extents) count *= e;
    made.is_constant = given.kind != value_kind::input &&
                       count == static_cast<std::int64_t>(given.elements.size());
    if (made.is_constant) made.elements = given.elements;
    made.is_uniform = given.is_uniform;
    std::size_t why = axis_space::none;
    if (given.kind == value_kind::input) {
      why = space.reason("it is of the input '" + given.name + "'");
    } else if (!given.is_uniform) {
      why = space.reason("it meets constants that differ from node to node");
    }
    for (const std::int64_t e : given.extents) {
      made.axes.push_back(why == axis_space::none ? space.fresh(e) : space.fresh_whole(e, why));
    }
  }

  std::vector<std::size_t> parameter_of_;  // by value
};

}  // namespace subfed::inline v0::detail
