// SPDX-License-Identifier: MIT
/// How good the server's model is, overall and for each client.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "network.hpp"
#include "partition.hpp"
#include "pool.hpp"
#include "result.hpp"
#include "torch_runtime.hpp"

namespace trainer {

/// What a model says of the test set, on the CPU.
struct answers {
  at::Tensor logits;      // (N each, classes)
  at::Tensor targets;     // (N each)
  std::int64_t each = 1;  // targets of a sample
};

/// Measures the moments of the batch norm layers, if any, in one pass over training samples of all
/// clients, unless some are `given`; then goes through the test set. Of several networks the outputs
/// are averaged. `scale`: of each hidden layer's result.
///
/// Numerics  Both passes go batch by batch, and batches are added up in order: the result does not
///           depend on the number of workers.
answers answer(std::span<const std::shared_ptr<network>> networks, double scale,
               const device_data& train, const device_data& test, std::span<const client> clients,
               pool& workers, const network_moments& given = {});

/// Of each client: its own test samples where it has such. Otherwise test images of labels outside its
/// own are left out by their row. Classes outside its own are left out by their column. NaN where no row
/// is left.
std::vector<double> local_accuracies(const answers& given, std::span<const client> clients);

/// `local`: accuracies of which the mean is taken, without those that are NaN.
evaluation judge(const answers& given, std::span<const double> local);

}  // namespace trainer
