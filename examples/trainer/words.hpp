// SPDX-License-Identifier: MIT
/// Option values as typed, parsed and checked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "options.hpp"

namespace trainer {

/// The typed values of options that are not plain numbers, switches or folders.
struct words {
  std::string methods, mix = "uniform", schedule = "step", decay_at = "0.5,0.75", absent = "zero";
  std::string split = "client", norm = "batch", member_by = "round";
  bool redrawn = false;
  std::string average = "by-method", weighting = "by-method", weight_each = "client";
  std::string server = "none", seeds = "client-and-round", widths, thresholds = "batch";
};

/// Sets the options that the words are about, checks all options, and leaves the words in the form
/// in which a configuration has them, without blanks.
///
/// Throws  failure for invalid values; it names the option.
void settle(options& o, words& w, std::span<const method_name> known);

/// As they are typed for --lr-schedule and --decay-at.
///
/// Throws  as settle does.
lr_schedule schedule_of(const std::string& word);
std::vector<double> shares_of(const std::string& text);

}  // namespace trainer
