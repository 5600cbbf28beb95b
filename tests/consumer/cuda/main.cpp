// SPDX-License-Identifier: MIT
#include <subfed/cuda/device_view.hpp>
#include <subfed/cuda/error.cuh>
#include <subfed/cuda/on_device.cuh>
#include <subfed/cuda/workspace.cuh>

#include <string>

int main() {
  try {
    subfed::cuda::detail::check(cudaErrorInvalidValue, "cudaMemcpyAsync");
  } catch (const subfed::cuda_error& error) {
    const std::string expected = "subfed: cuda: cudaMemcpyAsync: invalid argument (1)";
    return error.what() == expected && error.code() == cudaErrorInvalidValue ? 0 : 1;
  }
  return 2;
}
