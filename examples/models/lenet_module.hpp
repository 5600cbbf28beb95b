// SPDX-License-Identifier: MIT
/// lenet.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/lenet.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>

namespace models {

class lenet_module : public torch::nn::Module {
 public:
  lenet_module(const lenet& described, const subfed::submodel& part)
      : last_stride_(described.options.last_stride) {
    const auto convolution = [](std::int64_t in, std::int64_t out, std::int64_t kernel,
                                std::int64_t padding) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).padding(padding));
    };
    const std::int64_t c1 = part.extent(described.channels[0]);
    const std::int64_t c2 = part.extent(described.channels[1]);
    const std::int64_t c3 = part.extent(described.channels[2]);
    const std::int64_t hidden = part.extent(described.hidden);
    const std::int64_t padding = described.options.padding;
    conv1_ = register_module("conv1", convolution(described.options.colours, c1, 5, padding));
    conv2_ = register_module("conv2", convolution(c1, c2, 5, padding));
    conv3_ = register_module("conv3", convolution(c2, c3, 3, 0));
    fc1_ = register_module("fc1", torch::nn::Linear(4 * c3, hidden));
    fc2_ = register_module("fc2", torch::nn::Linear(hidden, part.extent(described.classes)));
  }

  /// Images (N, colours, side, side) to logits.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = torch::max_pool2d(torch::relu(conv1_(images)), 2);
    x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
    x = torch::avg_pool2d(torch::relu(conv3_(x)), 2, last_stride_);
    return fc2_(torch::relu(fc1_(x.flatten(1))));
  }

 private:
  std::int64_t last_stride_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
};

}  // namespace models
