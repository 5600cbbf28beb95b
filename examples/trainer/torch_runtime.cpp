// SPDX-License-Identifier: MIT
#include "torch_runtime.hpp"

#include <dlfcn.h>

#include "failure.hpp"

namespace trainer {
namespace {

// Of Fashion-MNIST's training images, as bytes.
constexpr double pixel_mean = 72.94;
constexpr double pixel_deviation = 90.02;

}  // namespace

at::Device find_device(const std::string& name) {
  if (name != "cuda") return at::kCPU;
  if (!torch::cuda::is_available()) {
    throw failure(
        "--device cuda was asked for, but this LibTorch was built without CUDA or finds no "
        "device.");
  }
  return {at::kCUDA, 0};
}

void make_process_repeatable() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  // OpenBLAS has threads of its own, which at::set_num_threads does not reach. It is asked for at
  // run time because LibTorch may use any BLAS.
  using setter = void (*)(int);
  if (auto* set = reinterpret_cast<setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
  make_thread_repeatable();
}

void make_thread_repeatable() { at::set_num_threads(1); }

device_data::device_data(const dataset& set, at::Device device) {
  pixels_ = at::empty({set.count, 1, set.rows, set.columns}, at::kByte);
  std::copy(set.pixels.begin(), set.pixels.end(), pixels_.data_ptr<std::uint8_t>());
  labels_ = at::empty({set.count}, at::kLong);
  std::copy(set.labels.begin(), set.labels.end(), labels_.data_ptr<std::int64_t>());
  pixels_ = pixels_.to(device);
  labels_ = labels_.to(device);
}

at::Tensor device_data::index(std::span<const std::int64_t> samples) const {
  at::Tensor out = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
  std::copy(samples.begin(), samples.end(), out.data_ptr<std::int64_t>());
  return out.to(labels_.device());
}

at::Tensor device_data::images(std::span<const std::int64_t> samples) const {
  return pixels_.index_select(0, index(samples))
      .to(at::kFloat)
      .sub_(pixel_mean)
      .div_(pixel_deviation);
}

at::Tensor device_data::labels(std::span<const std::int64_t> samples) const {
  return labels_.index_select(0, index(samples));
}

}  // namespace trainer
