// SPDX-License-Identifier: MIT
/// What a client does with the part of the model that it was sent.
#pragma once

#include <cstdint>

#include "network.hpp"
#include "partition.hpp"
#include "torch_runtime.hpp"

namespace trainer {

struct training_plan {
  std::uint64_t seed = 0;
  std::int64_t epochs = 1;
  std::int64_t batch = 16;
  double lr = 0.05;  // in this round
  double momentum = 0.9;
  double weight_decay = 5e-4;
};

/// Trains the network in place with SGD and returns the mean loss over the batches.
///
/// The loss is [HeteroFL]'s masked cross entropy: the logits of classes that the client does not have
/// are set to 0. Each convolution's result is multiplied by 1 / capacity, so that activations are as
/// large as in the whole model.
///
/// Numerics  The order of samples follows from (seed, round, client), whichever thread this runs on.
double train(pre_resnet& network, const device_data& data, const client& who, double capacity,
             std::uint64_t round, const training_plan& plan);

}  // namespace trainer
