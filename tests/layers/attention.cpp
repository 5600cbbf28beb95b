// SPDX-License-Identifier: MIT
#include <subfed/layers/attention.hpp>

#include <support/checks.hpp>
#include <support/layouts.hpp>

#include <string>

using subfed::fused_rows;
using subfed::index_set;
using subfed::inside_heads;
using subfed::model;
using subfed::submodel;
using subfed::whole_heads;
using support::held;
using support::layout_of;
using support::message_of;
using support::node_list;
using support::tensor_lines;

TEST_CASE("two heads of four: cut inside, the same nodes of each head, of queries, keys, values") {
  model net;
  const auto node = net.group("node", 4);
  const auto made =
      multihead_attention(net, "attn", {.width = 8, .inner = node.repeat(2), .heads = 2});
  CHECK(layout_of(net) == tensor_lines{"attn.in_proj_weight (24, 8)", "attn.in_proj_bias (24,)",
                                       "attn.out_proj.weight (8, 8)", "attn.out_proj.bias (8,)"});
  const submodel prefix(net, {index_set(4, {0, 1})});
  CHECK(held(prefix, made.in_proj[0], 0) == node_list{0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21});
  CHECK(held(prefix, made.out_proj.weight, 1) == node_list{0, 1, 4, 5});
  const submodel rolled(net, {index_set(4, {3, 0})});
  CHECK(held(rolled, made.in_proj[0], 0) == node_list{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20});
  CHECK(held(rolled, *made.in_proj_bias, 0) ==
        node_list{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20});
  CHECK(held(rolled, made.out_proj.weight, 1) == node_list{3, 0, 7, 4});
}

TEST_CASE("two heads of four: cut in whole heads") {
  model net;
  const auto heads = net.group("heads", 2);
  const auto made =
      multihead_attention(net, "attn", {.width = 8, .inner = heads.block(4), .heads = 2});
  const submodel part(net, {index_set(2, {1})});
  CHECK(held(part, made.in_proj[0], 0) == node_list{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23});
  CHECK(held(part, made.out_proj.weight, 1) == node_list{4, 5, 6, 7});
}

TEST_CASE("keys and values of another width have weights of their own") {
  model net;
  const auto node = net.group("node", 4);
  multihead_attention(
      net, "attn", {.width = node.repeat(2), .inner = node.repeat(2), .heads = 2, .key_width = 5});
  CHECK(layout_of(net) == tensor_lines{"attn.q_proj_weight (8, 8)", "attn.k_proj_weight (8, 5)",
                                       "attn.v_proj_weight (8, 8)", "attn.in_proj_bias (24,)",
                                       "attn.out_proj.weight (8, 8)", "attn.out_proj.bias (8,)"});
}

TEST_CASE("heads that do not divide the width, or could be mixed, are errors with both tensors") {
  model net;
  const auto d = net.group("d", 10);
  const auto e = net.group("e", 8);
  const model before = net;
  CHECK(
      message_of([&] { multihead_attention(net, "attn", {.width = d, .inner = d, .heads = 4}); }) ==
      "subfed: layers: the 10 elements (d) of 'attn.in_proj_weight' and 'attn.out_proj.weight' are "
      "not divisible by 4 heads");
  CHECK(
      message_of([&] { multihead_attention(net, "attn", {.width = e, .inner = e, .heads = 2}); }) ==
      "subfed: layers: a client could cut the 8 elements (e) of 'attn.in_proj_weight' and "
      "'attn.out_proj.weight' differently in each of 2 heads; describe them as repeat(2) of 4 "
      "elements to cut inside the heads, or as block(4) of a group of 2 to cut whole heads");
  CHECK(message_of([&] {
          multihead_attention(net, "attn", {.width = d, .inner = e.repeat(2), .heads = 2});
        }) ==
        "subfed: layers: 'attn.in_proj_weight' makes heads of 16 elements together, but "
        "'attn.out_proj.weight' writes 10; multihead_attention needs as many, attention does not");
  CHECK(net == before);
}

TEST_CASE("separate layers for queries, keys and values, under any names") {
  model net;
  const auto width = net.group("width", 6);
  const auto node = net.group("node", 4);
  const auto made =
      attention(net, "a", {.in = width, .out = width, .heads = inside_heads(node, 2)});
  CHECK(layout_of(net) == tensor_lines{"a.q_proj.weight (8, 6)", "a.q_proj.bias (8,)",
                                       "a.k_proj.weight (8, 6)", "a.k_proj.bias (8,)",
                                       "a.v_proj.weight (8, 6)", "a.v_proj.bias (8,)",
                                       "a.o_proj.weight (6, 8)", "a.o_proj.bias (6,)"});
  const submodel part(net, {index_set(6, {5}), index_set(4, {3, 0})});
  CHECK(held(part, made.query.weight, 0) == node_list{3, 0, 7, 4});
  CHECK(held(part, made.output.weight, 1) == node_list{3, 0, 7, 4});
  const auto cross = attention(net, "b",
                               {.in = width,
                                .out = width,
                                .heads = inside_heads(node, 2),
                                .bias = subfed::bias::none,
                                .context = 7,
                                .query_name = "to_q",
                                .key_name = "to_k",
                                .value_name = "to_v",
                                .output_name = "to_out.0"});
  CHECK(net[cross.key.weight].name == "b.to_k.weight");
  CHECK(net[cross.key.weight].extents == std::vector<std::int64_t>{8, 7});
  CHECK(net[cross.output.weight].name == "b.to_out.0.weight");
}

