// SPDX-License-Identifier: MIT
#include "device_cuda.hpp"

#include <subfed/cuda/average_cohort.cuh>
#include <subfed/cuda/slice.cuh>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainer {

namespace {

constexpr cudaStream_t default_stream = nullptr;

void wait() {
  const cudaError_t code = cudaStreamSynchronize(default_stream);
  if (code == cudaSuccess) return;
  throw subfed::cuda_error(
      std::string("trainer: cudaStreamSynchronize: ") + cudaGetErrorString(code), code);
}

/// A workspace that grows. Plans lie one after the other until it is full; only then is the device
/// waited for.
class plan_memory {
 public:
  template <class Call>
  void upload(Call& call) {
    const std::size_t bytes = (call.bytes() + unit - 1) / unit * unit;
    if (!room_ || room_->capacity() - room_->used() < bytes) make_room(bytes);
    call.upload(*room_, default_stream);
  }
  /// Forgets all plans. Pre: their launches are done.
  void clear() { room_->reset(); }

 private:
  static constexpr std::size_t unit = 256;  // what a plan takes is a multiple of it
  static constexpr std::size_t least = std::size_t{64} << 10;

  void make_room(std::size_t bytes) {
    wait();  // launches may still read the plans
    if (room_ && room_->capacity() >= bytes) {
      room_->reset();
    } else {
      room_.emplace(2 * bytes < least ? least : 2 * bytes);
    }
  }

  std::optional<subfed::cuda::workspace> room_;
};

}  // namespace

struct cuda_server::state {
  subfed::model net;
  plan_memory plans = {};

  state(const subfed::model& of) : net(of) {}
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { static_cast<void>(cudaStreamSynchronize(default_stream)); }
};

cuda_server::cuda_server(const subfed::model& net) : state_(std::make_unique<state>(net)) {}
cuda_server::cuda_server(cuda_server&&) noexcept = default;
cuda_server& cuda_server::operator=(cuda_server&&) noexcept = default;
cuda_server::~cuda_server() = default;

void cuda_server::slice(const subfed::tensor_views<const float>& globals,
                        std::span<const subfed::submodel> subs,
                        std::span<const subfed::tensor_views<float>> locals) {
  if (subs.size() != locals.size()) {
    throw subfed::error("trainer: " + std::to_string(locals.size()) +
                        " lists of tensors are given for " + std::to_string(subs.size()) +
                        " clients");
  }
  std::vector<subfed::cuda::client_tensors<float>> clients;
  clients.reserve(subs.size());
  for (std::size_t c = 0; c < subs.size(); ++c) clients.push_back({subs[c], locals[c]});
  auto cut = subfed::cuda::prepare_slice<float>(globals, clients);
  state_->plans.upload(cut);
  cut.launch(default_stream);
}

subfed::average_report cuda_server::average(std::span<const subfed::update<float>> updates,
                                            const subfed::tensor_views<float>& globals,
                                            const subfed::average_options& options) {
  auto mean = subfed::cuda::prepare_average<float>(state_->net, updates, globals, options);
  state_->plans.upload(mean);
  mean.launch(default_stream);
  const subfed::average_report report = mean.report(default_stream);
  state_->plans.clear();
  return report;
}

}  // namespace trainer
