// SPDX-License-Identifier: MIT
/// Networks from ONNX files. Their elements are not needed.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/adapt/detail/onnx_tensor.hpp>
#include <subfed/adapt/detail/wire_reader.hpp>
#include <subfed/error.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The extent of an input's axis that the file leaves open, by its name there, "batch", or, where it has
/// none, by the input and the number of the axis, "x[1]".
struct open_extent {
  std::string name;
  std::int64_t extent;
};

struct onnx_options {
  /// First axes that are not here are of extent 1.
  std::vector<open_extent> open_extents{};
};

namespace detail {

class onnx_reader {
 public:
  explicit onnx_reader(const onnx_options& options) : options_(options) {}

  network_graph read(std::span<const std::byte> file) {
    wire_reader model(file);
    std::vector<wire_reader> graphs;
    bool has_opset = false;
    while (model.next()) {
      if (model.is(7, wire_type::bytes)) {
        graphs.push_back(model.message());
      } else if (model.is(8, wire_type::bytes)) {
        has_opset = read_opset(model.message()) || has_opset;
      }
    }
    if (graphs.size() != 1 || !has_opset) {
      fail("subfed: onnx: the file is not a network: it has " + std::to_string(graphs.size()) +
           " graphs and " + (has_opset ? "an" : "no") + " operator set");
    }
    read_graph(graphs[0]);
    out_.check();
    return std::move(out_);
  }

 private:
  struct declared_shape {
    std::string_view name;
    bool is_tensor = false;
    bool is_integer = false;
    std::vector<std::int64_t> extents{};   // -1 where it is open
    std::vector<std::string_view> open{};  // names of the axes
  };

  bool read_opset(wire_reader set) {
    std::string_view domain;
    std::int64_t version = 0;
    while (set.next()) {
      if (set.is(1, wire_type::bytes)) {
        domain = set.text();
      } else if (set.is(2, wire_type::varint)) {
        version = set.integer();
      }
    }
    if (!domain.empty() && domain != "ai.onnx") return false;
    out_.opset = version;
    return true;
  }

  void read_graph(wire_reader graph) {
    std::vector<wire_reader> nodes, inputs, outputs, shapes;
    while (graph.next()) {
      if (graph.is(1, wire_type::bytes)) {
        nodes.push_back(graph.message());
      } else if (graph.is(5, wire_type::bytes)) {
        add_initializer(read_tensor(graph.message()));
      } else if (graph.is(11, wire_type::bytes)) {
        inputs.push_back(graph.message());
      } else if (graph.is(12, wire_type::bytes)) {
        outputs.push_back(graph.message());
      } else if (graph.is(13, wire_type::bytes)) {
        shapes.push_back(graph.message());
      }
    }
    const bool has_weights =
        std::any_of(out_.values.begin(), out_.values.end(),
                    [](const graph_value& v) { return v.kind == value_kind::parameter; });
    for (const wire_reader& i : inputs) add_input(read_shape(i), has_weights);
    for (const wire_reader& n : nodes) add_node(n);
    for (const wire_reader& o : outputs) {
      const declared_shape declared = read_shape(o);
      const auto at = numbers_.find(declared.name);
      if (at == numbers_.end()) {
        fail("subfed: onnx: nothing computes the output " + detail::quoted(declared.name));
      }
      out_.output(at->second);
      declare(declared);
    }
    for (const wire_reader& s : shapes) declare(read_shape(s));
    keep_numbers();
  }

  /// The name may be given once.
  std::size_t add(graph_value value) {
    const std::size_t number = out_.values.size();
    if (!value.name.empty() && !numbers_.emplace(value.name, number).second) {
      fail("subfed: onnx: the file has the value " + detail::quoted(value.name) + " twice");
    }
    out_.values.push_back(std::move(value));
    return number;
  }
  void add_initializer(onnx_tensor tensor) {
    graph_value value = value_of(std::move(tensor));
    if (!value.is_integer && !value.extents.empty()) value.kind = value_kind::parameter;
    add(std::move(value));
  }
  void add_input(const declared_shape& declared, bool has_weights) {
    if (numbers_.find(declared.name) != numbers_.end()) return;  // an initialiser
    if (!declared.is_tensor) {
      fail("subfed: onnx: the input " + detail::quoted(declared.name) +
           " is not a tensor with a shape");
    }
    graph_value value{std::string(declared.name), value_kind::input, true, declared.extents};
    value.is_integer = declared.is_integer;
    for (std::size_t r = 0; r < value.extents.size(); ++r) {
      if (value.extents[r] < 0) value.extents[r] = extent_of(declared, r);
    }
    // Without weights, parameters are inputs; those of a module have dots in their names.
    const bool is_parameter = !has_weights && !declared.is_integer && !value.extents.empty() &&
                              declared.name.find('.') != std::string_view::npos;
    if (is_parameter) value.kind = value_kind::parameter;
    add(std::move(value));
  }
  std::int64_t extent_of(const declared_shape& declared, std::size_t r) const {
    std::string name(declared.open[r]);
    if (name.empty()) name = std::string(declared.name) + "[" + std::to_string(r) + "]";
    for (const open_extent& o : options_.open_extents) {
      if (o.name == name) return o.extent;
    }
    if (r == 0) return 1;
    fail("subfed: onnx: the input " + detail::quoted(declared.name) + " leaves the extent " +
         detail::quoted(name) + " open; give one to open_extents");
  }

