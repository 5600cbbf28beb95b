// SPDX-License-Identifier: MIT
/// PreResNet18 for 32 x 32 images: the network of [Rolex, Table 7]. pre_resnet18_module.hpp has it
/// as a torch module.
#pragma once

#include <subfed/cost.hpp>
#include <subfed/layers.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace models {

struct pre_resnet18_options {
  std::int64_t classes = 10;
  std::vector<std::int64_t> widths = {64, 128, 256, 512};  // one per stage
  std::int64_t blocks = 2;                                 // in each stage
  std::vector<std::int64_t> middles = {};  // one per block, between its convolutions; empty: widths
  std::int64_t colours = 3;
  std::int64_t side = 32;  // of the square image, for the costs
};

struct pre_resnet18 {
  subfed::model net;
  std::vector<subfed::group_id> stream;  // one per stage: channels that residual additions tie
  std::vector<subfed::group_id> middle;  // one per block: between its two convolutions
  subfed::group_id classes;
  subfed::workload work;
};

/// Pre-activation blocks: a = relu(n1(x)); out = conv2(relu(n2(conv1(a)))) + skip, where skip is
/// shortcut(a) in the first block of the stages after the first, and x elsewhere. The first stage
/// therefore has the channels of the stem.
inline pre_resnet18 describe_pre_resnet18(const pre_resnet18_options& options = {}) {
  using subfed::bias;
  subfed::model net;
  std::vector<subfed::group_id> stream, middle;
  for (std::size_t s = 0; s < options.widths.size(); ++s) {
    stream.push_back(net.group("stream" + std::to_string(s + 1), options.widths[s]));
  }
  const auto classes = net.group("classes", options.classes, subfed::cut::never);

  struct cost {
    enum { convolution, norm } kind;
    subfed::weight_and_bias layer;
    subfed::dimension channels;
    std::int64_t positions;
  };
  std::vector<cost> costs;
  const auto convolution = [&](const std::string& name, subfed::dimension in, subfed::group_id out,
                               std::int64_t kernel, std::int64_t positions) {
    const auto made = conv2d(net, name, {in, out, kernel, kernel, bias::none});
    costs.push_back({cost::convolution, made, out, positions});
    return made.weight;
  };
  const auto norm = [&](const std::string& name, subfed::group_id channels,
                        std::int64_t positions) {
    const auto made = batch_norm(net, name, {.channels = channels});
    costs.push_back({cost::norm, {*made.weight, made.bias}, channels, positions});
  };

  std::int64_t side = options.side;
  convolution("conv1", options.colours, stream[0], 3, side * side);
  for (std::size_t s = 0; s < stream.size(); ++s) {
    for (std::int64_t b = 0; b < options.blocks; ++b) {
      const std::string block = "layer" + std::to_string(s + 1) + "." + std::to_string(b);
      const bool first = s != 0 && b == 0;
      const subfed::group_id in = first ? stream[s - 1] : stream[s];
      middle.push_back(net.group(block + ".middle", options.middles.empty()
                                                        ? options.widths[s]
                                                        : options.middles.at(middle.size())));
      norm(block + ".n1", in, side * side);
      if (first) side = (side + 1) / 2;
      convolution(block + ".conv1", in, middle.back(), 3, side * side);
      norm(block + ".n2", middle.back(), side * side);
      const auto last = convolution(block + ".conv2", middle.back(), stream[s], 3, side * side);
      if (!first) continue;
      const auto skip = convolution(block + ".shortcut", in, stream[s], 1, side * side);
      residual_add(net, {last, skip});
    }
  }
  norm("n4", stream.back(), side * side);
  const auto head = linear(net, "linear", {stream.back(), classes});

  subfed::workload work(net);
  for (const cost& c : costs) {
    if (c.kind == cost::convolution) {
      work.convolution(c.layer, c.positions);
    } else {
      work.normalization(c.channels, c.positions);
    }
  }
  work.linear(head);
  return {net, stream, middle, classes, work};
}

}  // namespace models
