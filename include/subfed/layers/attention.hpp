// SPDX-License-Identifier: MIT
/// Multi-head attention: cut inside the heads or by whole heads, with as many key and value heads
/// as query heads or fewer, in one tensor or three.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// The heads of an attention and how clients cut them; inside_heads and whole_heads return it.
struct attention_heads {
  dimension query;      ///< elements of all query heads, one after the other
  dimension key_value;  ///< of all key heads, and of all value heads
  std::int64_t query_heads;
  std::int64_t key_value_heads;  ///< fewer than query_heads: grouped-query attention
};

/// Every client has all heads, and the same nodes of each: `node` is a group of as many nodes as a
/// head is wide. Rotary positions rotate pairs of elements: give pair.repeat(2) where a pair is
/// (i, i + width / 2), or pair.block(2) where it is (2 i, 2 i + 1), with a group of pairs.
inline attention_heads inside_heads(const dimension& node, std::int64_t heads,
                                    std::int64_t key_value_heads) {
  return {node.repeat(heads), node.repeat(key_value_heads), heads, key_value_heads};
}
inline attention_heads inside_heads(const dimension& node, std::int64_t heads) {
  return inside_heads(node, heads, heads);
}

/// A client has some heads, each of them whole: `heads` is a group with a node for each key-value
/// head, which stands for queries_each query heads of `width` elements.
inline attention_heads whole_heads(const model& net, group_id heads, std::int64_t width,
                                   std::int64_t queries_each = 1) {
  const std::int64_t count = net[heads].extent;
  attention_heads made{heads.block(queries_each).block(width), heads.block(width), count, count};
  if (!detail::multiply(made.query_heads, queries_each)) {
    detail::fail("subfed: layers: " + std::to_string(count) + " times " +
                     std::to_string(queries_each) + " query heads are over 2^63 - 1",
                 {.group = net[heads].name});
  }
  return made;
}

/// torch.nn.MultiheadAttention. Its heads together are as wide as embed_dim; key and value inputs of
/// another width have separate weights.
struct multihead_attention_layer {
  dimension width;  ///< embed_dim: queries read it, the output projection writes it
  dimension inner;  ///< the elements of all heads, one after the other
  std::int64_t heads;
  subfed::bias bias = subfed::bias::added;
  std::optional<dimension> key_width = {};    ///< kdim, when it is not embed_dim
  std::optional<dimension> value_width = {};  ///< vdim
};

/// Queries, keys and values in three layers, the output projection in a fourth, under names that
/// differ between code bases.
struct attention_layer {
  dimension in;
  dimension out;
  attention_heads heads;
  subfed::bias bias = subfed::bias::added;
  std::optional<dimension> context = {};  ///< what keys and values read, when it is not `in`
  std::string query_name = "q_proj";
  std::string key_name = "k_proj";
  std::string value_name = "v_proj";
  std::string output_name = "o_proj";
};

/// Order of the rows of a fused tensor: all queries, all keys, all values; or for each key-value
/// head its queries, its key, its value.
enum class fused_rows { by_kind, by_head };

/// Queries, keys and values in one layer.
struct fused_attention_layer {
  dimension in;
  dimension out;
  attention_heads heads;
  subfed::bias bias = subfed::bias::added;
  fused_rows rows = fused_rows::by_kind;
  std::string fused_name = "qkv";
  std::string output_name = "proj";
  linear_weight weight = linear_weight::out_in;  ///< of both tensors
};

struct multihead_attention_tensors {
  std::vector<tensor_id>
      in_proj;  ///< in_proj_weight, or q_proj_weight, k_proj_weight, v_proj_weight
  std::optional<tensor_id> in_proj_bias;
  weight_and_bias out_proj;
};
struct attention_tensors {
  weight_and_bias query;
  weight_and_bias key;
  weight_and_bias value;
  weight_and_bias output;
};
struct fused_attention_tensors {
  weight_and_bias fused;
  weight_and_bias output;
};

namespace detail {

/// Whether one node stands for the only key-value head and for all its query heads: multi-query attention
/// of whole_heads.
inline bool are_of_one_node(const model& net, const attention_heads& heads) {
  const auto keys = heads.key_value.parts(), queries = heads.query.parts();
  if (heads.key_value_heads != 1 || keys.size() != 1 || queries.size() != 1) return false;
  const dimension::part &k = keys[0], &q = queries[0];
  std::int64_t block = k.block;  // of all queries
  return k.group != dimension::no_group && q.group == k.group && k.repeat == 1 && q.repeat == 1 &&
         net[group_id(k.group)].extent == 1 && multiply(block, heads.query_heads) &&
         q.block == block;
}

/// Throws unless every client's query and key heads match: each key-value head has the same number
/// of query heads, and they are as wide as it and cut in the same way.
inline void check_heads(const model& net, const attention_heads& heads, const std::string& query,
                        const std::string& key) {
  const std::string tensors = "'" + query + "' and '" + key + "'";
  if (heads.key_value_heads < 1 || heads.query_heads % heads.key_value_heads != 0) {
    fail("subfed: layers: " + std::to_string(heads.query_heads) + " query heads of '" + query +
         "' cannot be divided among " + std::to_string(heads.key_value_heads) +
         " key-value heads of '" + key + "'");
  }
  if (are_of_one_node(net, heads)) return;
  const auto keys =
      checked_equal_part(net, "'" + key + "'", heads.key_value, heads.key_value_heads, "heads");
  // Whole heads are cut by key-value heads with all their queries.
  const bool whole = keys.parts_are != dimension::no_group;
  const std::int64_t each = heads.query_heads / heads.key_value_heads;
  const auto queries =
      checked_equal_part(net, "'" + query + "'", heads.query,
                         whole ? heads.key_value_heads : heads.query_heads, "heads");
  std::int64_t together = net.extent(keys.one);  // of the queries of one key
  if (!multiply(together, each)) together = largest_size;
  const dimension expected = whole ? dimension(together) : keys.one;
  if (queries.parts_are == keys.parts_are && queries.one == expected) return;
  fail("subfed: layers: heads of " + tensors + " do not fit: " + dimension_text(net, heads.query) +
       " with " + std::to_string(heads.query_heads) + " query heads, " +
       dimension_text(net, heads.key_value) + " with " + std::to_string(heads.key_value_heads) +
       " key-value heads");
}

}  // namespace detail

