// SPDX-License-Identifier: MIT
/// Schemes by their names on the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <subfed/index_set.hpp>
#include <subfed/scheme.hpp>

namespace coverage_tool {

using scheme_function = std::function<subfed::index_set(const subfed::draw_request&)>;

/// Which theory says what a scheme's counts are expected to be.
enum class law {
  unknown,
  random_sets,  // independent uniform sets, a new one for each client and round
  windows       // all clients' windows begin at (round * step) mod K; step 0 is static
};

struct named_scheme {
  std::string name;  // as it was given
  scheme_function scheme;
  law known = law::unknown;
  std::int64_t step = 0;  // of windows
};

/// A name and its options, "rolling:step=4:round=ceil".
///
/// Throws  failure that lists the known ones when there is no such scheme or option.
named_scheme parse_scheme(const std::string& text);

/// What parse_scheme understands, for --help.
std::string scheme_help();

/// The scheme in my_scheme.cpp, to be replaced by your own.
scheme_function my_scheme();

}  // namespace coverage_tool
