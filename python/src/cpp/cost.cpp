// SPDX-License-Identifier: MIT
/// Parameters, bytes and operations of a client.
#include <subfed/cost.hpp>

#include "common.hpp"

#include <optional>

namespace subfed_python {

namespace {

using subfed::cost_rule;
using subfed::workload;

const std::initializer_list<std::pair<std::string_view, subfed::role>> role_words = {
    {"parameter", subfed::role::parameter},
    {"statistic", subfed::role::statistic},
    {"counter", subfed::role::counter},
    {"local", subfed::role::local}};

/// A rule by its name, or as a dict of what it counts.
cost_rule to_rule(const py::object& rule) {
  if (py::isinstance<py::dict>(rule)) {
    cost_rule out;
    for (const auto& [key, value] : rule.cast<py::dict>()) {
      const std::string name = text_of(key);
      const auto n = to_i64("count of " + name, value);
      (name == "convolution"     ? out.convolution
       : name == "linear"        ? out.linear
       : name == "bias"          ? out.bias
       : name == "attention"     ? out.attention
       : name == "normalization" ? out.normalization
       : name == "pooling"       ? out.pooling
       : name == "elementwise"
           ? out.elementwise
           : throw py::type_error("subfed: a cost rule counts no '" + name + "'")) = n;
    }
    return out;
  }
  using make = cost_rule (*)();
  return one_of<make>("the cost rule", to_word("the cost rule", rule),
                      {{"multiply_adds", &cost_rule::multiply_adds},
                       {"rolex", &cost_rule::rolex},
                       {"feddrop_tables", &cost_rule::feddrop_tables},
                       {"feddrop_equations", &cost_rule::feddrop_equations}})();
}

/// A layer as the helpers of Model give it, or the id or name of its weight.
struct counted {
  subfed::model net;
  workload work;

  explicit counted(const subfed::model& of) : net(of), work(of) {}
  subfed::weight_and_bias layer(const py::object& which) const {
    if (!py::isinstance<py::tuple>(which)) return {to_tensor(net, which), {}};
    const auto parts = which.cast<py::tuple>();
    subfed::weight_and_bias out{to_tensor(net, parts[0]), {}};
    if (!py::object(parts[1]).is_none()) out.bias = to_tensor(net, parts[1]);
    return out;
  }
  subfed::dimension dimension(const py::object& what) const { return to_dimension(net, what); }
};

}  // namespace

void bind_cost(py::module_& m) {
  using subfed::submodel;

  m.def(
      "parameters",
      [](const submodel& sub, const std::string& role) {
        return subfed::parameters(sub, one_of<subfed::role>("the role", role, role_words));
      },
      "sub"_a, "role"_a = "parameter", "Elements that a client holds of all tensors of a role.");
  m.def(
      "traffic",
      [](const submodel& sub, const std::string& lists, const py::object& element_bytes,
         std::int64_t index_bytes) {
        using subfed::index_lists;
        subfed::traffic_options options;
        options.lists = one_of<index_lists>("lists", lists,
                                            {{"derived", index_lists::derived},
                                             {"sent_down", index_lists::sent_down},
                                             {"sent_both_ways", index_lists::sent_both_ways}});
        options.index_bytes = index_bytes;
        std::vector<std::int64_t> each;
        if (PyIndex_Check(element_bytes.ptr()) != 0) {
          options.element_bytes = to_i64("bytes of an element", element_bytes);
        } else {
          for (const auto& tensor : sub.parent().tensors()) {
            each.push_back(to_i64("bytes of an element of '" + tensor.name + "'",
                                  py::object(element_bytes[py::str(tensor.name)])));
          }
          options.tensor_element_bytes = each;
        }
        const subfed::traffic_bytes bytes = subfed::traffic(sub, options);
        return py::make_tuple(bytes.down, bytes.up);
      },
      "sub"_a, "lists"_a = "derived", "element_bytes"_a = 4, "index_bytes"_a = 4,
      "Bytes (down, up) of one client in one round. element_bytes: one number, or a dict by name.");

  py::class_<counted>(m, "Workload",
                      "The operations of one forward pass of one sample: each is listed with the "
                      "places where it is done.")
      .def(py::init<const subfed::model&>(), "net"_a)
      .def(
          "convolution",
          [](counted& c, const py::object& layer, std::int64_t positions) -> counted& {
            c.work.convolution(c.layer(layer), positions);
            return c;
          },
          "layer"_a, "positions"_a, "positions: output places.",
          py::return_value_policy::reference_internal)
      .def(
          "transposed_convolution",
          [](counted& c, const py::object& layer, std::int64_t input_positions,
             std::int64_t output_positions) -> counted& {
            c.work.transposed_convolution(c.layer(layer), input_positions, output_positions);
            return c;
          },
          "layer"_a, "input_positions"_a, "output_positions"_a,
          py::return_value_policy::reference_internal)
      .def(
          "linear",
          [](counted& c, const py::object& layer, std::int64_t positions) -> counted& {
            c.work.linear(c.layer(layer), positions);
            return c;
          },
          "layer"_a, "positions"_a = 1, py::return_value_policy::reference_internal)
      .def(
          "attention",
          [](counted& c, const py::object& heads, std::int64_t pairs) -> counted& {
            c.work.attention(c.dimension(heads), pairs);
            return c;
          },
          "heads"_a, "pairs"_a, py::return_value_policy::reference_internal)
      .def(
          "normalization",
          [](counted& c, const py::object& channels, std::int64_t positions) -> counted& {
            c.work.normalization(c.dimension(channels), positions);
            return c;
          },
          "channels"_a, "positions"_a = 1, py::return_value_policy::reference_internal)
      .def(
          "pooling",
          [](counted& c, const py::object& channels, std::int64_t positions) -> counted& {
            c.work.pooling(c.dimension(channels), positions);
            return c;
          },
          "channels"_a, "positions"_a, py::return_value_policy::reference_internal)
      .def(
          "elementwise",
          [](counted& c, const py::object& elements, std::int64_t positions) -> counted& {
            c.work.elementwise(c.dimension(elements), positions);
            return c;
          },
          "elements"_a, "positions"_a = 1, py::return_value_policy::reference_internal)
      .def(
          "count",
          [](const counted& c, const submodel& sub, const py::object& rule) {
            return c.work.count(sub, to_rule(rule));
          },
          "sub"_a, "rule"_a = "multiply_adds",
          "Operations of one sample. rule: 'multiply_adds', 'rolex', 'feddrop_tables', "
          "'feddrop_equations', or a dict of what each kind counts.")
      .def(
          "counts",
          [](const counted& c, const submodel& sub, const py::object& rule) {
            return c.work.counts(sub, to_rule(rule));
          },
          "sub"_a, "rule"_a = "multiply_adds", "The same, each operation alone.")
      .def(
          "features", [](const counted& c, const submodel& sub) { return c.work.features(sub); },
          "sub"_a, "Elements that convolutions and linear layers write for one sample.");
}

}  // namespace subfed_python
