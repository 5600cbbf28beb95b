// SPDX-License-Identifier: MIT
#include <subfed/layers/normalization.hpp>

#include <support/checks.hpp>
#include <support/layouts.hpp>

using subfed::affine;
using subfed::index_set;
using subfed::model;
using subfed::running_statistics;
using subfed::submodel;
using support::layout_of;
using support::message_of;
using support::tensor_lines;
using extents_type = std::vector<std::int64_t>;

TEST_CASE("batch norm with statistics and counter is PyTorch's state dict, in its order") {
  model net;
  const auto c = net.group("c", 7);
  const auto made = batch_norm(net, "bn", {c, affine::learned, running_statistics::with_counter});
  CHECK(layout_of(net) == tensor_lines{"bn.weight (7,)", "bn.bias (7,)", "bn.running_mean (7,)",
                                       "bn.running_var (7,)", "bn.num_batches_tracked ()"});
  REQUIRE(made.num_batches_tracked.has_value());
  const submodel part(net, {index_set(7, {6, 0})});
  CHECK(part.extents(*made.running_var) == extents_type{2});
  CHECK(part.extents(*made.num_batches_tracked).empty());
  CHECK(part.size() == 9);
}

TEST_CASE("batch norm without a counter, without statistics, without weights") {
  model net;
  batch_norm(net, "a", {3, affine::learned, running_statistics::kept});
  batch_norm(net, "b", {3});
  batch_norm(net, "c", {3, affine::none, running_statistics::with_counter});
  batch_norm(net, "d", {3, affine::none});
  CHECK(layout_of(net) == tensor_lines{"a.weight (3,)", "a.bias (3,)", "a.running_mean (3,)",
                                       "a.running_var (3,)", "b.weight (3,)", "b.bias (3,)",
                                       "c.running_mean (3,)", "c.running_var (3,)",
                                       "c.num_batches_tracked ()"});
}

TEST_CASE("means and variances of a batch norm are statistics, the batches seen a counter") {
  using subfed::role;
  model net;
  const auto made = batch_norm(net, "bn", {3, affine::learned, running_statistics::with_counter});
  CHECK(net[*made.weight].role == role::parameter);
  CHECK(net[*made.bias].role == role::parameter);
  CHECK(net[*made.running_mean].role == role::statistic);
  CHECK(net[*made.running_var].role == role::statistic);
  CHECK(net[*made.num_batches_tracked].role == role::counter);
}

TEST_CASE("layer norm has the shape that it normalises over") {
  model net;
  const auto w = net.group("w", 5);
  layer_norm(net, "a", {.shape = {w}});
  layer_norm(net, "b", {.shape = {3, w}, .bias = subfed::bias::none});
  const auto nothing = layer_norm(net, "c", {.shape = {w}, .affine = affine::none});
  CHECK_FALSE(nothing.weight.has_value());
  CHECK(layout_of(net) == tensor_lines{"a.weight (5,)", "a.bias (5,)", "b.weight (3, 5)"});
}

TEST_CASE("group norm is cut inside its groups or in whole groups") {
  model net;
  const auto node = net.group("node", 4);
  const auto group = net.group("group", 2);
  const auto inside = group_norm(net, "a", {node.repeat(2), 2});
  const auto whole = group_norm(net, "b", {group.block(4), 2});
  const auto one = group_norm(net, "c", {node, 1});
  const submodel part(net, {index_set(4, {3, 1}), index_set(2, {1})});
  CHECK(support::held(part, *inside.weight, 0) == support::node_list{3, 1, 7, 5});
  CHECK(support::held(part, *whole.weight, 0) == support::node_list{4, 5, 6, 7});
  CHECK(support::held(part, *one.bias, 0) == support::node_list{3, 1});
  CHECK_FALSE(group_norm(net, "d", {8, 2, affine::none}).weight.has_value());
}

TEST_CASE("group norm whose groups do not fit is an error that names both tensors") {
  model net;
  const auto c = net.group("c", 8);
  const model before = net;
  CHECK(message_of([&] {
          group_norm(net, "gn", {c, 3});
        }) ==
        "subfed: layers: the 8 elements (c) of 'gn.weight' and 'gn.bias' are not divisible by 3 "
        "groups");
  CHECK(message_of([&] {
          group_norm(net, "gn", {c, 2});
        }) ==
        "subfed: layers: a client could cut the 8 elements (c) of 'gn.weight' and 'gn.bias' "
        "differently in each of 2 groups; describe them as repeat(2) of 4 elements to cut inside "
        "the groups, or as block(4) of a group of 2 to cut whole groups");
  CHECK(net == before);
}
