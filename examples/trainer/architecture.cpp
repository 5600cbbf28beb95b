// SPDX-License-Identifier: MIT
#include "architecture.hpp"

#include <fmt/format.h>

#include <string>
#include <subfed/layers.hpp>

#include "data.hpp"

namespace trainer {

channel_counts full_size() { return {{32, 64}, {32, 64}, class_count}; }

channel_counts narrowed(const channel_counts& whole, subfed::capacity share) {
  channel_counts out = whole;
  for (std::int64_t& n : out.stream) n = share.of(n);
  for (std::int64_t& n : out.inner) n = share.of(n);
  return out;
}

channel_counts architecture::channels(const subfed::submodel& part) const {
  channel_counts out;
  for (const subfed::group_id g : stream) out.stream.push_back(part.extent(g));
  for (const subfed::group_id g : inner) out.inner.push_back(part.extent(g));
  out.classes = part.extent(classes);
  return out;
}

architecture describe(const channel_counts& whole) {
  subfed::model net;
  std::vector<subfed::group_id> stream, inner;
  for (std::size_t s = 0; s < whole.stream.size(); ++s) {
    stream.push_back(net.group(fmt::format("stream{}", s + 1), whole.stream[s]));
    inner.push_back(net.group(fmt::format("inner{}", s + 1), whole.inner.at(s)));
  }
  const subfed::group_id classes = net.group("classes", whole.classes, subfed::cut::never);

  // Names and shapes as network.cpp registers them.
  const auto convolution = [&net](const std::string& name, subfed::dimension in,
                                  subfed::group_id out, std::int64_t side) {
    subfed::conv2d(net, name, {in, out, side, side, subfed::bias::none});
  };
  convolution("conv1", 1, stream[0], 5);
  for (std::size_t s = 0; s < stream.size(); ++s) {
    const std::string block = fmt::format("block{}.", s + 1);
    const subfed::group_id in = stream[s == 0 ? 0 : s - 1];
    subfed::batch_norm(net, block + "n1", {in});
    convolution(block + "conv1", in, inner[s], 3);
    subfed::batch_norm(net, block + "n2", {inner[s]});
    convolution(block + "conv2", inner[s], stream[s], 3);
    // In the first block the stem's channels go round the convolutions as they are, so its result
    // uses their group: that ties the residual add.
    if (s != 0) convolution(block + "shortcut", in, stream[s], 1);
  }
  subfed::batch_norm(net, "n4", {stream.back()});
  subfed::linear(net, "linear", {stream.back(), classes});
  return {net, stream, inner, classes};
}

}  // namespace trainer
