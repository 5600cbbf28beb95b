// SPDX-License-Identifier: MIT
/// What was typed for options, understood and checked.
#pragma once

#include <span>
#include <string>

#include "options.hpp"

namespace trainer {

/// Of options that are no plain number, switch or folder, what is typed for them.
struct words {
  std::string methods, mix = "uniform", schedule = "step", decay_at = "0.5,0.75", absent = "zero";
  bool redrawn = false;
  std::string average = "by-method", weighting = "by-method", weight_each = "client";
  std::string server = "none", seeds = "client-and-round", widths, thresholds = "round";
};

/// Sets the options that the words are about, checks all options, and leaves the words in the form
/// in which a configuration has them, without blanks.
///
/// Throws  failure for what cannot be meant; it names the option.
void settle(options& o, words& w, std::span<const method_name> known);

}  // namespace trainer
