// SPDX-License-Identifier: MIT
/// The groups of benchmarks.
#pragma once

namespace bench {

void register_cases();     // slice/.. and average/..
void register_planning();  // index_set/.. and planning/..
void register_growth();    // growth/..

}  // namespace bench
