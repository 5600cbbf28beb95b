// SPDX-License-Identifier: MIT
#include "torch_runtime.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "failure.hpp"

namespace trainer {
namespace {

// Of Fashion-MNIST's training images, as bytes.
constexpr double pixel_mean = 72.94;
constexpr double pixel_deviation = 90.02;

at::Tensor normalised(const at::Tensor& pixels) {
  return pixels.to(at::kFloat).sub_(pixel_mean).div_(pixel_deviation);
}

/// normalised(images.index_select(0, samples)) on the CPU, bit for bit: there are only 256 different
/// pixels, and LibTorch copies single bytes slowly.
at::Tensor normalised_images(const at::Tensor& images, std::span<const std::int64_t> samples) {
  static const at::Tensor of_byte = normalised(at::arange(256, at::kFloat));
  const float* values = of_byte.data_ptr<float>();
  const std::int64_t each = images.numel() / images.size(0);
  std::vector<std::int64_t> extents = images.sizes().vec();
  extents[0] = static_cast<std::int64_t>(samples.size());
  at::Tensor out = at::empty(extents, at::kFloat);
  auto* to = out.data_ptr<float>();
  for (const std::int64_t s : samples) {
    TORCH_CHECK_INDEX(s >= 0 && s < images.size(0), "There is no image ", s);
    const std::uint8_t* from = images.data_ptr<std::uint8_t>() + s * each;
    to = std::transform(from, from + each, to, [=](std::uint8_t pixel) { return values[pixel]; });
  }
  return out;
}

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
  inputs_ = at::empty({set.count, 1, set.rows, set.columns}, at::kByte);
  std::copy(set.pixels.begin(), set.pixels.end(), inputs_.data_ptr<std::uint8_t>());
  targets_ = at::empty({set.count}, at::kLong);
  std::copy(set.labels.begin(), set.labels.end(), targets_.data_ptr<std::int64_t>());
  inputs_ = inputs_.to(device);
  targets_ = targets_.to(device);
}

device_data::device_data(const text_set& set, at::Device device) {
  const at::Tensor tokens = at::empty({set.count(), set.steps + 1}, at::kInt);
  std::copy(set.tokens.begin(), set.tokens.end(), tokens.data_ptr<std::int32_t>());
  inputs_ = tokens.narrow(1, 0, set.steps).to(device);
  const at::Tensor next = tokens.narrow(1, 1, set.steps).to(at::kLong);
  targets_ = next.masked_fill(next.ge(set.classes), no_target).to(device);
}

at::Tensor device_data::index(std::span<const std::int64_t> samples) const {
  at::Tensor out = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
  std::copy(samples.begin(), samples.end(), out.data_ptr<std::int64_t>());
  return out.to(targets_.device());
}

at::Tensor device_data::inputs(std::span<const std::int64_t> samples) const {
  const bool are_images = inputs_.scalar_type() == at::kByte;
  if (are_images && inputs_.device().is_cpu()) return normalised_images(inputs_, samples);
  const at::Tensor chosen = inputs_.index_select(0, index(samples));
  return are_images ? normalised(chosen) : chosen;
}

at::Tensor device_data::targets(std::span<const std::int64_t> samples) const {
  return targets_.index_select(0, index(samples)).flatten();
}

}  // namespace trainer
