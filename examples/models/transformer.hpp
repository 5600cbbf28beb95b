// SPDX-License-Identifier: MIT
/// The 3-layer Transformer of [Rolex, Sec. 4] for next-word prediction on Stack Overflow.
/// transformer_module.hpp has it as a torch module.
#pragma once

#include <subfed/layers.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace models {

/// How clients cut attention: the same nodes of each head, or some heads as a whole.
enum class head_cut { inside, whole };

struct transformer_options {
  std::int64_t vocabulary = 10000;
  std::int64_t positions = 64;
  std::int64_t width = 128;
  std::int64_t heads = 8;
  std::int64_t head_width = 16;  // of the released code; the paper's text says 12
  std::int64_t hidden = 2048;    // of the feed-forward network
  std::int64_t layers = 3;
  head_cut cut = head_cut::inside;
};

struct transformer {
  subfed::model net;
  subfed::group_id words;
  subfed::group_id width;                // of the residual stream and the embeddings
  std::vector<subfed::group_id> heads;   // one per layer: nodes of a head, or heads
  std::vector<subfed::group_id> hidden;  // one per layer
  subfed::group_id decoder;
  transformer_options options;
};

/// Words (one more than the vocabulary: the mask) and learned positions are added and normalised.
/// Each layer is x = norm1(x + attention(x)); x = norm2(x + linear2(relu(linear1(x)))). After them:
/// decoder2(norm(relu(decoder1(x)))).
inline transformer describe_transformer(const transformer_options& options = {}) {
  subfed::model net;
  const auto words = net.group("words", options.vocabulary, subfed::cut::never);
  const auto width = net.group("width", options.width);
  embedding(net, "embedding", {.count = options.vocabulary + 1, .width = width});
  embedding(net, "positions", {.count = options.positions, .width = width});
  layer_norm(net, "norm", {.shape = {width}});

  std::vector<subfed::group_id> heads, hidden;
  for (std::int64_t l = 0; l < options.layers; ++l) {
    const std::string layer = "layers." + std::to_string(l);
    hidden.push_back(net.group(layer + ".hidden", options.hidden));
    subfed::attention_heads cut = subfed::inside_heads(1, 1);
    if (options.cut == head_cut::inside) {
      heads.push_back(net.group(layer + ".head", options.head_width));
      cut = subfed::inside_heads(heads.back(), options.heads);
    } else {
      heads.push_back(net.group(layer + ".heads", options.heads));
      cut = subfed::whole_heads(net, heads.back(), options.head_width);
    }
    attention(net, layer + ".attention", {.in = width, .out = width, .heads = cut});
    layer_norm(net, layer + ".norm1", {.shape = {width}});
    linear(net, layer + ".linear1", {width, hidden.back()});
    linear(net, layer + ".linear2", {hidden.back(), width});
    layer_norm(net, layer + ".norm2", {.shape = {width}});
  }
  const auto decoder = net.group("decoder", options.width);
  linear(net, "decoder1", {width, decoder});
  layer_norm(net, "decoder_norm", {.shape = {decoder}});
  linear(net, "decoder2", {decoder, words});
  return {net, words, width, heads, hidden, decoder, options};
}

}  // namespace models
