// SPDX-License-Identifier: MIT
/// Products of a tensor and a number, for the scales of layers.
#pragma once

#include <torch/torch.h>

namespace trainer {

/// x times a number. It is handed over as a tensor of x's type: LibTorch converts any other number in
/// each call, forward and backward.
inline at::Tensor times(const at::Tensor& x, double factor) {
  return factor == 1 ? x : x * at::scalar_tensor(factor, at::TensorOptions(x.scalar_type()));
}

}  // namespace trainer
