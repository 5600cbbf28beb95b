// SPDX-License-Identifier: MIT
#include <subfed/layers.hpp>

#include <subfed/submodel.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::submodel;
using support::message_of;
using extents_type = std::vector<std::int64_t>;

namespace {

std::vector<std::string> names_of(const model& net) {
  std::vector<std::string> out;
  for (const auto& t : net.tensors()) out.push_back(t.name);
  return out;
}

/// A stage of PreResNet18 [Rolex, Table 7]: two blocks, the first with a convolution as its skip.
subfed::dimension add_stage(model& net, const std::string& name, subfed::dimension in,
                            std::int64_t width) {
  const auto skip = net.group(name, width);
  for (int b = 0; b < 2; ++b) {
    const std::string block = name + "." + std::to_string(b);
    const auto middle = net.group(block + ".middle", width);
    batch_norm(net, block + ".n1", {.channels = in});
    conv2d(net, block + ".conv1", {in, middle, 3, 3, subfed::bias::none});
    batch_norm(net, block + ".n2", {.channels = middle});
    conv2d(net, block + ".conv2", {middle, skip, 3, 3, subfed::bias::none});
    if (b == 0) conv2d(net, block + ".shortcut", {in, skip, 1, 1, subfed::bias::none});
    in = skip;
  }
  return in;
}

}  // namespace

TEST_CASE("a linear layer is weight (out, in) and bias (out)") {
  model net;
  const auto hidden = net.group("hidden", 64);
  const auto fc = linear(net, "fc1", {.in = 784, .out = hidden});
  REQUIRE(fc.bias.has_value());
  CHECK(names_of(net) == std::vector<std::string>{"fc1.weight", "fc1.bias"});
  CHECK(net[fc.weight].extents == extents_type{64, 784});
  CHECK(net[*fc.bias].extents == extents_type{64});
  const auto head = linear(net, "head", {.in = hidden, .out = 10, .bias = subfed::bias::none});
  CHECK_FALSE(head.bias.has_value());
  CHECK(net.tensors().size() == 3);
  CHECK(net[head.weight].extents == extents_type{10, 64});

  const submodel sub(net, {index_set(64, {5, 3})});
  CHECK(sub.extents(fc.weight) == extents_type{2, 784});
  CHECK(sub.extents(*fc.bias) == extents_type{2});
  CHECK(sub.extents(head.weight) == extents_type{10, 2});
}

TEST_CASE("a convolution is weight (out, in, height, width) and bias (out)") {
  model net;
  const auto a = net.group("a", 8);
  const auto b = net.group("b", 16);
  const auto conv = conv2d(net, "conv", {.in = a, .out = b, .kernel_height = 3, .kernel_width = 5});
  REQUIRE(conv.bias.has_value());
  CHECK(names_of(net) == std::vector<std::string>{"conv.weight", "conv.bias"});
  CHECK(net[conv.weight].extents == extents_type{16, 8, 3, 5});
  CHECK(net[*conv.bias].extents == extents_type{16});
  const submodel sub(net, {index_set(8, {0, 2}), index_set(16, {15})});
  CHECK(sub.extents(conv.weight) == extents_type{1, 2, 3, 5});
}

TEST_CASE("an ordinary convolution with one output is cut along its inputs") {
  model net;
  const auto in = net.group("in", 4);
  const auto conv = conv2d(net, "conv", {in, 1, 3, 3, subfed::bias::none});
  const submodel sub(net, {index_set(4, {0, 2})});
  CHECK(sub.extents(conv.weight) == extents_type{1, 2, 3, 3});
}

TEST_CASE("a depthwise convolution keeps its one input a group") {
  model net;
  const auto channels = net.group("channels", 6);
  const auto conv = conv2d(net, "depthwise", {1, channels, 3, 3, subfed::bias::none});
  CHECK(net[conv.weight].extents == extents_type{6, 1, 3, 3});
  const submodel sub(net, {index_set(6, {4, 5, 0})});
  CHECK(sub.extents(conv.weight) == extents_type{3, 1, 3, 3});
}

TEST_CASE("a convolution in two groups: half of each, inputs counted inside the group") {
  // 8 inputs, 4 outputs, weight (4, 4): groups of nodes as wide as one group of the convolution.
  model net;
  const auto in = net.group("in", 4);
  const auto out = net.group("out", 2);
  const auto weight = net.tensor("conv.weight", {out.repeat(2), in});
  const auto before = net.tensor("before.weight", {in.repeat(2)});
  const submodel sub(net, {index_set(4, {0, 1}), index_set(2, {0})});
  CHECK(net[weight].extents == extents_type{4, 4});
  CHECK(sub.extents(weight) == extents_type{2, 2});
  const auto rows = sub[weight].dimension(0);
  REQUIRE(rows.runs.size() == 2);
  CHECK(rows.runs[0] == subfed::run{0, 0, 1});
  CHECK(rows.runs[1] == subfed::run{1, 2, 1});
  const auto columns = sub[before].dimension(0);
  REQUIRE(columns.runs.size() == 2);
  CHECK(columns.runs[0] == subfed::run{0, 0, 2});
  CHECK(columns.runs[1] == subfed::run{2, 4, 2});
}

