// SPDX-License-Identifier: MIT
/// Descriptions from ONNX files.
#include <subfed/adapt/onnx.hpp>
#include <subfed/graph.hpp>

#include "common.hpp"

#include <cstddef>
#include <span>

namespace subfed_python {

namespace {

py::tuple derive_model(const py::bytes& file) {
  const std::string_view text(file);
  const std::span bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  const subfed::derived_description made = [&] {
    const py::gil_scoped_release unlocked;
    return subfed::derive_model(subfed::read_onnx(bytes));
  }();
  py::list doubts;
  for (const std::string& name : made.unknown) {
    doubts.append("the operator '" + name + "' is not known: what it reads and writes is not cut");
  }
  for (const std::string& name : made.unused) {
    doubts.append("no operator reads '" + name + "'");
  }
  return py::make_tuple(made.net, doubts, subfed::describe(made));
}

}  // namespace

void bind_graph(py::module_& m) {
  m.def(
      "derive_model", &derive_model, "file"_a,
      "(net, doubts, text): the description of the network in an ONNX file, given as bytes; what "
      "was not understood; and all of it in words, with what is not cut and why. The tensors have "
      "the file's names.\n\n"
      "Weights are not read. The file may come from anywhere: what is wrong is refused.");
}

}  // namespace subfed_python
