// SPDX-License-Identifier: MIT
/// What torch is asked to do on the same device memory, where a torch with CUDA is present.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <vector>

namespace bench {

/// One client's tensors by index_select, one dimension after the other. Milliseconds, median.
double torch_slice_ms(const std::vector<subfed::tensor_view<float>>& globals,
                      const subfed::submodel& sub, int runs);
/// The average by index_put_ with accumulate on sums and counts. Milliseconds, median.
double torch_average_ms(const subfed::model& net, const std::vector<subfed::update<float>>& updates,
                        const std::vector<subfed::tensor_view<float>>& globals, int runs);

}  // namespace bench