TEST_CASE("batch norm has the tensors that it is asked for, each of its channels") {
  using subfed::affine;
  using subfed::running_statistics;
  model net;
  const auto c = net.group("c", 7);
  const auto plain = batch_norm(net, "bn1", {.channels = c});
  CHECK(plain.weight.has_value());
  CHECK(plain.bias.has_value());
  CHECK_FALSE(plain.running_mean.has_value());
  CHECK_FALSE(plain.running_var.has_value());
  const auto all = batch_norm(net, "bn2", {c, affine::learned, running_statistics::kept});
  const auto statistics = batch_norm(net, "bn3", {c, affine::none, running_statistics::kept});
  CHECK_FALSE(statistics.weight.has_value());
  CHECK_FALSE(statistics.bias.has_value());
  const auto nothing = batch_norm(net, "bn4", {c, affine::none, running_statistics::none});
  CHECK_FALSE(nothing.running_mean.has_value());
  CHECK(names_of(net) == std::vector<std::string>{"bn1.weight", "bn1.bias", "bn2.weight",
                                                  "bn2.bias", "bn2.running_mean", "bn2.running_var",
                                                  "bn3.running_mean", "bn3.running_var"});
  for (const auto& t : net.tensors()) CHECK(t.extents == extents_type{7});
  const submodel sub(net, {index_set(7, {6, 0, 1})});
  CHECK(sub.extents(*all.running_var) == extents_type{3});
}

TEST_CASE("a layer after a flatten reads blocks of its channels") {
  model net;
  const auto c = net.group("c", 4);
  const auto fc = linear(net, "fc", {.in = c.block(4), .out = 10});
  CHECK(net[fc.weight].extents == extents_type{10, 16});
  const submodel sub(net, {index_set(4, {3, 0})});
  CHECK(sub.extents(fc.weight) == extents_type{10, 8});
}

TEST_CASE("PreResNet18 has as many parameters as [Rolex, Table 7] counts, at every capacity") {
  model net;
  const auto stem = net.group("stem", 64);
  // In stage 1 the stem's channels pass through the identity skips.
  conv2d(net, "conv1", {3, stem, 3, 3, subfed::bias::none});
  for (int b = 0; b < 2; ++b) {
    const std::string block = "layer1." + std::to_string(b);
    const auto middle = net.group(block + ".middle", 64);
    batch_norm(net, block + ".n1", {.channels = stem});
    conv2d(net, block + ".conv1", {stem, middle, 3, 3, subfed::bias::none});
    batch_norm(net, block + ".n2", {.channels = middle});
    conv2d(net, block + ".conv2", {middle, stem, 3, 3, subfed::bias::none});
  }
  auto last = add_stage(net, "layer2", stem, 128);
  last = add_stage(net, "layer3", last, 256);
  last = add_stage(net, "layer4", last, 512);
  batch_norm(net, "n4", {.channels = last});
  linear(net, "linear", {.in = last, .out = 10});
  CHECK(net.size() == 11172170);

  const std::int64_t expected[] = {11172170, 2796714, 701018, 176178, 44510};
  for (int i = 0; i < 5; ++i) {
    std::vector<index_set> sets;
    for (const auto& g : net.groups()) sets.push_back(index_set::prefix(g.extent, g.extent >> i));
    CHECK(submodel(net, sets).size() == expected[i]);
  }
}

TEST_CASE("a layer whose name is taken is refused, and its tensors are not half described") {
  model net;
  const auto c = net.group("c", 3);
  linear(net, "fc", {.in = 2, .out = c});
  const model before = net;
  CHECK(message_of([&] { linear(net, "fc", {.in = 2, .out = c}); }) ==
        "subfed: model: the tensor name 'fc.weight' is taken");
  CHECK(net == before);
  model other;
  const auto d = other.group("d", 3);
  other.tensor("bn.running_var", {d});
  const model untouched = other;
  CHECK(message_of([&] {
          batch_norm(other, "bn", {d, subfed::affine::learned, subfed::running_statistics::kept});
        }) == "subfed: model: the tensor name 'bn.running_var' is taken");
  CHECK(other == untouched);
}
