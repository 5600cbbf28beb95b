// SPDX-License-Identifier: MIT
/// resnet50.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/resnet50.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace models {

class resnet50_module : public torch::nn::Module {
 public:
  resnet50_module(const resnet50& described, const subfed::submodel& part) {
    std::int64_t in = part.extent(described.stem);
    conv1_ = register_module("conv1", convolution(3, in, 7, 2));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(in));
    std::size_t number = 0;
    for (std::size_t s = 0; s < described.stream.size(); ++s) {
      stages_.push_back(register_module("layer" + std::to_string(s + 1), torch::nn::Sequential()));
      const std::int64_t out = part.extent(described.stream[s]);
      for (std::int64_t b = 0; b < described.options.blocks[s]; ++b) {
        const std::int64_t first = part.extent(described.middle[number]);
        const std::int64_t second = part.extent(described.middle[number + 1]);
        number += 2;
        stages_.back()->push_back(
            std::make_shared<bottleneck>(in, first, second, out, s != 0 && b == 0 ? 2 : 1,
                                         b == 0 ? skip::projected : skip::identity));
        in = out;
      }
    }
    fc_ = register_module("fc", torch::nn::Linear(in, part.extent(described.classes)));
  }

  /// Images (N, 3, height, width) to logits.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = torch::max_pool2d(torch::relu(bn1_(conv1_(images))), 3, 2, 1);
    for (auto& stage : stages_) x = stage->forward(x);
    return fc_(x.mean({2, 3}));
  }

 private:
  enum class skip { identity, projected };

  static torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                       std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  }

  struct bottleneck : torch::nn::Module {
    bottleneck(std::int64_t in, std::int64_t first, std::int64_t second, std::int64_t out,
               std::int64_t stride, skip kind) {
      conv1 = register_module("conv1", convolution(in, first, 1, 1));
      bn1 = register_module("bn1", torch::nn::BatchNorm2d(first));
      conv2 = register_module("conv2", convolution(first, second, 3, stride));
      bn2 = register_module("bn2", torch::nn::BatchNorm2d(second));
      conv3 = register_module("conv3", convolution(second, out, 1, 1));
      bn3 = register_module("bn3", torch::nn::BatchNorm2d(out));
      if (kind == skip::projected) {
        downsample = register_module(
            "downsample",
            torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
      }
    }
    at::Tensor forward(const at::Tensor& x) {
      at::Tensor y = torch::relu(bn1(conv1(x)));
      y = torch::relu(bn2(conv2(y)));
      y = bn3(conv3(y));
      return torch::relu(y + (downsample ? downsample->forward(x) : x));
    }
    torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
    torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
    torch::nn::Sequential downsample{nullptr};
  };

  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<torch::nn::Sequential> stages_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace models
