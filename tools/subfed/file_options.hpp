// SPDX-License-Identifier: MIT
/// The command lines of the subcommands that work on files.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

namespace tool {

/// Adds info, check, cut, average, scatter, diff and cost to the program. The one that is chosen is put
/// into `chosen`, which returns the program's exit status.
void add_file_commands(CLI::App& app, std::function<int()>& chosen);

}  // namespace tool
