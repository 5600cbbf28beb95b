// SPDX-License-Identifier: MIT
/// Results as tables, sentences and CSV files.
#pragma once

#include <common/output.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "expectation.hpp"
#include "options.hpp"
#include "simulation.hpp"

namespace coverage_tool {

using common::prepare_folder;

/// Mean of some runs, and its standard error (0 for one run).
struct estimate {
  double mean = 0;
  double error = 0;
};
estimate estimate_of(std::span<const double> values);

/// How far a measured mean is from what is expected, in standard errors: "0.42"; "equal" where it
/// equals it; "-" where nothing is expected or the runs are equal by chance; "differs" where an
/// exact expectation is not met.
std::string deviation(const estimate& measured, const std::optional<double>& expected, bool exact);

/// Nodes of the widest group, measured and expected.
std::string node_table(const options& settings, std::span<const scheme_result> results,
                       std::span<const expectation> expected);

/// All nodes, and all parameters where they are counted.
std::string whole_table(const options& settings, std::span<const scheme_result> results);

/// What each class of clients holds.
std::string class_table(const options& settings, std::span<const scheme_result> results);

/// One sentence per scheme: which nodes it starves, or that it starves none.
std::string verdicts(const options& settings, std::span<const scheme_result> results);

/// A scheme's name as part of a file's.
std::string file_stem(const std::string& scheme);

/// Writes runs.csv, evenness.csv, cover.csv and <scheme>-nodes.csv.
///
/// Throws  failure naming the file that cannot be written.
void write_csv(const options& settings, std::span<const scheme_result> results,
               std::span<const expectation> expected);

}  // namespace coverage_tool
