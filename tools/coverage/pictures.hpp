// SPDX-License-Identifier: MIT
/// Pictures, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "expectation.hpp"
#include "options.hpp"
#include "simulation.hpp"

namespace coverage_tool {

/// Draws heat.svg (node by round), counts.svg, evenness.svg and, where theory has it, cover.svg.
/// Returns the paths of those that were drawn; none where gnuplot is not installed.
std::vector<std::filesystem::path> draw_pictures(const options& settings,
                                                 std::span<const scheme_result> results,
                                                 std::span<const expectation> expected);

}  // namespace coverage_tool
