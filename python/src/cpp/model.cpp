// SPDX-License-Identifier: MIT
/// Model, GroupId, TensorId and Dimension.
#include <subfed/adapt/model_file.hpp>
#include <subfed/describe.hpp>
#include <subfed/detail/dimension_text.hpp>
#include <subfed/model.hpp>

#include "common.hpp"

#include <algorithm>
#include <map>

namespace subfed_python {

namespace {

subfed::role to_role(std::string_view word) {
  using subfed::role;
  return one_of<role>("the role", word,
                      {{"parameter", role::parameter},
                       {"statistic", role::statistic},
                       {"counter", role::counter},
                       {"local", role::local}});
}
subfed::cut to_cut(std::string_view word) {
  return one_of<subfed::cut>(
      "cut", word, {{"by_scheme", subfed::cut::by_scheme}, {"never", subfed::cut::never}});
}

/// A tensor of a model, for Python.
struct tensor_row {
  subfed::model net;
  std::size_t number;
  const subfed::model::tensor_info& info() const { return net.tensors()[number]; }
};

std::vector<tensor_row> rows_of(const subfed::model& net) {
  std::vector<tensor_row> out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) out.push_back({net, t});
  return out;
}

/// mark(): ids, names, lists of them, or a predicate over rows.
void mark(subfed::model& net, const py::object& which, const std::string& role) {
  const subfed::role is = to_role(role);
  std::vector<subfed::tensor_id> chosen;
  if (py::isinstance<py::str>(which) || py::isinstance<subfed::tensor_id>(which)) {
    chosen.push_back(to_tensor(net, which));
  } else if (PyCallable_Check(which.ptr()) != 0) {
    const auto rows = rows_of(net);
    for (const tensor_row& row : rows) {
      if (which(row).cast<bool>()) chosen.emplace_back(row.number);
    }
    if (chosen.empty()) {
      subfed::detail::fail("subfed: model: no tensor is chosen for the role " + role);
    }
  } else {
    for (const py::handle& each : which) chosen.push_back(to_tensor(net, each));
  }
  for (const subfed::tensor_id t : chosen) net.mark(t, is);
}

/// Names and shapes of a state_dict, in any order, against the description.
void check_shapes(const subfed::model& net, const py::object& tensors) {
  const py::object dict =
      py::hasattr(tensors, "state_dict") ? py::object(tensors.attr("state_dict")()) : tensors;
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const auto& item : py::dict(dict)) {
    std::vector<std::int64_t> shape;
    for (const py::handle& e : item.second.attr("shape")) shape.push_back(to_i64("extent", e));
    found[text_of(item.first)] = std::move(shape);
  }
  // In the order of the description, and then what it lacks: so that the messages are C++'s.
  std::vector<subfed::named_shape> in_order;
  for (const auto& tensor : net.tensors()) {
    const auto at = found.find(tensor.name);
    if (at == found.end()) {
      subfed::detail::fail("subfed: check_shapes: tensor '" + tensor.name + "' is missing",
                           {.tensor = tensor.name});
    }
    in_order.push_back({at->first, at->second});
    found.erase(at);
  }
  for (const auto& [name, shape] : found) in_order.push_back({name, shape});
  subfed::check_shapes(net, in_order);
}

}  // namespace

