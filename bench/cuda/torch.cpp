// SPDX-License-Identifier: MIT
/// torch's index_select and index_put_ on the device, as a user without subfed would write them.
#include "peer.hpp"

#include <torch/cuda.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench {

namespace {

at::Tensor seen(const float* data, std::span<const std::int64_t> shape) {
  return torch::from_blob(const_cast<float*>(data), at::IntArrayRef(shape.data(), shape.size()),
                          torch::dtype(torch::kFloat).device(torch::kCUDA));
}

/// The nodes of each dimension, on the device.
std::vector<at::Tensor> nodes_of(const subfed::selection& chosen) {
  std::vector<at::Tensor> out;
  for (int r = 0; r < chosen.rank(); ++r) {
    std::vector<std::int64_t> nodes;
    for (const subfed::run& x : chosen.dimension(r).runs) {
      for (std::int64_t i = 0; i < x.length; ++i) nodes.push_back(x.first + i);
    }
    out.push_back(torch::tensor(nodes, torch::kLong).to(torch::kCUDA));
  }
  return out;
}

template <class F>
double median_ms(int runs, F&& f) {
  std::vector<double> times;
  f();
  torch::cuda::synchronize();
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    torch::cuda::synchronize();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

}  // namespace

double torch_slice_ms(const std::vector<subfed::tensor_view<float>>& globals,
                      const subfed::submodel& sub, int runs) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  std::vector<std::vector<at::Tensor>> nodes;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    tensors.push_back(seen(globals[t].data_handle(), globals[t].extents()));
    nodes.push_back(nodes_of(sub[subfed::tensor_id(t)]));
  }
  return median_ms(runs, [&] {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      at::Tensor cut = tensors[t];
      for (std::size_t r = 0; r < nodes[t].size(); ++r) {
        if (nodes[t][r].numel() == cut.size(static_cast<std::int64_t>(r))) continue;
        cut = cut.index_select(static_cast<std::int64_t>(r), nodes[t][r]);
      }
    }
  });
}

double torch_average_ms(const subfed::model& net, const std::vector<subfed::update<float>>& updates,
                        const std::vector<subfed::tensor_view<float>>& globals, int runs) {
  const at::NoGradGuard no_grad;
  const std::size_t tensors = net.tensors().size();
  std::vector<std::vector<std::vector<at::Tensor>>> nodes(updates.size());
  for (std::size_t u = 0; u < updates.size(); ++u) {
    for (std::size_t t = 0; t < tensors; ++t) {
      auto own = nodes_of(updates[u].sub[subfed::tensor_id(t)]);
      for (std::size_t r = 0; r < own.size(); ++r) {  // broadcast to the outer product
        std::vector<std::int64_t> shape(own.size(), 1);
        shape[r] = -1;
        own[r] = own[r].view(shape);
      }
      nodes[u].push_back(std::move(own));
    }
  }
  return median_ms(runs, [&] {
    for (std::size_t t = 0; t < tensors; ++t) {
      const at::Tensor global = seen(globals[t].data_handle(), globals[t].extents());
      const at::Tensor sums = torch::zeros_like(global);
      const at::Tensor counts = torch::zeros_like(global);
      for (std::size_t u = 0; u < updates.size(); ++u) {
        const auto& view = updates[u].tensors[t];
        const at::Tensor local = seen(view.data_handle(), view.extents());
        c10::List<c10::optional<at::Tensor>> at;
        for (const auto& n : nodes[u][t]) at.push_back(n);
        sums.index_put_(at, local * updates[u].weight, true);
        counts.index_put_(at, torch::full_like(local, updates[u].weight), true);
      }
      global.copy_(torch::where(counts > 0, sums / counts, global));
    }
  });
}

}  // namespace bench
