// SPDX-License-Identifier: MIT
/// How good the server's model is, overall and for each client.
#pragma once

#include <memory>
#include <span>

#include "network.hpp"
#include "partition.hpp"
#include "pool.hpp"
#include "result.hpp"
#include "torch_runtime.hpp"

namespace trainer {

/// Measures the moments of the batch norm layers in one pass over training images of all clients, then
/// evaluates over the test set. Of several networks the outputs are averaged.
///
/// Numerics  Both passes go batch by batch, and batches are added up in order: the result does not
///           depend on the number of workers.
evaluation evaluate(std::span<const std::shared_ptr<pre_resnet>> networks, const device_data& train,
                    const device_data& test, std::span<const client> clients, pool& workers);

}  // namespace trainer
