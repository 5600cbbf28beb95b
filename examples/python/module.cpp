// SPDX-License-Identifier: MIT
/// A Python module over subfed: a server for a network of linear layers, whose tensors go in and out
/// without copies (numpy, torch, jax, ..). aggregate.py uses it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <subfed/subfed.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "python_tensor.hpp"

namespace py = pybind11;

namespace {

using subfed_python::new_tensor;
using subfed_python::python_tensors;

class server {
 public:
  /// widths: of the input, the hidden layers and the output.
  explicit server(const std::vector<std::int64_t>& widths) {
    subfed::dimension in = widths.at(0);
    for (std::size_t i = 1; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size();
      const subfed::dimension out =
          last ? subfed::dimension(widths[i])
               : subfed::dimension(net_.group("hidden" + std::to_string(i), widths[i]));
      subfed::linear(net_, "fc" + std::to_string(i), {.in = in, .out = out});
      in = out;
    }
  }

  /// A client's part of the server's tensors, as new tensors.
  std::vector<new_tensor> cut(const py::sequence& globals, std::uint64_t round,
                              std::uint64_t client, double capacity) const {
    const auto part =
        subfed::draw(net_, window_, {.round = round, .client = client, .capacity = capacity});
    std::vector<new_tensor> out;
    std::vector<subfed::tensor_view<void>> locals;
    for (std::size_t t = 0; t < net_.tensors().size(); ++t) {
      out.emplace_back(part.extents(subfed::tensor_id(t)));
      locals.emplace_back(out.back().view());
    }
    const auto from = python_tensors::to_read(globals);
    subfed::slice<void>(from.views<const void>(), part, locals);
    return out;
  }

  /// Averages updates (tensors, client, capacity, weight) of one round into the server's tensors.
  /// The updates are only read. All may be of any floating-point type.
  py::dict average(const py::sequence& globals, const py::sequence& updates,
                   std::uint64_t round) const {
    std::vector<python_tensors> keep;
    std::vector<subfed::update<void>> all;
    for (const py::handle& u : updates) {
      const auto row = py::cast<py::tuple>(u);
      const auto part = subfed::draw(net_, window_,
                                     {.round = round,
                                      .client = row[1].cast<std::uint64_t>(),
                                      .capacity = row[2].cast<double>()});
      keep.push_back(python_tensors::to_read(row[0].cast<py::sequence>()));
      all.push_back({part, keep.back().views<const void>(), row[3].cast<double>()});
    }
    const auto to = python_tensors::to_write(globals);
    const auto report = subfed::average_cohort<void>(net_, all, to.views<void>());
    return py::dict(py::arg("held") = report.held, py::arg("unheld") = report.unheld);
  }

 private:
  subfed::model net_;
  subfed::rolling window_;
};

}  // namespace

PYBIND11_MODULE(subfed_example, m) {
  py::class_<new_tensor>(m, "Tensor", py::buffer_protocol())
      .def_buffer(&new_tensor::buffer)
      .def("__dlpack__", &new_tensor::dlpack)
      .def("__dlpack_device__", [](const new_tensor&) { return std::pair(1, 0); });  // the CPU
  py::class_<server>(m, "Server")
      .def(py::init<std::vector<std::int64_t>>())
      .def("cut", &server::cut)
      .def("average", &server::average);
}
