// SPDX-License-Identifier: MIT
/// A Python module over subfed: a server for a network of linear layers, whose tensors go in and out
/// as DLPack capsules (numpy, torch, jax, ..) without copies. aggregate.py uses it.
#include <dlpack/dlpack.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <subfed/adapt/dlpack.hpp>
#include <subfed/subfed.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

/// The tensor of a capsule; from here on it is ours to delete.
subfed::dlpack_tensor<DLManagedTensor> take(py::capsule capsule) {
  auto* const managed = capsule.get_pointer<DLManagedTensor>();
  capsule.set_name("used_dltensor");
  return subfed::dlpack_tensor<DLManagedTensor>(managed);
}
using tensors = std::vector<subfed::dlpack_tensor<DLManagedTensor>>;

/// Objects with __dlpack__ as tensors.
tensors take_all(const py::list& objects) {
  tensors out;
  for (const py::handle& object : objects)
    out.push_back(take(py::cast<py::capsule>(object.attr("__dlpack__")())));
  return out;
}

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

  /// A client's part of the server's tensors, as new DLPack capsules.
  std::vector<py::capsule> cut(const py::list& globals, std::uint64_t round, std::uint64_t client,
                               double capacity) const {
    const auto part =
        subfed::draw(net_, window_, {.round = round, .client = client, .capacity = capacity});
    tensors locals;
    for (std::size_t t = 0; t < net_.tensors().size(); ++t) {
      const auto extents = part.extents(subfed::tensor_id(t));
      std::int64_t size = 1;
      for (const std::int64_t e : extents) size *= e;
      auto data = std::make_shared<std::vector<float>>(static_cast<std::size_t>(size));
      const subfed::tensor_view<float> view(data->data(), extents);
      locals.push_back(subfed::export_dlpack<DLManagedTensor>(view, data));
    }
    subfed::slice<float>(take_all(globals), part, locals);
    std::vector<py::capsule> out;
    for (auto& local : locals) {
      out.emplace_back(std::move(local).release(), "dltensor", [](PyObject* object) {
        if (auto* p = PyCapsule_GetPointer(object, "dltensor")) {
          subfed::dlpack_tensor<DLManagedTensor>(static_cast<DLManagedTensor*>(p));
        } else {
          PyErr_Clear();  // somebody took it
        }
      });
    }
    return out;
  }

  /// Averages updates (tensors, client, capacity, weight) of one round into the server's tensors.
  py::dict average(const py::list& globals, const py::list& updates, std::uint64_t round) const {
    std::vector<tensors> keep;
    std::vector<subfed::update<float>> all;
    for (const py::handle& u : updates) {
      const auto row = py::cast<py::tuple>(u);
      const auto part = subfed::draw(net_, window_,
                                     {.round = round,
                                      .client = row[1].cast<std::uint64_t>(),
                                      .capacity = row[2].cast<double>()});
      keep.push_back(take_all(row[0].cast<py::list>()));
      all.push_back({part, keep.back(), row[3].cast<double>()});
    }
    const auto report = subfed::average_cohort<float>(net_, all, take_all(globals));
    return py::dict(py::arg("held") = report.held, py::arg("unheld") = report.unheld);
  }

 private:
  subfed::model net_;
  subfed::rolling window_;
};

}  // namespace

PYBIND11_MODULE(subfed_example, m) {
  py::class_<server>(m, "Server")
      .def(py::init<std::vector<std::int64_t>>())
      .def("cut", &server::cut)
      .def("average", &server::average);
}
