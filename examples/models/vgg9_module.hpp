// SPDX-License-Identifier: MIT
/// vgg9.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/vgg9.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace models {

class vgg9_module : public torch::nn::Module {
 public:
  vgg9_module(const vgg9& described, const subfed::submodel& part) {
    std::int64_t in = 3;
    for (std::size_t c = 0; c < described.channels.size(); ++c) {
      const std::int64_t out = part.extent(described.channels[c]);
      convolutions_.push_back(
          register_module("conv" + std::to_string(c + 1),
                          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1))));
      in = out;
    }
    const std::int64_t first = part.extent(described.hidden[0]);
    const std::int64_t second = part.extent(described.hidden[1]);
    fc1_ = register_module("fc1", torch::nn::Linear(in, first));
    fc2_ = register_module("fc2", torch::nn::Linear(first, second));
    fc3_ = register_module("fc3", torch::nn::Linear(second, part.extent(described.classes)));
  }

  /// Images (N, 3, 32, 32) to logits.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = images;
    for (std::size_t c = 0; c < convolutions_.size(); ++c) {
      x = torch::relu(convolutions_[c](x));
      if (c == 1 || c == 3) x = torch::max_pool2d(x, 2);
    }
    x = torch::avg_pool2d(x, 8).flatten(1);
    return fc3_(torch::relu(fc2_(torch::relu(fc1_(x)))));
  }

 private:
  std::vector<torch::nn::Conv2d> convolutions_;
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

}  // namespace models
