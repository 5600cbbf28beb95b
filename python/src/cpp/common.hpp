// SPDX-License-Identifier: MIT
/// What all files of the binding share: words for enumerations, and Python's numbers, names and
/// nodes as those of the library. Each file binds one idea; module.cpp calls them in order.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <subfed/dimension.hpp>
#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed_python {

namespace py = pybind11;
using namespace py::literals;

void bind_error(py::module_& m);
void bind_model(py::module_& m);
void bind_layers(py::module_& m);
void bind_sets(py::module_& m);
void bind_schemes(py::module_& m);
void bind_submodel(py::module_& m);
void bind_copies(py::module_& m);
void bind_average(py::module_& m);
void bind_server(py::module_& m);
void bind_cost(py::module_& m);
void bind_coverage(py::module_& m);
void bind_theory(py::module_& m);
void bind_proof(py::module_& m);
void bind_graph(py::module_& m);

/// A value of an enumeration by its word.
///
/// Throws  error that lists the words.
template <class E>
E one_of(const char* what, std::string_view word,
         std::initializer_list<std::pair<std::string_view, E>> words) {
  std::string all;
  for (const auto& [text, value] : words) {
    if (text == word) return value;
    all += (all.empty() ? "'" : ", '") + std::string(text) + "'";
  }
  subfed::detail::fail("subfed: " + std::string(what) + " is '" + std::string(word) +
                       "', expected one of " + all);
}
template <class E>
std::string word_of(E value, std::initializer_list<std::pair<std::string_view, E>> words) {
  for (const auto& [text, other] : words) {
    if (other == value) return std::string(text);
  }
  return {};
}

inline std::string text_of(const py::handle& object) { return py::str(object); }
inline std::string type_name(const py::handle& object) { return Py_TYPE(object.ptr())->tp_name; }
/// As Python writes it: with quotes and escapes.
inline std::string quoted(const std::string& text) { return py::repr(py::str(text)); }

/// A number of a client, round, seed: anything with __index__, up to 2^64 - 1.
///
/// Throws  error for one out of range; TypeError for what is no integer.
inline std::uint64_t to_u64(const char* what, const py::handle& object) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!number) throw py::error_already_set();
  const std::uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
  if (value == static_cast<std::uint64_t>(-1) && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    subfed::detail::fail("subfed: the " + std::string(what) + " is " + text_of(number) +
                         ", expected 0 to 2^64 - 1");
  }
  return value;
}

/// A whole number of 64 bits with its sign: anything with __index__.
///
/// Throws  error for one out of range; TypeError for what is no integer.
inline std::int64_t to_i64(const std::string& what, const py::handle& object) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!number) throw py::error_already_set();
  int beyond = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &beyond);
  if (beyond != 0) {
    subfed::detail::fail("subfed: the " + what + " is " + text_of(number) +
                         ", expected -2^63 to 2^63 - 1");
  }
  return value;
}

/// A real number: what float() takes, except text.
///
/// Throws  error for an integer that a double cannot hold; TypeError for what is no number.
inline double to_real(const std::string& what, const py::handle& object) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value != -1 || PyErr_Occurred() == nullptr) return value;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
    PyErr_Clear();
    subfed::detail::fail("subfed: the " + what + " is more than a double can hold");
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw py::type_error("subfed: the " + what + " is given as '" + type_name(object) +
                       "', expected a number");
}

/// Text.
///
/// Throws  TypeError for what is none.
inline std::string to_word(const std::string& what, const py::handle& object) {
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  throw py::type_error("subfed: " + what + " is given as '" + type_name(object) +
                       "', expected text");
}

/// A group by its id or its name.
inline subfed::group_id to_group(const subfed::model& net, const py::handle& which) {
  if (py::isinstance<py::str>(which)) return net.find_group(which.cast<std::string>());
  if (py::isinstance<subfed::group_id>(which)) return which.cast<subfed::group_id>();
  throw py::type_error("subfed: a group is given as '" + type_name(which) +
                       "', expected a GroupId or a name");
}
/// A tensor by its id or its name; of a layer that is its weight.
inline subfed::tensor_id to_tensor(const subfed::model& net, const py::handle& which) {
  if (py::isinstance<py::tuple>(which) && py::hasattr(which, "weight")) {
    return to_tensor(net, which.attr("weight"));
  }
  if (py::isinstance<py::str>(which)) return net.find_tensor(which.cast<std::string>());
  if (py::isinstance<subfed::tensor_id>(which)) return which.cast<subfed::tensor_id>();
  throw py::type_error("subfed: a tensor is named by a '" + type_name(which) +
                       "', expected a TensorId or a name");
}

/// A dimension: a number of elements, a group by its id or name, or a Dimension.
inline subfed::dimension to_dimension(const subfed::model& net, const py::handle& what) {
  if (py::isinstance<subfed::dimension>(what)) return what.cast<subfed::dimension>();
  if (py::isinstance<py::str>(what) || py::isinstance<subfed::group_id>(what)) {
    return subfed::dimension(to_group(net, what));
  }
  if (PyIndex_Check(what.ptr()) != 0) return subfed::dimension(to_i64("extent", what));
  throw py::type_error("subfed: a dimension is given as '" + type_name(what) +
                       "', expected a number, a GroupId, a Dimension or the name of a group");
}
inline std::vector<subfed::dimension> to_dimensions(const subfed::model& net,
                                                    const py::handle& list) {
  std::vector<subfed::dimension> out;
  for (const py::handle& d : py::reinterpret_borrow<py::object>(list)) {
    out.push_back(to_dimension(net, d));
  }
  return out;
}

inline py::tuple shape_tuple(std::span<const std::int64_t> extents) {
  py::tuple out(extents.size());
  for (std::size_t r = 0; r < extents.size(); ++r) out[r] = py::int_(extents[r]);
  return out;
}

}  // namespace subfed_python
