// SPDX-License-Identifier: MIT
/// The main function of the GPU tests: without a device they are skipped, in one line.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>
#include <support/failing_new.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  int devices = 0;
  const cudaError_t state = cudaGetDeviceCount(&devices);
  if (state != cudaSuccess || devices == 0) {
    std::printf("subfed: the GPU tests are skipped: no CUDA device (%s)\n",
                cudaGetErrorString(state));
    return 77;
  }
  cudaDeviceProp found{};
  if (cudaGetDeviceProperties(&found, 0) == cudaSuccess) std::printf("device: %s\n", found.name);
  return doctest::Context(argc, argv).run();
}
