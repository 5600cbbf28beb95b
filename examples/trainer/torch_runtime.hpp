// SPDX-License-Identifier: MIT
/// LibTorch's process-wide and thread-wide settings, and the data on the device.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <string>

#include "data.hpp"
#include "text_data.hpp"

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
  device_data(const text_set& set, at::Device device);

  std::int64_t count() const { return targets_.size(0); }
  /// How many targets a sample has: one for an image, one for each step of a sequence.
  std::int64_t targets_each() const { return targets_.numel() / count(); }
  /// Images (N, 1, 28, 28), each pixel minus the mean over the data set's deviation; or sequences
  /// (N, steps) of numbers.
  at::Tensor inputs(std::span<const std::int64_t> samples) const;
  /// (N targets_each): the right classes, one sample after the other; no_target where there is none.
  at::Tensor targets(std::span<const std::int64_t> samples) const;

 private:
  at::Tensor index(std::span<const std::int64_t> samples) const;

  at::Tensor inputs_;   // as bytes, or as integers of 32 bits: they take less memory
  at::Tensor targets_;  // (N), or (N, steps)
};

/// No class is the right one: a loss leaves such a row out, and no answer to it is right.
inline constexpr std::int64_t no_target = -100;

}  // namespace trainer
