// SPDX-License-Identifier: MIT
/// pre_resnet18.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/pre_resnet18.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace models {

class pre_resnet18_module : public torch::nn::Module {
 public:
  pre_resnet18_module(const pre_resnet18& described, const subfed::submodel& part) {
    const std::size_t stages = described.stream.size();
    const std::size_t blocks = described.middle.size() / stages;
    conv1_ = register_module("conv1", convolution(3, part.extent(described.stream[0]), 3, 1));
    for (std::size_t s = 0; s < stages; ++s) {
      stages_.push_back(register_module("layer" + std::to_string(s + 1), torch::nn::ModuleList()));
      const std::int64_t out = part.extent(described.stream[s]);
      for (std::size_t b = 0; b < blocks; ++b) {
        const bool first = s != 0 && b == 0;
        const std::int64_t in = first ? part.extent(described.stream[s - 1]) : out;
        const std::int64_t middle = part.extent(described.middle[s * blocks + b]);
        stages_.back()->push_back(block(in, middle, out, first ? skip::projected : skip::identity));
      }
    }
    n4_ = register_module("n4", norm(part.extent(described.stream.back())));
    linear_ = register_module("linear", torch::nn::Linear(part.extent(described.stream.back()),
                                                          part.extent(described.classes)));
  }

  /// Images (N, 3, 32, 32) to logits.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = conv1_(images);
    for (auto& stage : stages_) {
      for (const auto& each : *stage) x = each->as<block_impl>()->forward(x);
    }
    return linear_(torch::relu(n4_(x)).mean({2, 3}));
  }

 private:
  enum class skip { identity, projected };

  static torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                       std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  }
  /// Static batch norm: each batch is normalised by its own moments.
  static torch::nn::BatchNorm2d norm(std::int64_t channels) {
    return torch::nn::BatchNorm2d(
        torch::nn::BatchNorm2dOptions(channels).track_running_stats(false));
  }

  struct block_impl : torch::nn::Module {
    block_impl(std::int64_t in, std::int64_t middle, std::int64_t out, skip kind) {
      const std::int64_t stride = kind == skip::projected ? 2 : 1;
      n1 = register_module("n1", norm(in));
      conv1 = register_module("conv1", convolution(in, middle, 3, stride));
      n2 = register_module("n2", norm(middle));
      conv2 = register_module("conv2", convolution(middle, out, 3, 1));
      if (kind == skip::projected) {
        shortcut = register_module("shortcut", convolution(in, out, 1, stride));
      }
    }
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor a = torch::relu(n1(x));
      const at::Tensor y = conv2(torch::relu(n2(conv1(a))));
      return y + (shortcut ? shortcut(a) : x);
    }
    torch::nn::BatchNorm2d n1{nullptr}, n2{nullptr};
    torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  };
  static std::shared_ptr<block_impl> block(std::int64_t in, std::int64_t middle, std::int64_t out,
                                           skip kind) {
    return std::make_shared<block_impl>(in, middle, out, kind);
  }

  torch::nn::Conv2d conv1_{nullptr};
  std::vector<torch::nn::ModuleList> stages_;
  torch::nn::BatchNorm2d n4_{nullptr};
  torch::nn::Linear linear_{nullptr};
};

}  // namespace models
