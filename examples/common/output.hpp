// SPDX-License-Identifier: MIT
/// Files that are there complete or not at all, and pictures drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace common {

/// Makes sure that files can be written to the folder, before hours are spent on what goes there.
///
/// Throws  failure when they cannot.
void prepare_folder(const std::filesystem::path& folder);

/// Writes a file that appears complete or not at all.
///
/// Throws  failure that names it when it cannot be written.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Has gnuplot run a script that draws `picture`, which stays beside it with the ending .gp.
/// Returns the picture's path, or an empty one where gnuplot is not installed or fails.
std::filesystem::path draw(const std::string& script, const std::filesystem::path& picture);

/// In single quotes, where gnuplot knows no other escape.
std::string quoted(std::string text);

// Okabe and Ito's colours, which people with any colour vision can tell apart.
inline constexpr const char* colours[] = {"#0072B2", "#D55E00", "#009E73",
                                          "#CC79A7", "#56B4E9", "#E69F00"};
inline constexpr const char* bound_colours[] = {"#222222", "#999999"};

}  // namespace common
