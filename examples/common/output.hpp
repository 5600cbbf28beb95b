// SPDX-License-Identifier: MIT
/// Files, and pictures drawn by gnuplot.
#pragma once

#include <common/files.hpp>
#include <filesystem>
#include <string>

namespace common {

/// Has gnuplot run a script that draws `picture`, an SVG file; the script stays next to it with the
/// ending .gp. Returns the picture's path, or an empty one where gnuplot is not installed or fails.
std::filesystem::path draw(const std::string& script, const std::filesystem::path& picture);

/// In single quotes, where gnuplot knows no other escape.
std::string quoted(std::string text);

// Okabe and Ito's colours, which people with any colour vision can tell apart.
inline constexpr const char* colours[] = {"#0072B2", "#D55E00", "#009E73",
                                          "#CC79A7", "#56B4E9", "#E69F00"};
inline constexpr const char* bound_colours[] = {"#222222", "#999999"};

}  // namespace common