/// name.in_proj_weight (3 inner, width), or with another key_width or value_width
/// name.q_proj_weight (inner, width), name.k_proj_weight (inner, key_width), name.v_proj_weight
/// (inner, value_width); name.in_proj_bias (3 inner); name.out_proj.weight (width, inner),
/// name.out_proj.bias (width). Rows of the first are queries, keys, values.
///
/// For clients that also use torch.nn.MultiheadAttention, inner must be cut like width: bind both
/// to one dimension, node.repeat(heads).
///
/// Throws  error that names both tensors when heads do not divide inner, inner is not as wide as
///         width, or clients could cut the heads differently.
inline multihead_attention_tensors multihead_attention(model& net, const std::string& name,
                                                       const multihead_attention_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    const bool fused = !layer.key_width && !layer.value_width;
    const std::string first = name + (fused ? ".in_proj_weight" : ".q_proj_weight");
    const std::string last = name + ".out_proj.weight";
    const std::string tensors = "'" + first + "' and '" + last + "'";
    detail::checked_equal_part(net, tensors, layer.inner, layer.heads, "heads");
    if (net.extent(layer.inner) != net.extent(layer.width)) {
      detail::fail("subfed: layers: '" + first + "' makes heads of " +
                   std::to_string(net.extent(layer.inner)) + " elements together, but '" + last +
                   "' writes " + std::to_string(net.extent(layer.width)) +
                   "; multihead_attention needs as many, attention does not");
    }
    multihead_attention_tensors made{{}, {}, {tensor_id(0), {}}};
    if (fused) {
      made.in_proj = {described.tensor(first, {layer.inner.repeat(3), layer.width})};
    } else {
      made.in_proj = {described.tensor(first, {layer.inner, layer.width}),
                      described.tensor(name + ".k_proj_weight",
                                       {layer.inner, layer.key_width.value_or(layer.width)}),
                      described.tensor(name + ".v_proj_weight",
                                       {layer.inner, layer.value_width.value_or(layer.width)})};
    }
    if (layer.bias == bias::added) {
      made.in_proj_bias = described.tensor(name + ".in_proj_bias", {layer.inner.repeat(3)});
    }
    made.out_proj = linear(described, name + ".out_proj", {layer.inner, layer.width, layer.bias});
    return made;
  });
}

/// Weights and biases of name.q_proj (query, in), name.k_proj and name.v_proj (key_value, context),
/// name.o_proj (out, query).
///
///   attention(net, "attn", {.in = width, .out = width, .heads = inside_heads(node, 8)});
///   attention(net, "attn", {.in = width, .out = width, .heads = whole_heads(net, heads, 64, 4)});
///
/// Throws  error that names both tensors when heads do not divide them, or clients could cut the
///         heads differently.
inline attention_tensors attention(model& net, const std::string& name,
                                   const attention_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    const auto named = [&](const std::string& part) { return name + "." + part; };
    detail::check_heads(net, layer.heads, named(layer.query_name) + ".weight",
                        named(layer.key_name) + ".weight");
    const dimension context = layer.context.value_or(layer.in);
    return attention_tensors{
        linear(described, named(layer.query_name), {layer.in, layer.heads.query, layer.bias}),
        linear(described, named(layer.key_name), {context, layer.heads.key_value, layer.bias}),
        linear(described, named(layer.value_name), {context, layer.heads.key_value, layer.bias}),
        linear(described, named(layer.output_name), {layer.heads.query, layer.out, layer.bias})};
  });
}

/// Weights and biases of name.qkv (query + 2 key_value, in), in the order that `rows` says, and
/// name.proj (out, query). GPT-2's is
///   fused_attention(net, "h.0.attn", {.in = width, .out = width, .heads = inside_heads(node, 12),
///                                     .fused_name = "c_attn", .output_name = "c_proj",
///                                     .weight = linear_weight::in_out});
///
/// Throws  as attention.
inline fused_attention_tensors fused_attention(model& net, const std::string& name,
                                               const fused_attention_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    const std::string fused = name + "." + layer.fused_name;
    const std::string output = name + "." + layer.output_name;
    const attention_heads& heads = layer.heads;
    detail::check_heads(net, heads, output + ".weight", fused + ".weight");
    dimension rows = concat({heads.query, heads.key_value, heads.key_value});
    if (heads.query == heads.key_value) rows = heads.query.repeat(3);
    if (layer.rows == fused_rows::by_head) {
      const auto key = detail::find_equal_part(net, heads.key_value, heads.key_value_heads);
      std::int64_t each = heads.query_heads / heads.key_value_heads;
      if (!detail::add(each, 2)) {
        detail::fail("subfed: layers: '" + fused + ".weight' has more than 2^63 - 1 heads");
      }
      rows = key->parts_are == dimension::no_group
                 ? key->one.repeat(each).repeat(heads.key_value_heads)
                 : heads.key_value.block(each);
    }
    return fused_attention_tensors{
        linear(described, fused, {layer.in, rows, layer.bias, layer.weight}),
        linear(described, output, {heads.query, layer.out, layer.bias, layer.weight})};
  });
}

}  // namespace subfed::inline v0