TEST_CASE("grouped queries: a key-value head is cut with all its query heads, or all inside") {
  model net;
  const auto heads = net.group("heads", 2);
  const auto node = net.group("node", 3);
  const auto whole = attention(
      net, "whole",
      {.in = 5, .out = 5, .heads = whole_heads(net, heads, 3, 2), .bias = subfed::bias::none});
  const auto inside =
      attention(net, "inside",
                {.in = 5, .out = 5, .heads = inside_heads(node, 4, 2), .bias = subfed::bias::none});
  CHECK(layout_of(net) == tensor_lines{"whole.q_proj.weight (12, 5)", "whole.k_proj.weight (6, 5)",
                                       "whole.v_proj.weight (6, 5)", "whole.o_proj.weight (5, 12)",
                                       "inside.q_proj.weight (12, 5)",
                                       "inside.k_proj.weight (6, 5)", "inside.v_proj.weight (6, 5)",
                                       "inside.o_proj.weight (5, 12)"});
  const submodel part(net, {index_set(2, {1}), index_set(3, {2, 0})});
  CHECK(held(part, whole.query.weight, 0) == node_list{6, 7, 8, 9, 10, 11});
  CHECK(held(part, whole.key.weight, 0) == node_list{3, 4, 5});
  CHECK(held(part, whole.output.weight, 1) == node_list{6, 7, 8, 9, 10, 11});
  CHECK(held(part, inside.query.weight, 0) == node_list{2, 0, 5, 3, 8, 6, 11, 9});
  CHECK(held(part, inside.value.weight, 0) == node_list{2, 0, 5, 3});
}

TEST_CASE("one key-value head for all queries is cut inside") {
  model net;
  const auto node = net.group("node", 4);
  const auto made = attention(
      net, "a", {.in = 8, .out = 8, .heads = inside_heads(node, 2, 1), .bias = subfed::bias::none});
  const submodel part(net, {index_set(4, {1, 2})});
  CHECK(held(part, made.query.weight, 0) == node_list{1, 2, 5, 6});
  CHECK(held(part, made.key.weight, 0) == node_list{1, 2});
}

