// SPDX-License-Identifier: MIT
/// Tensors of a device, as seen by the library's host functions.
#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

namespace trainer {

/// Tensors on the CPU: the tensors themselves where they are there, copies otherwise.
class host_copy {
 public:
  explicit host_copy(std::vector<at::Tensor> device) : device_(std::move(device)) {
    for (const at::Tensor& t : device_) host_.push_back(t.to(at::kCPU));
  }
  const std::vector<at::Tensor>& tensors() const { return host_; }
  /// Writes the copies back to where they came from.
  void put_back() const {
    for (std::size_t t = 0; t < host_.size(); ++t) {
      if (!device_[t].is_cpu()) device_[t].copy_(host_[t]);
    }
  }

 private:
  std::vector<at::Tensor> device_, host_;
};

/// Copies on the CPU that nothing else will change.
inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& t : tensors) out.push_back(t.to(at::kCPU, t.scalar_type(), false, true));
  return out;
}

}  // namespace trainer
