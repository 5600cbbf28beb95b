// SPDX-License-Identifier: MIT
/// The replacement for device_cuda.cu where LibTorch has no CUDA or nvcc is missing.
#include "device_cuda.hpp"
#include "failure.hpp"

namespace trainer {
namespace {

[[noreturn]] void refuse() {
  throw failure(
      "This trainer was built without nvcc: --device cuda needs it in addition to LibTorch's "
      "CUDA.");
}

}  // namespace

struct cuda_server::state {};

cuda_server::cuda_server(const subfed::model&) { refuse(); }
cuda_server::cuda_server(cuda_server&&) noexcept = default;
cuda_server& cuda_server::operator=(cuda_server&&) noexcept = default;
cuda_server::~cuda_server() = default;

void cuda_server::slice(const subfed::tensor_views<const float>&, std::span<const subfed::submodel>,
                        std::span<const subfed::tensor_views<float>>) {
  refuse();
}
subfed::average_report cuda_server::average(std::span<const subfed::update<float>>,
                                            const subfed::tensor_views<float>&,
                                            const subfed::average_options&) {
  refuse();
}

}  // namespace trainer
