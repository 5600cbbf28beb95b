// SPDX-License-Identifier: MIT
/// subfed describe: the description of a network, derived from its ONNX file or from checkpoints of
/// several widths, or read from a model file.
#pragma once

#include <subfed/graph/derive_model.hpp>
#include <subfed/graph/derive_widths.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tool {

enum class emitted { text, cpp, json, dot };

struct describe_options {
  std::vector<std::string> files;  // one ONNX or model file, or checkpoints, the widest first
  std::string out;                 // a file; empty for the terminal
  std::string check;               // a model file
  emitted emit = emitted::text;
  subfed::product_cut products = subfed::product_cut::largest;
  std::vector<std::pair<std::string, std::int64_t>> open_extents;
  std::vector<subfed::known_copies> copies;
  std::string name;  // of the function in C++
};

/// The program's exit status.
int describe(const describe_options& options);

}  // namespace tool