TEST_CASE("one key-value head for all queries, in whole heads: a group of one node") {
  model net;
  const auto heads = net.group("heads", 1);
  const auto node = net.group("node", 1);
  const auto made = attention(
      net, "a",
      {.in = 8, .out = 8, .heads = whole_heads(net, heads, 4, 2), .bias = subfed::bias::none});
  const auto fused = fused_attention(
      net, "b",
      {.in = 8, .out = 8, .heads = whole_heads(net, heads, 4, 2), .rows = fused_rows::by_head});
  const auto by_kind =
      fused_attention(net, "c", {.in = 8, .out = 8, .heads = whole_heads(net, heads, 4, 2)});
  const auto inside = attention(net, "d", {.in = 8, .out = 8, .heads = inside_heads(node, 2, 1)});
  const submodel part(net, {index_set(1, {0}), index_set(1, {0})});
  CHECK(held(part, made.query.weight, 0) == node_list{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(held(part, made.key.weight, 0) == node_list{0, 1, 2, 3});
  CHECK(held(part, made.output.weight, 1) == held(part, made.query.weight, 0));
  const node_list all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  CHECK(held(part, fused.fused.weight, 0) == all);
  CHECK(held(part, by_kind.fused.weight, 0) == all);
  CHECK(held(part, inside.query.weight, 0) == node_list{0, 1});
  // Other query heads than the node stands for.
  CHECK(
      message_of([&] {
        attention(net, "e", {.in = 8, .out = 8, .heads = {heads.block(12), heads.block(4), 2, 1}});
      }).find("could cut the 12 elements") != std::string::npos);
}

TEST_CASE("rotary pairs stay together, whichever way a code base pairs elements") {
  model net;
  const auto pair = net.group("pair", 2);  // heads of 4
  const auto halves =
      attention(net, "halves", {.in = 8, .out = 8, .heads = inside_heads(pair.repeat(2), 2)});
  const auto neighbours =
      attention(net, "neighbours", {.in = 8, .out = 8, .heads = inside_heads(pair.block(2), 2)});
  const submodel part(net, {index_set(2, {1})});
  CHECK(held(part, halves.query.weight, 0) == node_list{1, 3, 5, 7});
  CHECK(held(part, neighbours.query.weight, 0) == node_list{2, 3, 6, 7});
}

TEST_CASE("fused rows: all queries, keys, values; or head by head") {
  model net;
  const auto heads = net.group("heads", 2);
  const auto node = net.group("node", 3);
  const auto by_kind =
      fused_attention(net, "a", {.in = 5, .out = 5, .heads = whole_heads(net, heads, 3)});
  CHECK(layout_of(net) == tensor_lines{"a.qkv.weight (18, 5)", "a.qkv.bias (18,)",
                                       "a.proj.weight (5, 6)", "a.proj.bias (5,)"});
  const auto by_head = fused_attention(
      net, "b",
      {.in = 5, .out = 5, .heads = whole_heads(net, heads, 3), .rows = fused_rows::by_head});
  const auto grouped =
      fused_attention(net, "c", {.in = 5, .out = 5, .heads = whole_heads(net, heads, 3, 2)});
  const auto grouped_by_head = fused_attention(
      net, "d",
      {.in = 5, .out = 5, .heads = whole_heads(net, heads, 3, 2), .rows = fused_rows::by_head});
  const auto inside = fused_attention(
      net, "e",
      {.in = 5, .out = 5, .heads = inside_heads(node, 2, 1), .rows = fused_rows::by_head});
  const auto transposed = fused_attention(net, "f",
                                          {.in = 5,
                                           .out = 5,
                                           .heads = whole_heads(net, heads, 3),
                                           .fused_name = "c_attn",
                                           .output_name = "c_proj",
                                           .weight = subfed::linear_weight::in_out});
  const submodel part(net, {index_set(2, {1}), index_set(3, {2})});
  CHECK(held(part, by_kind.fused.weight, 0) == node_list{3, 4, 5, 9, 10, 11, 15, 16, 17});
  CHECK(net[transposed.fused.weight].name == "f.c_attn.weight");
  CHECK(held(part, transposed.fused.weight, 1) == held(part, by_kind.fused.weight, 0));
  CHECK(held(part, transposed.output.weight, 0) == held(part, by_kind.output.weight, 1));
  CHECK(held(part, by_head.fused.weight, 0) == node_list{9, 10, 11, 12, 13, 14, 15, 16, 17});
  CHECK(held(part, grouped.fused.weight, 0) ==
        node_list{6, 7, 8, 9, 10, 11, 15, 16, 17, 21, 22, 23});
  CHECK(held(part, grouped_by_head.fused.weight, 0) ==
        node_list{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(held(part, inside.fused.weight, 0) == node_list{2, 5, 8, 11});
  CHECK(held(part, grouped.output.weight, 1) == node_list{6, 7, 8, 9, 10, 11});
}

TEST_CASE("queries and keys whose heads do not fit are an error that names both tensors") {
  model net;
  const auto a = net.group("a", 4);
  const auto b = net.group("b", 4);
  const model before = net;
  const auto message = [&](const subfed::attention_heads& heads) {
    return message_of([&] { attention(net, "x", {.in = 8, .out = 8, .heads = heads}); });
  };
  CHECK(message({a.repeat(3), a.repeat(2), 3, 2}) ==
        "subfed: layers: 3 query heads of 'x.q_proj.weight' cannot be divided among 2 key-value "
        "heads of 'x.k_proj.weight'");
  CHECK(message({a.repeat(2), b.repeat(2), 2, 2}) ==
        "subfed: layers: heads of 'x.q_proj.weight' and 'x.k_proj.weight' do not fit: 2 x a with 2 "
        "query heads, 2 x b with 2 key-value heads");
  CHECK(message({16, 6, 4, 2}) ==
        "subfed: layers: heads of 'x.q_proj.weight' and 'x.k_proj.weight' do not fit: 16 with 4 "
        "query heads, 6 with 2 key-value heads");
  CHECK(message({a.block(2), b.block(2), 4, 4}) ==
        "subfed: layers: heads of 'x.q_proj.weight' and 'x.k_proj.weight' do not fit: a x 2 with 4 "
        "query heads, b x 2 with 4 key-value heads");
  CHECK(message({10, 10, 4, 4}) ==
        "subfed: layers: the 10 elements (10) of 'x.k_proj.weight' are not divisible by 4 heads");
  CHECK(net == before);
}

TEST_CASE("numbers of heads beyond 64 bits are refused") {
  model net;
  const auto heads = net.group("heads", 4);
  const auto none = net.group("none", 0);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(message_of([&] { subfed::whole_heads(net, heads, 1, most); }) ==
        "subfed: layers: 4 times 9223372036854775807 query heads are over 2^63 - 1");
  const model before = net;
  const subfed::attention_heads empty{none.block(3), none.block(3), most, 1};
  CHECK(message_of([&] {
          subfed::fused_attention(
              net, "a", {.in = 2, .out = 2, .heads = empty, .rows = subfed::fused_rows::by_head});
        }) != "nothing was thrown");
  CHECK(net == before);
}
