// SPDX-License-Identifier: MIT
/// The server's two steps on a CUDA device: clients' models are sliced out of the global one and
/// averaged back. Plain C++: LibTorch's headers and nvcc do not meet here.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <memory>
#include <span>

namespace trainer {

/// Works on tensors in memory of the device that is current when it is made, in the order of the
/// default stream: torch's current stream unless a program changes it. For one thread at a time.
///
/// Throws  subfed::error for wrong data, as the host's slice and average_cohort, for memory elsewhere
///         and for non_finite::refuse and skip_client; subfed::cuda_error, which is one, for failed
///         calls of CUDA. Nothing is launched then.
class cuda_server {
 public:
  explicit cuda_server(const subfed::model& net);
  cuda_server(cuda_server&&) noexcept;
  cuda_server& operator=(cuda_server&&) noexcept;
  /// Waits for what it has launched.
  ~cuda_server();

  /// Copies every client's tensors out of the global ones: locals[c] by subs[c]. One launch,
  /// without waiting for it.
  void slice(const subfed::tensor_views<const float>& globals,
             std::span<const subfed::submodel> subs,
             std::span<const subfed::tensor_views<float>> locals);

  /// Averages the whole cohort into the global tensors, in one launch, with the bits of
  /// subfed::average_cohort. Waits for it.
  subfed::average_report average(std::span<const subfed::update<float>> updates,
                                 const subfed::tensor_views<float>& globals,
                                 const subfed::average_options& options);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace trainer
