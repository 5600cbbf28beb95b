// SPDX-License-Identifier: MIT
#include <subfed/layers/linear.hpp>

#include <subfed/layers/embedding.hpp>
#include <support/checks.hpp>
#include <support/layouts.hpp>

#include <vector>

using subfed::model;
using support::layout_of;
using support::message_of;
using support::tensor_lines;

TEST_CASE("a linear layer has weight (out, in) and the bias that it is asked for") {
  model net;
  const auto hidden = net.group("hidden", 64);
  linear(net, "fc1", {.in = 784, .out = hidden});
  linear(net, "fc2", {.in = hidden, .out = 10, .bias = subfed::bias::none});
  CHECK(layout_of(net) ==
        tensor_lines{"fc1.weight (64, 784)", "fc1.bias (64,)", "fc2.weight (10, 64)"});
}

TEST_CASE("a linear layer as GPT-2 has it has weight (in, out)") {
  model net;
  const auto hidden = net.group("hidden", 64);
  const auto made =
      linear(net, "c_fc", {.in = 16, .out = hidden, .weight = subfed::linear_weight::in_out});
  CHECK(layout_of(net) == tensor_lines{"c_fc.weight (16, 64)", "c_fc.bias (64,)"});
  CHECK(net[made.weight].dimensions == std::vector<subfed::dimension>{16, hidden});
}

TEST_CASE("a tied layer describes its bias alone and hands out the shared weight") {
  model net;
  const auto width = net.group("width", 8);
  const auto words = embedding(net, "embedding", {.count = 100, .width = width});
  const auto decoder = linear_tied(net, "decoder", {.weight = words, .in = width, .out = 100});
  CHECK(decoder.weight == words);
  CHECK(layout_of(net) == tensor_lines{"embedding.weight (100, 8)", "decoder.bias (100,)"});
  CHECK(net.size() == 900);
  CHECK_FALSE(linear_tied(net, "other", {words, width, 100, subfed::bias::none}).bias.has_value());
}

TEST_CASE("a tied layer of another shape, or of other nodes, is an error that names both weights") {
  model net;
  const auto width = net.group("width", 8);
  const auto other = net.group("other", 8);
  const auto words = embedding(net, "embedding", {.count = 100, .width = width});
  const model before = net;
  CHECK(message_of([&] {
          linear_tied(net, "decoder", {words, 16, 100});
        }) ==
        "subfed: layers: 'decoder.weight' (100, 16) = (100, 16) cannot be the tensor "
        "'embedding.weight' (100, 8) = (100, width)");
  CHECK(message_of([&] {
          linear_tied(net, "decoder", {words, other, 100});
        }) ==
        "subfed: layers: 'decoder.weight' (100, 8) = (100, other) cannot be the tensor "
        "'embedding.weight' (100, 8) = (100, width)");
  CHECK(net == before);
}
