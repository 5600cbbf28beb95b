// SPDX-License-Identifier: MIT
/// subfed: one program, a subcommand a file.
#include <CLI/CLI.hpp>
#include <common/failure.hpp>
#include <common/program.hpp>
#include <common/text.hpp>
#include <common/wrapped.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <subfed/version.hpp>
#include <vector>
#include "../coverage/command.hpp"

#include "choice.hpp"
#include "describe.hpp"
#include "file_options.hpp"

namespace tool {
namespace {

void add_describe(CLI::App& app, describe_options& o, std::vector<std::string>& extents,
                  std::vector<std::string>& copies) {
  CLI::App* const command =
      app.add_subcommand("describe",
                         "Derives from a network's ONNX file which nodes of its tensors are cut "
                         "together, and says what is not cut, and why. Without an ONNX file, from "
                         "checkpoints of the network in two or more widths.");
  command
      ->add_option("files", o.files,
                   "An ONNX file; or checkpoints of one network in several widths, the server's "
                   "first; or a model file, to print or draw it.")
      ->required();
  add_choice<emitted>(
      command, "--emit", o.emit,
      {{"text", emitted::text},
       {"c++", emitted::cpp},
       {"json", emitted::json},
       {"dot", emitted::dot}},
      "text; c++, a function that makes the description; json, a model file; dot, a "
      "picture of which tensors each group ties, for Graphviz.");
  add_choice<subfed::product_cut>(
      command, "--products", o.products,
      {{"largest", subfed::product_cut::largest},
       {"outer", subfed::product_cut::outer},
       {"inner", subfed::product_cut::inner}},
      "What is cut of a product, as of heads and their nodes: the factor of most nodes (largest), "
      "whole heads and whole groups of a convolution (outer), or the same nodes of each (inner).");
  command->add_option("--extent", extents,
                      "An extent that the file leaves open: batch=1, or x[2]=224 for an axis "
                      "without a name. May be given several times.");
  command->add_option("--copies", copies,
                      "For checkpoints: a dimension that has its nodes several times, as "
                      "lstm.weight_ih:0:4 for the four gates. May be given several times.");
  command->add_option("--check", o.check,
                      "A model file that is compared with the network instead; the status is 2 "
                      "where it is wrong.");
  command->add_option("--name", o.name, "The function's name, for --emit c++.");
  command->add_option("--out", o.out, "A file for the result.");
}

/// "batch=1"
void read_extents(describe_options& o, const std::vector<std::string>& extents) {
  for (const std::string& text : extents) {
    const std::size_t at = text.rfind('=');
    const auto extent =
        at == std::string::npos ? std::nullopt : common::number<std::int64_t>(text.substr(at + 1));
    if (!extent || *extent < 1) {
      throw common::failure("--extent: \"" + text + "\" is not of the form batch=1.");
    }
    o.open_extents.emplace_back(text.substr(0, at), *extent);
  }
}

/// "lstm.weight_ih:0:4"
void read_copies(describe_options& o, const std::vector<std::string>& copies) {
  for (const std::string& text : copies) {
    const std::size_t last = text.rfind(':');
    const std::size_t first =
        last == std::string::npos || last == 0 ? last : text.rfind(':', last - 1);
    if (first != std::string::npos && first != last) {
      const auto dimension = common::number<std::size_t>(text.substr(first + 1, last - first - 1));
      const auto times = common::number<std::int64_t>(text.substr(last + 1));
      if (dimension && times && *times > 0) {
        o.copies.push_back({text.substr(0, first), *dimension, *times});
        continue;
      }
    }
    throw common::failure("--copies: \"" + text + "\" is not of the form tensor:dimension:times.");
  }
}

int run(int argc, const char* const* argv) {
  CLI::App app(
      "Describes networks, and does a federated server's work on files: cuts models for clients "
      "and "
      "averages what they send.\n\nThe status is 0, 1 after an error, and 2 where check or "
      "describe "
      "--check finds something wrong and where diff finds a difference.",
      "subfed");
  app.require_subcommand(1);
  app.add_subcommand("coverage",
                     "Simulates how evenly schemes train the nodes and parameters of a network.");
  if (argc > 1 && std::string_view(argv[1]) == "coverage") {
    return coverage_tool::run_coverage(argc - 1, argv + 1);
  }
  app.set_help_all_flag("--help-all", "Prints the help of all subcommands.");
  app.set_version_flag("--version", std::to_string(SUBFED_VERSION_MAJOR) + "." +
                                        std::to_string(SUBFED_VERSION_MINOR) + "." +
                                        std::to_string(SUBFED_VERSION_PATCH));
  describe_options describing;
  describing.name = "describe_network";
  std::vector<std::string> extents, copies;
  add_describe(app, describing, extents, copies);
  std::function<int()> chosen;
  add_file_commands(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int status = app.exit(help, text, text);
    std::fputs(common::wrapped(text.str()).c_str(), stdout);
    return status;
  } catch (const CLI::ParseError& error) {
    throw common::failure(std::string(error.what()) + "; --help lists the options.");
  }
  if (chosen) return chosen();
  read_extents(describing, extents);
  read_copies(describing, copies);
  return describe(describing);
}

}  // namespace
}  // namespace tool

int main(int argc, char** argv) {
  return common::run_program("subfed", [&] { return tool::run(argc, argv); });
}