  void add_node(wire_reader from) {
    graph_node node;
    std::string_view domain;
    std::vector<std::string> outputs;
    std::vector<onnx_tensor> tensors;
    while (from.next()) {
      if (from.is(1, wire_type::bytes)) {
        node.inputs.push_back(number_of(from.text()));
      } else if (from.is(2, wire_type::bytes)) {
        outputs.emplace_back(from.text());
      } else if (from.is(3, wire_type::bytes)) {
        node.name = from.text();
      } else if (from.is(4, wire_type::bytes)) {
        node.op = from.text();
      } else if (from.is(5, wire_type::bytes)) {
        add_attribute(node, tensors, from.message(), 0);
      } else if (from.is(7, wire_type::bytes)) {
        domain = from.text();
      }
    }
    if (!domain.empty() && domain != "ai.onnx") node.op = std::string(domain) + "::" + node.op;
    if (node.op == "Constant" && outputs.size() == 1)
      return add_constant(outputs[0], node, tensors);
    for (std::string& o : outputs) {
      node.outputs.push_back(o.empty() ? network_graph::no_value : add({std::move(o)}));
    }
    out_.nodes.push_back(std::move(node));
  }
  std::size_t number_of(std::string_view name) const {
    if (name.empty()) return network_graph::no_value;
    const auto at = numbers_.find(name);
    if (at != numbers_.end()) return at->second;
    fail("subfed: onnx: an operator reads " + detail::quoted(name) +
         ", which nothing before it computes");
  }

  void add_attribute(graph_node& node, std::vector<onnx_tensor>& tensors, wire_reader from,
                     int depth) {
    graph_attribute out;
    while (from.next()) {
      if (from.is(1, wire_type::bytes)) {
        out.name = from.text();
      } else if (from.is(2, wire_type::fixed32)) {
        out.real = as_float(from.fixed());
      } else if (from.is(3, wire_type::varint)) {
        out.integers = {from.integer()};
      } else if (from.is(4, wire_type::bytes)) {
        out.text = from.text();
      } else if (from.is(5, wire_type::bytes)) {
        tensors.push_back(read_tensor(from.message()));
        const onnx_tensor& t = tensors.back();
        if (t.elements.size() != 1) continue;
        out.real = t.elements[0];
        if (t.is_integer) out.integers = {as_integer(out.real)};
      } else if (from.is(6, wire_type::bytes) || from.is(11, wire_type::bytes)) {
        add_captured(node, from.message(), depth);
      } else if (from.is(8, wire_type::bytes) || from.is(8, wire_type::varint)) {
        from.varints(
            [&](std::uint64_t n) { out.integers.push_back(static_cast<std::int64_t>(n)); });
      }
    }
    node.attributes.push_back(std::move(out));
  }
  /// Values that a graph inside of an operator reads: the operator's inputs too.
  void add_captured(graph_node& node, wire_reader graph, int depth) {
    if (depth > 16) graph.refuse("graphs inside of graphs, more than 16 deep");
    while (graph.next()) {
      if (!graph.is(1, wire_type::bytes)) continue;
      wire_reader inner = graph.message();
      while (inner.next()) {
        if (inner.is(1, wire_type::bytes)) {
          const auto at = numbers_.find(inner.text());
          if (at != numbers_.end()) node.inputs.push_back(at->second);
        } else if (inner.is(5, wire_type::bytes)) {
          wire_reader attribute = inner.message();
          while (attribute.next()) {
            if (attribute.is(6, wire_type::bytes) || attribute.is(11, wire_type::bytes)) {
              add_captured(node, attribute.message(), depth + 1);
            }
          }
        }
      }
    }
  }

