// SPDX-License-Identifier: MIT
/// Capacity and IndexSet.
#include "bytes.hpp"
#include "schemes.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <cstring>

namespace subfed_python {

namespace {

const std::initializer_list<std::pair<std::string_view, subfed::rounding>> rounding_words = {
    {"floor", subfed::rounding::floor},
    {"ceil", subfed::rounding::ceil},
    {"nearest", subfed::rounding::nearest}};

std::string set_text(const subfed::index_set& s) {
  std::string out = "IndexSet(" + std::to_string(s.extent()) + ", [";
  std::int64_t shown = 0;
  for (const std::int64_t node : s) {
    if (shown == 10) {
      out += ", ..";
      break;
    }
    out += (shown++ == 0 ? "" : ", ") + std::to_string(node);
  }
  return out + "])";
}

}  // namespace

py::tuple set_state(const subfed::index_set& set) {
  py::tuple runs(set.runs().size());
  for (std::size_t r = 0; r < set.runs().size(); ++r) {
    runs[r] = py::make_tuple(set.runs()[r].first, set.runs()[r].length);
  }
  return py::make_tuple(set.extent(), runs);
}
subfed::index_set set_from(const py::tuple& state) {
  std::vector<subfed::run> runs;
  for (const py::handle& each : py::tuple(state[1])) {
    const auto pair = py::reinterpret_borrow<py::tuple>(each);
    runs.push_back({0, pair[0].cast<std::int64_t>(), pair[1].cast<std::int64_t>()});
  }
  return subfed::index_set::from_runs(state[0].cast<std::int64_t>(), runs);
}

py::tuple capacity_state(const subfed::capacity& share) {
  const subfed::capacity::parts p = share.to_parts();
  return py::make_tuple(p.value, p.relative_error, p.numerator, p.denominator);
}
subfed::capacity capacity_from(const py::handle& state) {
  if (PyFloat_Check(state.ptr()) != 0) return PyFloat_AS_DOUBLE(state.ptr());  // of older pickles
  const auto parts = state.cast<py::tuple>();
  return subfed::capacity::from_parts({parts[0].cast<double>(), parts[1].cast<double>(),
                                       parts[2].cast<std::int64_t>(),
                                       parts[3].cast<std::int64_t>()});
}

subfed::rounding to_rounding(std::string_view word) {
  return one_of<subfed::rounding>("the rounding", word, rounding_words);
}
std::string rounding_word(subfed::rounding mode) { return word_of(mode, rounding_words); }

subfed::capacity to_capacity(const py::handle& object) {
  if (py::isinstance<subfed::capacity>(object)) return object.cast<subfed::capacity>();
  if (PyFloat_Check(object.ptr()) != 0) return PyFloat_AS_DOUBLE(object.ptr());
  if (PyLong_Check(object.ptr()) != 0) return to_real("capacity", object);
  const char* const type = Py_TYPE(object.ptr())->tp_name;
  if (std::strcmp(type, "numpy.float32") == 0) return object.cast<float>();
  if (PyNumber_Check(object.ptr()) == 0 || PyUnicode_Check(object.ptr()) != 0) {
    throw py::type_error(std::string("subfed: a capacity is given as '") + type +
                         "', expected a number, a fraction or a Capacity");
  }
  if (py::hasattr(object, "numerator") && py::hasattr(object, "denominator")) {
    return subfed::capacity::ratio(to_i64("capacity's numerator", object.attr("numerator")),
                                   to_i64("capacity's denominator", object.attr("denominator")));
  }
  return to_real("capacity", object);
}

subfed::index_set to_index_set(std::int64_t extent, const py::handle& nodes) {
  if (py::isinstance<subfed::index_set>(nodes)) return nodes.cast<subfed::index_set>();
  std::vector<std::int64_t> list;
  for (const py::handle& node : py::reinterpret_borrow<py::object>(nodes)) {
    if (PyBool_Check(node.ptr()) != 0 || type_name(node).starts_with("numpy.bool")) {
      throw py::type_error(
          "subfed: index_set: a mask is given, expected the numbers of nodes: "
          "numpy.flatnonzero(mask)");
    }
    list.push_back(to_i64("node at position " + std::to_string(list.size()), node));
  }
  return subfed::index_set(extent, list);
}

void bind_sets(py::module_& m) {
  using subfed::capacity;
  using subfed::index_set;

  py::class_<capacity>(m, "Capacity",
                       "The share of a model's nodes that a client holds, in (0, 1]. A fraction is "
                       "exact; a float within its own rounding error of a whole number of nodes "
                       "counts as that.")
      .def(py::init([](const py::object& share) { return to_capacity(share); }), "share"_a)
      .def_static("ratio", &capacity::ratio, "numerator"_a, "denominator"_a,
                  "numerator / denominator, without rounding.")
      .def_property_readonly("value", &capacity::value)
      .def(
          "of",
          [](const capacity& c, std::int64_t extent, const std::string& mode,
             std::int64_t minimum) { return c.of(extent, to_rounding(mode), minimum); },
          "extent"_a, "rounding"_a = "floor", "minimum"_a = 1, "Nodes kept of `extent`.")
      .def("__float__", &capacity::value)
      .def(
          "__eq__",
          [](const capacity& a, const py::object& b) {
            return py::isinstance<capacity>(b) && a == b.cast<capacity>();
          },
          "other"_a)
      .def("__hash__", [](const capacity& c) { return py::hash(py::float_(c.value())); })
      .def("__repr__",
           [](const capacity& c) {
             return "Capacity(" + std::string(py::repr(py::float_(c.value()))) + ")";
           })
      .def(
          py::pickle(&capacity_state, [](const py::tuple& state) { return capacity_from(state); }));

  py::class_<index_set>(
      m, "IndexSet",
      "Distinct nodes of a group in an order: position p of the sub-model is node "
      "s[p] of the server's.")
      .def(py::init([](std::int64_t extent, const py::object& nodes) {
             if (!py::isinstance<index_set>(nodes)) return to_index_set(extent, nodes);
             const auto& other = nodes.cast<const index_set&>();  // perhaps of another extent
             return index_set::from_runs(extent, other.runs());
           }),
           "extent"_a, "nodes"_a = py::tuple())
      .def_static("full", &index_set::full, "extent"_a, "All nodes.")
      .def_static("prefix", &index_set::prefix, "extent"_a, "count"_a, "The first nodes.")
      .def_static("window", &index_set::window, "extent"_a, "first"_a, "count"_a,
                  "`count` nodes from `first` on, continuing at 0 after the last one.")
      .def_property_readonly("extent", &index_set::extent, "Nodes of the whole group.")
      .def_property_readonly(
          "runs",
          [](const index_set& s) {
            py::list out;
            for (const subfed::run& r : s.runs()) {
              out.append(py::make_tuple(r.position, r.first, r.length));
            }
            return out;
          },
          "(position, first node, length) of each run.")
      .def("is_full", &index_set::is_full)
      .def("is_ascending", &index_set::is_ascending)
      .def(
          "numpy",
          [](const index_set& s) {
            py::array_t<std::int64_t> out(static_cast<py::ssize_t>(s.size()));
            std::copy(s.begin(), s.end(), out.mutable_data());
            return out;
          },
          "The nodes as an array of int64, for indexing.")
      .def(
          "__array__",
          [](const py::object& s, const py::object& dtype, const py::object&) {
            py::object out = s.attr("numpy")();
            return dtype.is_none() ? out : py::object(out.attr("astype")(dtype));
          },
          "dtype"_a = py::none(), "copy"_a = py::none())
      .def("__len__", &index_set::size)
      .def(
          "__getitem__",
          [](const index_set& s, std::int64_t position) {
            if (position < 0) position += s.size();
            if (position < 0 || position >= s.size()) {
              throw py::index_error("subfed: an IndexSet of " + std::to_string(s.size()) +
                                    " nodes");
            }
            return s[position];
          },
          "position"_a)
      .def(
          "__iter__",
          [](const index_set& s) {
            return py::make_iterator<py::return_value_policy::copy, index_set::const_iterator,
                                     index_set::const_iterator, std::int64_t>(s.begin(), s.end());
          },
          py::keep_alive<0, 1>())
      .def(
          "__contains__", [](const index_set& s, std::int64_t node) { return s.contains(node); },
          "node"_a)
      .def(
          "__eq__",
          [](const index_set& a, const py::object& b) {
            return py::isinstance<index_set>(b) && a == b.cast<const index_set&>();
          },
          "other"_a)
      .def("__hash__", [](const index_set& s) { return py::hash(set_state(s)); })
      .def("__repr__", &set_text)
      .def(py::pickle(&set_state, &set_from));
}

}  // namespace subfed_python
