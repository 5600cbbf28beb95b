// SPDX-License-Identifier: MIT
/// Any bytes as an ONNX file: they are refused with an error, or are a graph from which a description is
/// derived that the graph itself finds right, whose bindings fit the tensors.
#include <fuzz/fuzz.hpp>
#include <subfed/adapt/onnx.hpp>
#include <subfed/graph/check_description.hpp>
#include <subfed/graph/derive_model.hpp>

#include <cstddef>

namespace {

const fuzz::registered onnx("onnx", [](fuzz::bytes bytes) {
  const subfed::network_graph graph = subfed::read_onnx(bytes);
  const subfed::derived_description derived = subfed::derive_model(graph);
  for (const auto& tensor : derived.net.tensors()) {
    for (std::size_t r = 0; r < tensor.extents.size(); ++r) {
      fuzz::expect(derived.net.extent(tensor.dimensions[r]) == tensor.extents[r]);
    }
  }
  const subfed::description_check found = subfed::check_description(graph, derived.net);
  fuzz::expect(found.is_right() && found.missing.empty() && found.unknown.empty());
});

}  // namespace
