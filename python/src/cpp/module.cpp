// SPDX-License-Identifier: MIT
/// The extension subfed._ext, of which the package subfed shows what users name.
#include <subfed/version.hpp>

#include "common.hpp"

PYBIND11_MODULE(_ext, m) {
  using namespace subfed_python;
  m.doc() = "Primitives of partial-training federated learning.";
  m.attr("__version__") = std::to_string(SUBFED_VERSION_MAJOR) + "." +
                          std::to_string(SUBFED_VERSION_MINOR) + "." +
                          std::to_string(SUBFED_VERSION_PATCH);
  bind_error(m);
  bind_model(m);
  bind_layers(m);
  bind_sets(m);
  bind_submodel(m);
  bind_schemes(m);
  bind_copies(m);
  bind_average(m);
  bind_server(m);
  bind_cost(m);
  bind_coverage(m);
  bind_theory(m);
  bind_proof(m);
  bind_graph(m);
}
