// SPDX-License-Identifier: MIT
/// subfed.Error: the library's error as a ValueError that says which tensor, group and client.
#include "common.hpp"

#include <exception>

namespace subfed_python {

namespace {

PyObject* error_type = nullptr;  // lives as long as the interpreter

void raise(const subfed::error& wrong) {
  const py::object made = py::reinterpret_borrow<py::object>(error_type)(py::str(wrong.what()));
  made.attr("tensor") = wrong.tensor();
  made.attr("group") = wrong.group();
  if (wrong.client()) made.attr("client") = *wrong.client();
  PyErr_SetObject(error_type, made.ptr());
}

}  // namespace

void bind_error(py::module_& m) {
  py::dict members;
  members["tensor"] = "";
  members["group"] = "";
  members["client"] = py::none();
  error_type = PyErr_NewExceptionWithDoc(
      "subfed.Error",
      "Wrong data: names the thing, the expected and the found. Nothing has been written.\n\n"
      "tensor: name of the tensor that is wrong, or ''.\n"
      "group: name of the group, or ''.\n"
      "client: number of the client whose update is wrong, or None.",
      PyExc_ValueError, members.ptr());
  if (error_type == nullptr) throw py::error_already_set();
  m.attr("Error") = py::reinterpret_borrow<py::object>(error_type);
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const subfed::error& wrong) {
      raise(wrong);
    }
  });
}

}  // namespace subfed_python
