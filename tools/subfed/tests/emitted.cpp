// SPDX-License-Identifier: MIT
/// emitted <file>: whether the function that was emitted from an ONNX file makes the model that is derived
/// from it.
#include <common/files.hpp>
#include <common/program.hpp>

#include <string>
#include <subfed/adapt/onnx.hpp>
#include <subfed/graph.hpp>

#include "emitted.hpp"

int main(int count, char** words) {
  return common::run_program("emitted", [&] {
    const std::string file = common::read_file(count > 1 ? words[1] : "");
    const auto derived = subfed::derive_model(subfed::read_onnx(file));
    return derived.net == describe_emitted() ? 0 : 1;
  });
}
