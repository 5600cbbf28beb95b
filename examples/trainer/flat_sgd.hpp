// SPDX-License-Identifier: MIT
/// SGD as torch::optim::SGD, on all parameters of a network at once: its
/// tensors are many and small, and each operator costs about a microsecond
/// however small they are.
#pragma once

#include "network.hpp"

namespace trainer {

struct sgd_options {
  double lr = 0.05;
  double momentum = 0.9;
  double weight_decay = 5e-4;
};

/// Moves parameters and gradients of a network into one piece of memory each,
/// where they stay.
///
/// Numerics  The bits of torch::optim::SGD: the same operations on each
/// element.
class flat_sgd {
 public:
  /// Gradients are 0.
  flat_sgd(network& of, const sgd_options& how);

  void zero_gradients() { gradients_.zero_(); }
  void step();

 private:
  sgd_options how_;
  at::Tensor values_, gradients_;
  at::Tensor moment_;  // undefined before the first step
};

}  // namespace trainer
