// SPDX-License-Identifier: MIT
/// What theory expects of the nodes of one group.
#pragma once

#include <cstdint>
#include <optional>
#include <subfed/coverage_theory.hpp>

#include "options.hpp"

namespace coverage_tool {

/// Each is empty where no closed form or exact computation is known.
struct expectation {
  std::optional<double> mean, variance, gini, unseen_share;
  std::optional<subfed::round_moments> cover;              // of the first full cover
  std::optional<subfed::round_distribution> cover_beyond;  // its distribution
  bool never_covered = false;
  bool exact = false;  // nothing is random: every run must give these numbers
};

expectation expect(const options& settings, const named_scheme& scheme, std::int64_t extent);

}  // namespace coverage_tool