void bind_model(py::module_& m) {
  using subfed::dimension;
  using subfed::group_id;
  using subfed::model;
  using subfed::tensor_id;

  py::class_<group_id>(m, "GroupId", "A group of nodes of the model that made it.")
      .def_property_readonly("number", &group_id::number, "Its place among the model's groups.")
      .def("repeat", &group_id::repeat, "times"_a,
           "The nodes `times` times in a row: gates of an LSTM, heads cut inside, a channels-last "
           "flatten.")
      .def("block", &group_id::block, "elements"_a,
           "Each node stands for `elements` elements in a row: a channels-first flatten.")
      .def(
          "__eq__",
          [](group_id a, const py::object& b) {
            return py::isinstance<group_id>(b) && a == b.cast<group_id>();
          },
          "other"_a)
      .def("__hash__", [](group_id a) { return a.number(); })
      .def("__repr__", [](group_id g) { return "GroupId(" + std::to_string(g.number()) + ")"; });
  py::class_<tensor_id>(m, "TensorId", "A tensor of the model that made it.")
      .def_property_readonly("number", &tensor_id::number, "Its place among the model's tensors.")
      .def(
          "__eq__",
          [](tensor_id a, const py::object& b) {
            return py::isinstance<tensor_id>(b) && a == b.cast<tensor_id>();
          },
          "other"_a)
      .def("__hash__", [](tensor_id a) { return a.number(); })
      .def("__repr__", [](tensor_id t) { return "TensorId(" + std::to_string(t.number()) + ")"; });
  py::class_<dimension>(m, "Dimension",
                        "What a dimension of a tensor consists of: nodes of groups, and elements "
                        "that are never cut.")
      .def(py::init<std::int64_t>(), "extent"_a, "A dimension that every client holds whole.")
      .def(py::init<group_id>(), "group"_a, "A dimension whose elements are the nodes of a group.")
      .def("repeat", &dimension::repeat, "times"_a, "The whole dimension `times` times in a row.")
      .def("block", &dimension::block, "elements"_a, "Each element becomes `elements` in a row.")
      .def(
          "__eq__",
          [](const dimension& a, const py::object& b) {
            return py::isinstance<dimension>(b) && a == b.cast<const dimension&>();
          },
          "other"_a)
      .def("__repr__", [](const dimension& d) {
        return "<Dimension of " + std::to_string(d.parts().size()) +
               (d.parts().size() == 1 ? " part>" : " parts>");
      });
  m.def(
      "concat",
      [](const py::args& dimensions) {
        const model none;
        dimension out = subfed::concat({});
        for (const py::handle& d : dimensions) {
          if (py::isinstance<group_id>(d)) {
            out = subfed::concat({out, dimension(d.cast<group_id>())});
          } else {
            out = subfed::concat({out, to_dimension(none, d)});
          }
        }
        return out;
      },
      "Dimensions one after the other: what a layer reads after a concatenation.");

  py::class_<model::group_info>(m, "Group", "A group of a model, as it is described.")
      .def_readonly("name", &model::group_info::name)
      .def_readonly("extent", &model::group_info::extent, "Nodes.")
      .def_property_readonly(
          "cut",
          [](const model::group_info& g) {
            return g.cut == subfed::cut::never ? "never" : "by_scheme";
          },
          "'by_scheme' or 'never'.")
      .def("__repr__", [](const model::group_info& g) {
        return "Group(" + quoted(g.name) + ", " + std::to_string(g.extent) +
               (g.cut == subfed::cut::never ? ", cut='never')" : ")");
      });
  py::class_<tensor_row>(m, "Tensor", "A tensor of a model, as it is described.")
      .def_property_readonly("name", [](const tensor_row& t) { return t.info().name; })
      .def_property_readonly(
          "shape", [](const tensor_row& t) { return shape_tuple(t.info().extents); },
          "Shape of the server's tensor.")
      .def_property_readonly(
          "role", [](const tensor_row& t) { return std::string(subfed::role_text(t.info().role)); },
          "'parameter', 'statistic', 'counter' or 'local'.")
      .def_property_readonly("dimensions", [](const tensor_row& t) { return t.info().dimensions; })
      .def_property_readonly(
          "bound_to",
          [](const tensor_row& t) {
            return subfed::detail::dimensions_text(t.net, t.info().dimensions);
          },
          "What its dimensions consist of, in words: '(hidden, 20)'.")
      .def("__repr__", [](const tensor_row& t) {
        std::string out = "Tensor(" + quoted(t.info().name) + ", " +
                          subfed::detail::shape_text(t.info().extents) + " = " +
                          subfed::detail::dimensions_text(t.net, t.info().dimensions);
        return out + subfed::detail::role_note(t.info()) + ")";
      });

  py::class_<model>(m, "Model",
                    "A network as subfed sees it: groups of nodes that are kept or dropped "
                    "together, tensors, and which dimension of a tensor is which group.\n\n"
                    "Using a group twice ties the dimensions, so that a residual add cannot be cut "
                    "inconsistently.")
      .def(py::init<>())
      .def(
          "group",
          [](model& net, std::string name, std::int64_t extent, const std::string& cut) {
            return net.group(std::move(name), extent, to_cut(cut));
          },
          "name"_a, "extent"_a, "cut"_a = "by_scheme",
          "Declares a group of `extent` nodes. The name keys the random sets.")
      .def(
          "tensor",
          [](model& net, std::string name, const py::object& dimensions, const std::string& role) {
            return net.tensor(std::move(name), to_dimensions(net, dimensions), to_role(role));
          },
          "name"_a, "dimensions"_a, "role"_a = "parameter",
          "Describes a tensor by its dimensions: numbers, groups (ids or names), Dimensions.")
      .def(
          "mark",
          [](py::object self, const py::object& tensors, const std::string& role) {
            mark(self.cast<model&>(), tensors, role);
            return self;
          },
          "tensors"_a, "role"_a,
          "Gives another role to a tensor, to several, or to all for which a function of Tensor is "
          "true.")
      .def_property_readonly("groups",
                             [](const model& net) {
                               return std::vector<model::group_info>(net.groups().begin(),
                                                                     net.groups().end());
                             })
      .def_property_readonly("tensors", &rows_of)
      .def(
          "find_group",
          [](const model& net, const std::string& name) { return net.find_group(name); }, "name"_a)
      .def(
          "find_tensor",
          [](const model& net, const std::string& name) { return net.find_tensor(name); }, "name"_a)
      .def(
          "extent",
          [](const model& net, const py::object& d) { return net.extent(to_dimension(net, d)); },
          "dimension"_a, "Elements of a dimension.")
      .def_property_readonly("size", &model::size, "Elements of all tensors.")
      .def("check_shapes", &check_shapes, "tensors"_a,
           "Compares a state_dict, or a torch module's, with the description, by name.")
      .def(
          "to_dot", [](const model& net) { return subfed::draw_dot(net); },
          "Groups and tensors in the DOT language of Graphviz.")
      .def(
          "__eq__",
          [](const model& a, const py::object& b) {
            return py::isinstance<model>(b) && a == b.cast<const model&>();
          },
          "other"_a)
      .def("__copy__", [](const model& net) { return net; })
      .def(
          "__deepcopy__", [](const model& net, const py::dict&) { return net; }, "memo"_a)
      .def("__str__", [](const model& net) { return subfed::describe(net); })
      .def("__repr__",
           [](const model& net) {
             return "<subfed.Model: " + std::to_string(net.groups().size()) + " groups, " +
                    std::to_string(net.tensors().size()) + " tensors, " +
                    std::to_string(net.size()) + " elements>";
           })
      .def("to_json", &subfed::write_model,
           "The description as JSON text, for files and other languages: write_model of C++.")
      .def_static(
          "read", [](const std::string& text) { return subfed::read_model(text); }, "text"_a,
          "The model that to_json, or write_model of C++, described. The text may come from "
          "anywhere: what is wrong is refused.")
      .def(py::pickle(&subfed::write_model,
                      [](const std::string& text) { return subfed::read_model(text); }))
      .attr("__hash__") = py::none();
}

}  // namespace subfed_python
