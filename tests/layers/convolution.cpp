// SPDX-License-Identifier: MIT
#include <subfed/layers/convolution.hpp>

#include <support/checks.hpp>
#include <support/layouts.hpp>

using subfed::bias;
using subfed::index_set;
using subfed::model;
using subfed::submodel;
using support::held;
using support::layout_of;
using support::message_of;
using support::node_list;
using support::tensor_lines;
using extents_type = std::vector<std::int64_t>;

TEST_CASE("convolutions are (out, in, kernel), transposed ones (in, out, kernel)") {
  model net;
  const auto a = net.group("a", 8);
  const auto b = net.group("b", 16);
  conv1d(net, "c1", {a, b, 3});
  conv2d(net, "c2", {a, b, 3, 5, bias::none});
  conv3d(net, "c3", {a, b, 2, 3, 4});
  conv_transpose1d(net, "t1", {a, b, 3});
  conv_transpose2d(net, "t2", {a, b, 3, 5, bias::none});
  conv_transpose3d(net, "t3", {a, b, 2, 3, 4});
  CHECK(layout_of(net) == tensor_lines{"c1.weight (16, 8, 3)", "c1.bias (16,)",
                                       "c2.weight (16, 8, 3, 5)", "c3.weight (16, 8, 2, 3, 4)",
                                       "c3.bias (16,)", "t1.weight (8, 16, 3)", "t1.bias (16,)",
                                       "t2.weight (8, 16, 3, 5)", "t3.weight (8, 16, 2, 3, 4)",
                                       "t3.bias (16,)"});
}

TEST_CASE("depthwise: the second dimension is untouched, and the client has a group a channel") {
  model net;
  const auto c = net.group("c", 6);
  const auto conv = conv2d(net, "depthwise", {c, c, 3, 3, bias::none, 6});
  CHECK(net[conv.weight].extents == extents_type{6, 1, 3, 3});
  const submodel part(net, {index_set(6, {4, 5, 0})});
  CHECK(part.extents(conv.weight) == extents_type{3, 1, 3, 3});
  CHECK(held(part, conv.weight, 0) == node_list{4, 5, 0});
  // Two outputs for each channel, and the transposed form.
  const auto wide = conv2d(net, "wide", {c, c.block(2), 3, 3, bias::added, 6});
  CHECK(net[wide.weight].extents == extents_type{12, 1, 3, 3});
  CHECK(held(submodel(net, {index_set(6, {4, 0})}), *wide.bias, 0) == node_list{8, 9, 0, 1});
  const auto transposed = conv_transpose1d(net, "up", {c, c.block(2), 3, bias::added, 6});
  CHECK(net[transposed.weight].extents == extents_type{6, 2, 3});
}

TEST_CASE("one output channel is an ordinary convolution, not a depthwise one") {
  model net;
  const auto in = net.group("in", 4);
  const auto conv = conv2d(net, "conv", {in, 1, 3, 3});
  CHECK(submodel(net, {index_set(4, {0, 2})}).extents(conv.weight) == extents_type{1, 2, 3, 3});
}

TEST_CASE("two groups cut inside: half of each, inputs counted inside the group") {
  model net;
  const auto in = net.group("in", 4);
  const auto out = net.group("out", 2);
  const auto conv = conv1d(net, "conv", {in.repeat(2), out.repeat(2), 1, bias::none, 2});
  CHECK(net[conv.weight].extents == extents_type{4, 4, 1});
  const submodel part(net, {index_set(4, {0, 1}), index_set(2, {0})});
  CHECK(part.extents(conv.weight) == extents_type{2, 2, 1});
  CHECK(held(part, conv.weight, 0) == node_list{0, 2});
  CHECK(held(part, conv.weight, 1) == node_list{0, 1});
  const auto before = net.tensor("before", {in.repeat(2)});
  CHECK(held(submodel(net, {index_set(4, {0, 1}), index_set(2, {0})}), before, 0) ==
        node_list{0, 1, 4, 5});
}

TEST_CASE("whole groups of a convolution: a node is a group with all its channels") {
  model net;
  const auto g = net.group("g", 4);
  const auto conv = conv2d(net, "conv", {g.block(8), g.block(2), 3, 3, bias::added, 4});
  CHECK(net[conv.weight].extents == extents_type{8, 8, 3, 3});
  const submodel part(net, {index_set(4, {2, 0})});
  CHECK(part.extents(conv.weight) == extents_type{4, 8, 3, 3});
  CHECK(held(part, conv.weight, 0) == node_list{4, 5, 0, 1});
}

TEST_CASE("groups of channels that are never cut need only divide them") {
  model net;
  const auto out = net.group("out", 3);
  CHECK(net[conv2d(net, "a", {8, 6, 3, 3, bias::none, 2}).weight].extents ==
        extents_type{6, 4, 3, 3});
  CHECK(net[conv2d(net, "b", {8, out.repeat(2), 3, 3, bias::none, 2}).weight].extents ==
        extents_type{6, 4, 3, 3});
  // A concatenation that repeats itself.
  const auto x = net.group("x", 2);
  const auto y = net.group("y", 3);
  const auto both = subfed::concat({x, y}).repeat(2);
  CHECK(net[conv2d(net, "c", {both, 4, 1, 1, bias::none, 2}).weight].extents ==
        extents_type{4, 5, 1, 1});
}

TEST_CASE("groups that do not divide, or could be cut differently, are errors with the tensors") {
  model net;
  const auto c = net.group("c", 8);
  const auto d = net.group("d", 4);
  const model before = net;
  CHECK(message_of([&] {
          conv2d(net, "conv", {c, c, 3, 3, bias::added, 3});
        }) ==
        "subfed: layers: the 8 elements (c) of the input of 'conv.weight' and 'conv.bias' are not "
        "divisible by 3 groups");
  CHECK(
      message_of([&] {
        conv2d(net, "conv", {8, c, 3, 3, bias::none, 2});
      }) ==
      "subfed: layers: a client could cut the 8 elements (c) of 'conv.weight' differently in each "
      "of 2 groups; describe them as repeat(2) of 4 elements to cut inside the groups, or as "
      "block(4) of a group of 2 to cut whole groups");
  CHECK(message_of([&] {
          conv2d(net, "conv", {d.block(2), d.repeat(4), 3, 3, bias::none, 4});
        }) ==
        "subfed: layers: a client could hold other groups of the input (d x 2) than of the output "
        "(4 x d) of 'conv.weight' with 4 groups; bind both to one group of nodes");
  CHECK(message_of([&] {
          conv1d(net, "conv", {c, c, 3, bias::none, 0});
        }) == "subfed: layers: 0 groups of the input of 'conv.weight', expected at least 1");
  CHECK(net == before);
}
