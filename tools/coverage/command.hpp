// SPDX-License-Identifier: MIT
/// subfed coverage, as a function.
#pragma once

namespace coverage_tool {

/// The arguments begin with the subcommand's name. Returns the program's exit status.
///
/// Throws  failure with a sentence.
int run_coverage(int argc, const char* const* argv);

}  // namespace coverage_tool
