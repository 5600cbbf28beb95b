// SPDX-License-Identifier: MIT
/// Failed calls of the CUDA runtime as errors.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/error.hpp>

#include <string>

namespace subfed::inline v0 {

/// A call of the CUDA runtime failed: names it, with CUDA's own message.
class cuda_error : public error {
 public:
  cuda_error(const std::string& message, cudaError_t code) : error(message), code_(code) {}
  cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

namespace cuda::detail {

/// Throws  cuda_error unless the call succeeded: "subfed: cuda: cudaMalloc: out of memory (2)".
inline void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // reported here, not again by the next call
  const std::string message = std::string("subfed: cuda: ") + call + ": " +
                              cudaGetErrorString(code) + " (" +
                              std::to_string(static_cast<int>(code)) + ")";
#if SUBFED_EXCEPTIONS
  throw cuda_error(message, code);
#else
  subfed::detail::fail(message);
#endif
}

}  // namespace cuda::detail

}  // namespace subfed::inline v0