  void add_constant(const std::string& name, const graph_node& node,
                    std::vector<onnx_tensor>& tensors) {
    graph_value value{name, value_kind::constant, true};
    if (!tensors.empty()) {
      value = value_of(std::move(tensors[0]));
      value.name = name;
    } else if (const graph_attribute* one = node.find("value_float")) {
      value.elements = {one->real};
      value.is_uniform = true;
    } else if (!node.attributes.empty()) {
      const graph_attribute& a = node.attributes[0];
      for (const std::int64_t n : a.integers) value.elements.push_back(static_cast<double>(n));
      if (a.name != "value_int") value.extents = {static_cast<std::int64_t>(a.integers.size())};
      value.is_integer = true;
      value.is_uniform = all_equal(value.elements);
    }
    add(std::move(value));
  }
  static graph_value value_of(onnx_tensor tensor) {
    graph_value out{std::string(tensor.name), value_kind::constant, true,
                    std::move(tensor.extents)};
    out.elements = std::move(tensor.elements);
    out.is_integer = tensor.is_integer;
    out.is_uniform = tensor.is_uniform;
    return out;
  }
  /// Numbers that some operators are told as tensors are not the network's state.
  void keep_numbers() {
    for (const graph_node& n : out_.nodes) {
      if (n.op != "Resize" && n.op != "Upsample" && n.op != "Clip" && n.op != "Pad") continue;
      for (std::size_t i = 1; i < n.inputs.size(); ++i) {
        if (n.inputs[i] == network_graph::no_value) continue;
        graph_value& v = out_.values[n.inputs[i]];
        if (v.kind == value_kind::parameter) v.kind = value_kind::constant;
      }
    }
  }

  declared_shape read_shape(wire_reader info) const {
    declared_shape out;
    while (info.next()) {
      if (info.is(1, wire_type::bytes)) {
        out.name = info.text();
      } else if (info.is(2, wire_type::bytes)) {
        wire_reader type = info.message();
        while (type.next()) {
          if (type.is(1, wire_type::bytes)) read_tensor_type(type.message(), out);
        }
      }
    }
    return out;
  }
  static void read_tensor_type(wire_reader tensor, declared_shape& out) {
    while (tensor.next()) {
      if (tensor.is(1, wire_type::varint)) {
        out.is_integer = onnx_tensor::is_integer_type(tensor.integer());
      } else if (tensor.is(2, wire_type::bytes)) {
        out.is_tensor = true;
        wire_reader shape = tensor.message();
        while (shape.next()) {
          if (!shape.is(1, wire_type::bytes)) continue;
          out.extents.push_back(-1);
          out.open.emplace_back();
          wire_reader extent = shape.message();
          while (extent.next()) {
            if (extent.is(1, wire_type::varint)) {
              const std::int64_t n = extent.integer();
              if (n < 0) extent.refuse("the extent " + std::to_string(n));
              out.extents.back() = n;
            } else if (extent.is(2, wire_type::bytes)) {
              out.open.back() = extent.text();
            }
          }
        }
      }
    }
  }
  /// The file's own word about a value that is computed, where it leaves nothing open.
  void declare(const declared_shape& declared) {
    const auto at = numbers_.find(declared.name);
    if (at == numbers_.end() || !declared.is_tensor || !options_.open_extents.empty()) return;
    graph_value& value = out_.values[at->second];
    for (const std::int64_t e : declared.extents) {
      if (e < 0) return;
    }
    if (value.kind != value_kind::computed) return;
    value.has_extents = true;
    value.extents = declared.extents;
  }

  const onnx_options& options_;
  network_graph out_;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // of values, by name
};

}  // namespace detail

/// The network of an ONNX file. Its floating-point initialisers are parameters, under their names; integers
/// are constants. Tensors that are stored in other files are never opened: names and shapes suffice.
///
/// Every parameter keeps its name, and stays as it is in the module, where PyTorch exports with
///
///   torch.onnx.export(copy.deepcopy(net), x, "net.onnx", do_constant_folding=False,
///                     training=torch.onnx.TrainingMode.TRAINING)
///
/// The file may come from anywhere.
///
/// Throws  error with the place in the file, for bytes that are not of the format, and as
///         network_graph::check.
/// Cost    O(n log n) for n values, memory in proportion to the file without its weights.
template <class Bytes>
requires detail::byte_range<const Bytes&> network_graph
read_onnx(const Bytes& file, const onnx_options& options = {}) {
  return detail::onnx_reader(options).read(detail::as_bytes(file));
}

}  // namespace subfed::inline v0
