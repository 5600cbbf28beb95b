// SPDX-License-Identifier: MIT
/// The models and cohorts of the benchmarks, apart from their memory: nvcc need not read what makes
/// them.
#pragma once

#include <subfed/submodel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace bench::device {

subfed::model model_called(const std::string& name);
std::vector<subfed::submodel> cohort_of(const subfed::model& net, const std::string& scheme,
                                        std::int64_t clients);

}  // namespace bench::device
