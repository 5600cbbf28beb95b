// SPDX-License-Identifier: MIT
/// VGG-9 for 32 x 32 images: the network of [FedDrop, Table 8]. vgg9_module.hpp has it as a torch
/// module.
#pragma once

#include <subfed/cost.hpp>
#include <subfed/layers.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace models {

struct vgg9 {
  subfed::model net;
  std::vector<subfed::group_id> channels;  // of the six convolutions
  std::vector<subfed::group_id> hidden;    // of the two hidden layers after them
  subfed::group_id classes;
  subfed::workload work;
};

inline vgg9 describe_vgg9(std::int64_t class_count = 10) {
  constexpr std::int64_t widths[] = {32, 64, 128, 128, 256, 256};
  constexpr std::int64_t sides[] = {32, 32, 16, 16, 8, 8};
  subfed::model net;
  std::vector<subfed::group_id> channels, hidden;
  for (std::size_t c = 0; c < 6; ++c) {
    channels.push_back(net.group("conv" + std::to_string(c + 1), widths[c]));
  }
  for (const char* name : {"fc1", "fc2"}) hidden.push_back(net.group(name, 512));
  const auto classes = net.group("classes", class_count, subfed::cut::never);

  std::vector<subfed::weight_and_bias> convolutions;
  for (std::size_t c = 0; c < 6; ++c) {
    const subfed::dimension in = c == 0 ? subfed::dimension(3) : channels[c - 1];
    convolutions.push_back(conv2d(net, "conv" + std::to_string(c + 1), {in, channels[c], 3, 3}));
  }
  const auto fc1 = linear(net, "fc1", {channels[5], hidden[0]});
  const auto fc2 = linear(net, "fc2", {hidden[0], hidden[1]});
  const auto fc3 = linear(net, "fc3", {hidden[1], classes});

  subfed::workload work(net);
  for (std::size_t c = 0; c < 6; ++c) {
    const std::int64_t positions = sides[c] * sides[c];
    work.convolution(convolutions[c], positions);
    if (c % 2 == 1) work.pooling(channels[c], positions);
  }
  work.linear(fc1).linear(fc2).linear(fc3);
  return {net, channels, hidden, classes, work};
}

}  // namespace models
