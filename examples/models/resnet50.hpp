// SPDX-License-Identifier: MIT
/// ResNets of bottleneck blocks with running statistics, under torchvision's names: ResNet-50 by
/// default. resnet50_module.hpp has them as a torch module.
#pragma once

#include <subfed/layers.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace models {

struct resnet50_options {
  std::vector<std::int64_t> blocks = {3, 4, 6, 3};  // in each stage; 3, 4, 23, 3 is ResNet-101
  std::int64_t width = 64;                          // of the stem and of the first stage's middle
  std::int64_t classes = 1000;
};

struct resnet50 {
  subfed::model net;
  subfed::group_id stem;
  std::vector<subfed::group_id> stream;  // one per stage
  std::vector<subfed::group_id> middle;  // two per block
  subfed::group_id classes;
  resnet50_options options;
};

inline resnet50 describe_resnet50(const resnet50_options& options = {}) {
  using subfed::bias;
  subfed::model net;
  const auto convolution = [&net](const std::string& name, subfed::dimension in,
                                  subfed::dimension out, std::int64_t kernel) {
    return conv2d(net, name, {in, out, kernel, kernel, bias::none}).weight;
  };
  const auto norm = [&net](const std::string& name, subfed::group_id channels) {
    batch_norm(net, name,
               {channels, subfed::affine::learned, subfed::running_statistics::with_counter});
  };
  const auto stem = net.group("stem", options.width);
  std::vector<subfed::group_id> stream, middle;
  convolution("conv1", 3, stem, 7);
  norm("bn1", stem);
  for (std::size_t s = 0; s < options.blocks.size(); ++s) {
    const std::string stage = "layer" + std::to_string(s + 1);
    const std::int64_t inner = options.width << s;
    stream.push_back(net.group(stage, 4 * inner));
    for (std::int64_t b = 0; b < options.blocks[s]; ++b) {
      const std::string block = stage + "." + std::to_string(b);
      const subfed::group_id in = b != 0 ? stream[s] : s == 0 ? stem : stream[s - 1];
      const auto first = net.group(block + ".middle1", inner);
      const auto second = net.group(block + ".middle2", inner);
      middle.insert(middle.end(), {first, second});
      convolution(block + ".conv1", in, first, 1);
      norm(block + ".bn1", first);
      convolution(block + ".conv2", first, second, 3);
      norm(block + ".bn2", second);
      const auto last = convolution(block + ".conv3", second, stream[s], 1);
      norm(block + ".bn3", stream[s]);
      if (b != 0) continue;
      const auto skip = convolution(block + ".downsample.0", in, stream[s], 1);
      norm(block + ".downsample.1", stream[s]);
      residual_add(net, {last, skip});
    }
  }
  const auto classes = net.group("classes", options.classes, subfed::cut::never);
  linear(net, "fc", {stream.back(), classes});
  return {net, stem, stream, middle, classes, options};
}

}  // namespace models
