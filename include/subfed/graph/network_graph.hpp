// SPDX-License-Identifier: MIT
/// A network as operators between values: what a description is derived from.
#pragma once

#include <subfed/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What a value of a graph is: the network's input; a tensor of its state, learned or a buffer; numbers that
/// are part of the program; or what an operator computes.
enum class value_kind { computed, input, parameter, constant };

struct graph_value {
  std::string name;
  value_kind kind = value_kind::computed;
  bool has_extents = false;             ///< otherwise they follow from the operator, if it is known
  std::vector<std::int64_t> extents{};  ///< of an example run: every extent is a number
  std::vector<double> elements{};       ///< of a small constant
  bool is_uniform = false;              ///< a constant whose elements are all equal
  bool is_integer = false;              ///< of a constant or parameter
};

/// An attribute of an operator: integers, a number, or a text.
struct graph_attribute {
  std::string name;
  std::vector<std::int64_t> integers{};
  double real = 0;
  std::string text{};
};

struct graph_node {
  std::string op;
  std::vector<std::size_t>
      inputs;  ///< numbers of values; network_graph::no_value where one is left out
  std::vector<std::size_t> outputs;
  std::vector<graph_attribute> attributes{};
  std::string name{};

  /// Null where there is no such attribute.
  const graph_attribute* find(std::string_view attribute) const noexcept {
    for (const graph_attribute& a : attributes) {
      if (a.name == attribute) return &a;
    }
    return nullptr;
  }
  std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const noexcept {
    const graph_attribute* a = find(attribute);
    return a == nullptr || a->integers.empty() ? otherwise : a->integers[0];
  }
};

/// A network's operators, each after those whose values it reads.
///
/// Operators have the names, inputs and attributes of ONNX (https://onnx.ai/onnx/operators) in the version
/// `opset`; where a version has moved an attribute to an input, both are understood. An operator of another
/// name is not an error: what it touches is not cut.
///
///   subfed::network_graph graph;
///   const auto x = graph.input("x", {1, 20});
///   const auto w1 = graph.parameter("fc1.weight", {64, 20});
///   const auto w2 = graph.parameter("fc2.weight", {10, 64});
///   const auto h = graph.apply("Gemm", {x, w1}, {{"transB", {1}}});
///   graph.output(graph.apply("Gemm", {graph.apply("Relu", {h}), w2}, {{"transB", {1}}}));
struct network_graph {
  static constexpr std::size_t no_value = (std::numeric_limits<std::size_t>::max)();

  std::vector<graph_value> values{};
  std::vector<graph_node> nodes{};
  std::vector<std::size_t> outputs{};
  std::int64_t opset = 17;

  std::size_t input(std::string name, std::vector<std::int64_t> extents) {
    return add({std::move(name), value_kind::input, true, std::move(extents)});
  }
  std::size_t parameter(std::string name, std::vector<std::int64_t> extents) {
    return add({std::move(name), value_kind::parameter, true, std::move(extents)});
  }
  /// A constant of rank 1.
  std::size_t integers(std::initializer_list<std::int64_t> elements) {
    graph_value made{"", value_kind::constant, true, {static_cast<std::int64_t>(elements.size())}};
    for (const std::int64_t e : elements) made.elements.push_back(static_cast<double>(e));
    made.is_integer = true;
    made.is_uniform = std::all_of(elements.begin(), elements.end(),
                                  [&](std::int64_t e) { return e == *elements.begin(); });
    return add(std::move(made));
  }
  /// A constant of rank 0.
  std::size_t number(double element) {
    return add({"", value_kind::constant, true, {}, {element}, true});
  }

  /// Appends an operator and returns the first of its `count` outputs; the others have the numbers after it.
  std::size_t apply(std::string op, std::vector<std::size_t> inputs,
                    std::vector<graph_attribute> attributes = {}, std::size_t count = 1) {
    graph_node made{std::move(op), std::move(inputs), {}, std::move(attributes)};
    for (std::size_t i = 0; i < count; ++i) made.outputs.push_back(add({}));
    nodes.push_back(std::move(made));
    return nodes.back().outputs[0];
  }
  void output(std::size_t value) { outputs.push_back(value); }

  /// Throws  error for a number that is no value's, a value that is read before it is computed or computed
  ///         twice, a negative extent, or a value of more than 2^63 - 1 elements.
  void check() const {
    std::vector<bool> there;
    for (const graph_value& v : values) {
      there.push_back(v.kind != value_kind::computed);
      if (!v.has_extents && v.kind != value_kind::computed) {
        detail::fail("subfed: graph: the value '" + v.name + "' has no shape", {.tensor = v.name});
      }
      std::int64_t n = 1;
      for (const std::int64_t e : v.extents) {
        constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
        if (e < 0 || (e > 0 && n > most / e)) {
          detail::fail("subfed: graph: the value '" + v.name + "' has the shape " +
                           detail::shape_text(v.extents) +
                           ", which is negative or of more than 2^63 - 1 elements",
                       {.tensor = v.name});
        }
        n *= (std::max)(e, std::int64_t{1});
      }
    }
    for (const graph_node& node : nodes) {
      for (const std::size_t i : node.inputs) check_there(node.op, i, there, true);
      for (const std::size_t o : node.outputs) {
        check_there(node.op, o, there, false);
        if (o != no_value) there[o] = true;
      }
    }
    for (const std::size_t o : outputs) {
      if (o == no_value || o >= values.size() || !there[o]) {
        detail::fail("subfed: graph: an output of the network is not computed");
      }
    }
  }

 private:
  std::size_t add(graph_value value) {
    values.push_back(std::move(value));
    return values.size() - 1;
  }
  void check_there(const std::string& op, std::size_t value, const std::vector<bool>& there,
                   bool expected) const {
    if (value == no_value || (value < there.size() && there[value] == expected)) return;
    detail::fail("subfed: graph: an operator " + op +
                 (value >= values.size() ? " uses a value that is not there"
                  : expected
                      ? " reads '" + values[value].name + "', which nothing before it computes"
                      : " computes '" + values[value].name + "', which is there before it"));
  }
};

}  // namespace subfed::inline v0
