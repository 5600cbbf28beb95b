// SPDX-License-Identifier: MIT
/// What theory expects of the nodes of one group.
#pragma once

#include <cstdint>
#include <optional>
#include <subfed/coverage/theory.hpp>

#include "options.hpp"

namespace coverage_tool {

/// Each is empty where no closed form or exact computation is known.
struct expectation {
  std::optional<double> mean, variance, gini, unseen_share;
  // Of the first full cover; the mean within 0.2 % where there is no distribution.
  std::optional<subfed::round_moments> cover;
  std::optional<subfed::round_distribution> cover_beyond;  // its distribution
  bool never_covered = false;
  bool exact = false;  // nothing is random: every run must give these numbers
};

expectation expect(const options& settings, const named_scheme& scheme, std::int64_t extent);

/// The share of all parameters that no client ever held.
struct parameter_expectation {
  std::optional<double> unseen_share;  ///< after the rounds, expected
  std::optional<double> limit;         ///< however long the run
};

/// Of random sets after the rounds, and of sets that are windows in the limit. Empty for other
/// schemes and for models in which a tensor binds three groups or one group twice.
parameter_expectation expect_parameters(const options& settings, const named_scheme& scheme);

}  // namespace coverage_tool
