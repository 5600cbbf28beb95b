// SPDX-License-Identifier: MIT
/// The LeNets of [FedDrop, Tables 6 and 7] for Fashion-MNIST and SVHN. lenet_module.hpp has them as
/// a torch module.
#pragma once

#include <subfed/cost.hpp>
#include <subfed/layers.hpp>

#include <cstdint>
#include <vector>

namespace models {

struct lenet_options {
  std::int64_t colours;
  std::int64_t side;         // of the square image
  std::int64_t padding;      // of the two 5 x 5 convolutions
  std::int64_t last_stride;  // of the 2 x 2 average pooling
  std::int64_t classes = 10;
  std::vector<std::int64_t> widths = {32, 64, 64, 512};  // of the three convolutions, and hidden

  static lenet_options fashion_mnist() { return {1, 28, 2, 2}; }
  static lenet_options svhn() { return {3, 32, 0, 1}; }
};

struct lenet {
  subfed::model net;
  std::vector<subfed::group_id> channels;  // of the three convolutions
  subfed::group_id hidden;
  subfed::group_id classes;
  lenet_options options;
  subfed::workload work;
};

inline lenet describe_lenet(const lenet_options& options) {
  subfed::model net;
  const auto c1 = net.group("conv1", options.widths.at(0));
  const auto c2 = net.group("conv2", options.widths.at(1));
  const auto c3 = net.group("conv3", options.widths.at(2));
  const auto hidden = net.group("fc1", options.widths.at(3));
  const auto classes = net.group("classes", options.classes, subfed::cut::never);

  const std::int64_t first = options.side + 2 * options.padding - 4;
  const std::int64_t second = first / 2 + 2 * options.padding - 4;
  const std::int64_t third = second / 2 - 2;
  const std::int64_t last = (third - 2) / options.last_stride + 1;

  const auto conv1 = conv2d(net, "conv1", {options.colours, c1, 5, 5});
  const auto conv2 = conv2d(net, "conv2", {c1, c2, 5, 5});
  const auto conv3 = conv2d(net, "conv3", {c2, c3, 3, 3});
  const auto fc1 = linear(net, "fc1", {subfed::flatten(c3, last * last), hidden});
  const auto fc2 = linear(net, "fc2", {hidden, classes});
  check_reads(net, fc1.weight, {conv3.weight});

  subfed::workload work(net);
  work.convolution(conv1, first * first).pooling(c1, first * first);
  work.convolution(conv2, second * second).pooling(c2, second * second);
  work.convolution(conv3, third * third).pooling(c3, third * third);
  work.linear(fc1).linear(fc2);
  return {net, {c1, c2, c3}, hidden, classes, options, work};
}

}  // namespace models
