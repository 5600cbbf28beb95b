// SPDX-License-Identifier: MIT
/// How much of a model clients can hold, parsed from text.
#pragma once

#include <string>
#include <subfed/coverage/cohort_model.hpp>
#include <vector>

namespace common {

struct named_mix {
  subfed::capacity_mix mix;
  std::vector<std::string> names;  // of its classes: capacities, as they were typed
  std::string text;                // without blanks
};

/// "uniform" or "income"; "two-class:RHO", where a share RHO of the clients has capacity 1 and the
/// others have 1/16; or capacities with weights after colons: "1:0.1,1/16:0.9". A capacity without
/// a weight has the weight 1.
///
/// Throws  failure that quotes what is invalid.
named_mix parse_mix(const std::string& text);

}  // namespace common
