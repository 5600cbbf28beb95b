// SPDX-License-Identifier: MIT
/// LibTorch's process-wide and thread-wide settings, and the data on the device.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <string>

#include "data.hpp"

namespace trainer {

/// Throws  failure for "cuda" where LibTorch sees no CUDA device.
at::Device find_device(const std::string& name);

/// Settings that make results repeatable; once, before the first tensor.
void make_process_repeatable();

/// One thread for each operator: the sums inside convolutions depend on the number of threads that
/// share them, so clients run side by side instead. Called on every thread that computes.
void make_thread_repeatable();

/// A data set as tensors on a device.
class device_data {
 public:
  device_data(const dataset& set, at::Device device);

  std::int64_t count() const { return labels_.size(0); }
  /// Images (N, 1, 28, 28), each pixel minus the mean over the data set's deviation.
  at::Tensor images(std::span<const std::int64_t> samples) const;
  at::Tensor labels(std::span<const std::int64_t> samples) const;

 private:
  at::Tensor index(std::span<const std::int64_t> samples) const;

  at::Tensor pixels_;  // (N, 1, 28, 28) of bytes: a quarter of the memory
  at::Tensor labels_;  // (N)
};

}  // namespace trainer
