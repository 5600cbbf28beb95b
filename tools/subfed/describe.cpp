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
#include <vector>

#include "checkpoint.hpp"

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

/// A model in the form that --emit names; `text` is what it is as text.
std::string emit(const subfed::model& net, const std::string& text,
                 const describe_options& options) {
  switch (options.emit) {
    case emitted::cpp:
      return subfed::model_code(net, options.name);
    case emitted::json:
      return subfed::write_model(net);
    case emitted::dot:
      return subfed::draw_dot(net);
    case emitted::text:
      break;
  }
  return text;
}

std::string of_graph(const subfed::network_graph& graph, const describe_options& options) {
  const auto derived = subfed::derive_model(graph, {.products = options.products});
  std::string text = subfed::describe(derived);
  const auto tensors = derived.net.tensors();
  const auto renamed = std::count_if(tensors.begin(), tensors.end(), [](const auto& t) {
    return t.name.find("::") != std::string::npos;
  });
  if (renamed != 0) {
    text += "renamed by the exporter: " + std::to_string(renamed) +
            " tensors; to keep names and shapes,\n  export with "
            "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False\n";
  }
  return emit(derived.net, text, options);
}

/// Checkpoints of one network in several widths. Tensors of integers are counters.
std::string of_widths(const describe_options& options) {
  std::vector<std::vector<subfed::named_shape>> widths;
  std::vector<std::string> counters;
  for (const std::string& path : options.files) {
    const checkpoint file(path);
    auto& shapes = widths.emplace_back();
    for (const stored_tensor& t : file.tensors()) {
      const auto extents = t.tensor.extents();
      shapes.push_back({t.name, {extents.begin(), extents.end()}});
      const auto kind = t.tensor.format().kind;
      const bool counts = t.tensor.has_elements() && kind != subfed::number_kind::floating &&
                          kind != subfed::number_kind::brain;
      if (counts && widths.size() == 1) counters.push_back(t.name);
    }
    std::sort(shapes.begin(), shapes.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  auto [net, doubts] = subfed::derive_widths(widths, options.copies);
  net.mark_if(
      [&](const subfed::model::tensor_info& t) {
        return std::find(counters.begin(), counters.end(), t.name) != counters.end();
      },
      subfed::role::counter);
  doubts.push_back("shapes do not tell statistics and local tensors from parameters");
  std::string text = subfed::describe(net) + "doubts\n";
  for (const std::string& doubt : doubts) text += "  " + doubt + "\n";
  return emit(net, text, options);
}

bool is_model_file(const std::string& path) {
  return path.ends_with(".json") && !path.ends_with(".index.json");
}

}  // namespace

int describe(const describe_options& options) {
  const std::string& first = options.files.front();
  const auto checkpoints = [](const std::string& path) {
    return path.ends_with(".safetensors") || path.ends_with(".npz") ||
           path.ends_with(".index.json");
  };
  std::string text;
  if (options.files.size() > 1 || checkpoints(first)) {
    if (!options.check.empty()) {
      throw common::failure(
          "--check compares a model file with an ONNX file, not with checkpoints.");
    }
    text = of_widths(options);
  } else if (is_model_file(first)) {
    const subfed::model net =
        common::about_file(first, [&] { return subfed::read_model(common::read_file(first)); });
    text = emit(net, subfed::describe(net), options);
  } else {
    const std::string bytes = common::read_file(first);
    const subfed::network_graph graph = common::about_file(first, [&] {
      subfed::onnx_options how;
      for (const auto& [name, extent] : options.open_extents)
        how.open_extents.push_back({name, extent});
      return subfed::read_onnx(bytes, how);
    });
    if (!options.check.empty()) return check(graph, options.check);
    text = common::about_file(first, [&] { return of_graph(graph, options); });
  }
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    common::write_file(options.out, text);
  }
  return 0;
}

}  // namespace tool
