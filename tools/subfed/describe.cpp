// SPDX-License-Identifier: MIT
#include "describe.hpp"

#include <common/failure.hpp>
#include <common/files.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <subfed/adapt/model_file.hpp>
#include <subfed/adapt/onnx.hpp>
#include <subfed/describe.hpp>
#include <subfed/graph.hpp>

namespace tool {
namespace {

void list(const std::vector<std::string>& lines, const char* title) {
  if (lines.empty()) return;
  std::printf("%s\n", title);
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
}

int check(const subfed::network_graph& graph, const std::string& file) {
  const subfed::model net =
      common::about_file(file, [&] { return subfed::read_model(common::read_file(file)); });
  const subfed::description_check found = subfed::check_description(graph, net);
  std::printf("%s: %s\n", file.c_str(), found.is_right() ? "right" : "wrong");
  list(found.wrong, "wrong");
  list(found.missing, "not described");
  list(found.unknown, "described, and not of the network");
  return found.is_right() ? 0 : 2;
}

std::string text_of(const subfed::derived_description& derived, const describe_options& options) {
  switch (options.emit) {
    case emitted::cpp:
      return subfed::model_code(derived.net, options.name);
    case emitted::json:
      return subfed::write_model(derived.net);
    case emitted::dot:
      return subfed::draw_dot(derived.net);
    case emitted::text:
      break;
  }
  std::string out = subfed::describe(derived);
  const auto tensors = derived.net.tensors();
  const auto renamed = std::count_if(tensors.begin(), tensors.end(), [](const auto& t) {
    return t.name.find("::") != std::string::npos;
  });
  if (renamed != 0) {
    out += "renamed by the exporter: " + std::to_string(renamed) +
           " tensors; to keep names and shapes,\n  export with "
           "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False\n";
  }
  return out;
}

}  // namespace

int describe(const describe_options& options) {
  const std::string file = common::read_file(options.file);
  const subfed::network_graph graph = common::about_file(options.file, [&] {
    subfed::onnx_options how;
    for (const auto& [name, extent] : options.open_extents)
      how.open_extents.push_back({name, extent});
    return subfed::read_onnx(file, how);
  });
  if (!options.check.empty()) return check(graph, options.check);
  const std::string text = common::about_file(options.file, [&] {
    return text_of(subfed::derive_model(graph, {.products = options.products}), options);
  });
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    common::write_file(options.out, text);
  }
  return 0;
}

}  // namespace tool
