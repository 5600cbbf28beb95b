// SPDX-License-Identifier: MIT
#include <subfed/cuda.cuh>
#include <subfed/draw.hpp>
#include <subfed/schemes/rolling.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

using subfed::tensor_view;
using subfed::tensor_views;

tensor_view<float> on_device(const std::vector<std::int64_t>& shape) {  // freed with the process
  std::size_t size = sizeof(float);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  float* data = nullptr;
  if (cudaMalloc(&data, size) != cudaSuccess) std::exit(77);
  cudaMemset(data, 0, size);
  return {data, shape};
}

int main() {
  subfed::model net;
  const auto hidden = net.group("hidden", 64);
  const auto w1 = net.tensor("fc1.weight", {hidden, 20});
  const auto w2 = net.tensor("fc2.weight", {10, hidden});
  const tensor_views<float> globals{on_device({64, 20}), on_device({10, 64})};

  std::vector<subfed::cuda::client_tensors<float>> clients;
  std::vector<subfed::update<float>> updates;
  for (unsigned c = 0; c < 4; ++c) {
    const auto sub = subfed::draw(net, subfed::rolling{}, {.client = c, .capacity = 0.5});
    const auto a = on_device(sub.extents(w1)), b = on_device(sub.extents(w2));
    clients.push_back({sub, {a, b}});
    updates.push_back({sub, {a, b}, 100.0 + c});
  }
  auto cut = subfed::cuda::prepare_slice<float>(globals, clients);  // checks and plans: no GPU work
  auto mean = subfed::cuda::prepare_average<float>(net, updates, globals);

  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  subfed::cuda::workspace memory(cut.bytes() + mean.bytes() + 512);
  cut.upload(memory, stream);
  mean.upload(memory, stream);
  cut.launch(stream);  // all tensors of all clients in one kernel
  /* .. the clients train on the same stream .. */
  mean.launch(stream);  // and one kernel for the whole average
  std::printf("%lld parameters averaged\n", static_cast<long long>(mean.report(stream).held));
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
