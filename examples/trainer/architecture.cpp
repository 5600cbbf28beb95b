// SPDX-License-Identifier: MIT
#include "architecture.hpp"

#include <fmt/format.h>

#include <string>

#include "data.hpp"

namespace trainer {
namespace {

/// Names and shapes as network.cpp registers them.
void describe_norm(subfed::model& net, const std::string& name, subfed::group_id channels) {
  net.tensor(name + ".weight", {channels});
  net.tensor(name + ".bias", {channels});
}

}  // namespace

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

  net.tensor("conv1.weight", {stream[0], 1, 5, 5});
  for (std::size_t s = 0; s < stream.size(); ++s) {
    const std::string block = fmt::format("block{}.", s + 1);
    const subfed::group_id in = stream[s == 0 ? 0 : s - 1];
    describe_norm(net, block + "n1", in);
    net.tensor(block + "conv1.weight", {inner[s], in, 3, 3});
    describe_norm(net, block + "n2", inner[s]);
    net.tensor(block + "conv2.weight", {stream[s], inner[s], 3, 3});
    // In the first block the stem's channels go round the convolutions as they are, so its result
    // uses their group: that ties the residual add.
    if (s != 0) net.tensor(block + "shortcut.weight", {stream[s], in, 1, 1});
  }
  describe_norm(net, "n4", stream.back());
  net.tensor("linear.weight", {classes, stream.back()});
  net.tensor("linear.bias", {classes});
  return {net, stream, inner, classes};
}

}  // namespace trainer
