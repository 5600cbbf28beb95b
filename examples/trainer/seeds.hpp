// SPDX-License-Identifier: MIT
/// Runs of the same methods that differ in their seed: means and how far they spread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <common/spread.hpp>

#include "result.hpp"

namespace trainer {

using common::spread;

/// One method over all seeds. Accuracies are shares of 1.
struct seeds_summary {
  std::string method;
  std::size_t seeds = 0;
  spread accuracy;
  spread local_accuracy;
  spread to_first;           // its accuracy minus that of the first method with the same seed
  double error_of_mean = 0;  // the standard error of to_first.mean
};

/// `by_seed`: for each seed the results of the same methods.
std::vector<seeds_summary> summarise(std::span<const std::vector<method_result>> by_seed);

/// The means of everything that is a number, one result a method. Of the history, the rounds that all
/// seeds have.
std::vector<method_result> means_of(std::span<const std::vector<method_result>> by_seed);

/// As table(), with spread, and costs and times that are means over the seeds.
std::string table_of_seeds(std::span<const std::vector<method_result>> by_seed);

/// Writes summary.csv, one line per method.
///
/// Throws  failure naming the file that cannot be written.
void write_summary(std::span<const std::vector<method_result>> by_seed,
                   const std::filesystem::path& folder);

/// As draw_picture(): means, and a band of one standard deviation on each side.
std::filesystem::path draw_seeds(std::span<const std::vector<method_result>> by_seed,
                                 const std::string& subtitle, const std::filesystem::path& folder);

}  // namespace trainer
