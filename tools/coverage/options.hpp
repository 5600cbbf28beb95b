// SPDX-License-Identifier: MIT
/// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <subfed/coverage/cohort_model.hpp>
#include <vector>

#include "networks.hpp"
#include "schemes.hpp"

namespace coverage_tool {

struct options {
  network on;
  std::vector<named_scheme> schemes;
  subfed::cohort_options cohort;
  std::vector<std::string> class_names;  // of the cohort's mix
  std::int64_t rounds = 0;
  std::int64_t times = 0;
  std::int64_t repetitions = 0;
  bool parameters = false;
  std::int64_t threads = 0;
  std::string out;
};

/// Reads the command line; empty when it asks for help, which has then been printed.
///
/// Throws  failure for invalid values.
std::optional<options> parse_options(int argc, const char* const* argv);

}  // namespace coverage_tool
