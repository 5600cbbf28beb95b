// SPDX-License-Identifier: MIT
/// Results as a table, as CSV files and as a picture.
#pragma once

#include <common/output.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "result.hpp"

namespace trainer {

/// The comparison, one line per method, in three parts of at most 80 columns: how well the models
/// do and how evenly their nodes were trained, what clients were sent and computed, and how long it
/// took. A method whose loss is not finite at the end is said to have diverged.
std::string table(std::span<const method_result> results);
/// A line for each method whose training diverged, and since when; mostly none.
std::string divergence(std::span<const method_result> results);
/// Its second and its third part.
std::string table_of_costs(std::span<const method_result> results);
std::string table_of_times(std::span<const method_result> results);

using common::prepare_folder;

/// Writes <method>.csv, accuracy over rounds with what has been sent and computed until then;
/// <method>-nodes.csv, how often each node was held; <method>-clients.csv and
/// <method>-capacities.csv, accuracies after the last round; and <method>-keep.csv, where there are
/// keep probabilities, how many of them each bin has, named by its upper end. Each file appears
/// complete or not at all.
///
/// Throws  failure naming the file that cannot be written.
void write_csv(const method_result& result, const std::filesystem::path& folder);

/// Writes costs.csv, one line per method.
///
/// Throws  failure naming the file that cannot be written.
void write_costs(std::span<const method_result> results, const std::filesystem::path& folder);

/// Writes picture.gp and has gnuplot draw picture.svg from it. Returns the picture's path, or an
/// empty one where gnuplot is not installed or fails. `deviations`: how far the accuracies of each
/// entry of each method's history spread, drawn as a band; empty without bands.
std::filesystem::path draw_picture(std::span<const method_result> results,
                                   const std::string& subtitle, const std::filesystem::path& folder,
                                   std::span<const std::vector<double>> deviations = {});

}  // namespace trainer
