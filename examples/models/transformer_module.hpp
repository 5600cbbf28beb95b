// SPDX-License-Identifier: MIT
/// transformer.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/transformer.hpp>
#include <subfed/submodel.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace models {

/// Layer norm over the nodes that are kept: all of them in a client's own network. In the global
/// network a test sets `kept` (1 or 0 a node) to see what a client sees.
class layer_norm_module : public torch::nn::Module {
 public:
  explicit layer_norm_module(std::int64_t width) {
    weight = register_parameter("weight", torch::ones({width}));
    bias = register_parameter("bias", torch::zeros({width}));
  }
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor mask = kept.defined() ? kept : torch::ones_like(weight);
    const at::Tensor count = mask.sum();
    const at::Tensor centred = (x - (x * mask).sum(-1, true) / count) * mask;
    const at::Tensor variance = centred.square().sum(-1, true) / count;
    return centred / (variance + 1e-5).sqrt() * weight + bias;
  }

  at::Tensor weight, bias;
  at::Tensor kept;
};

class transformer_module : public torch::nn::Module {
 public:
  transformer_module(const transformer& described, const subfed::submodel& part) {
    const std::int64_t words = part.extent(described.words);
    const std::int64_t width = part.extent(described.width);
    const std::int64_t decoder = part.extent(described.decoder);
    embedding_ =
        register_module("embedding", torch::nn::Embedding(described.options.vocabulary + 1, width));
    positions_ =
        register_module("positions", torch::nn::Embedding(described.options.positions, width));
    norm_ = register_module("norm", std::make_shared<layer_norm_module>(width));
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (std::size_t l = 0; l < described.heads.size(); ++l) {
      const std::int64_t held = part.extent(described.heads[l]);
      const bool inside = described.options.cut == head_cut::inside;
      layers_->push_back(std::make_shared<layer>(width, inside ? described.options.heads : held,
                                                 inside ? held : described.options.head_width,
                                                 part.extent(described.hidden[l]),
                                                 described.options.head_width));
    }
    decoder1_ = register_module("decoder1", torch::nn::Linear(width, decoder));
    decoder_norm_ = register_module("decoder_norm", std::make_shared<layer_norm_module>(decoder));
    decoder2_ = register_module("decoder2", torch::nn::Linear(decoder, words));
  }

  /// Words (N, steps) to logits of the next one, (N, steps, words).
  at::Tensor forward(const at::Tensor& words) {
    const at::Tensor steps = torch::arange(words.size(1));
    at::Tensor x = norm_->forward(embedding_(words) + positions_(steps));
    for (const auto& each : *layers_) x = each->as<layer>()->forward(x);
    return decoder2_(decoder_norm_->forward(torch::relu(decoder1_(x))));
  }

 private:
  struct attention : torch::nn::Module {
    attention(std::int64_t width, std::int64_t heads_, std::int64_t head_width, double scale_)
        : heads(heads_), scale(scale_) {
      q_proj = register_module("q_proj", torch::nn::Linear(width, heads * head_width));
      k_proj = register_module("k_proj", torch::nn::Linear(width, heads * head_width));
      v_proj = register_module("v_proj", torch::nn::Linear(width, heads * head_width));
      o_proj = register_module("o_proj", torch::nn::Linear(heads * head_width, width));
    }
    at::Tensor forward(const at::Tensor& x) {
      const auto split = [&](const at::Tensor& y) {  // (N, heads, steps, head_width)
        return y.view({y.size(0), y.size(1), heads, -1}).transpose(1, 2);
      };
      const at::Tensor q = split(q_proj(x)), k = split(k_proj(x)), v = split(v_proj(x));
      const std::int64_t steps = x.size(1);
      const at::Tensor later = torch::ones({steps, steps}, torch::kBool).triu(1);
      const at::Tensor scores = torch::matmul(q, k.transpose(-2, -1)) * scale;
      const at::Tensor shares = scores.masked_fill(later, -INFINITY).softmax(-1);
      return o_proj(torch::matmul(shares, v).transpose(1, 2).flatten(2));
    }
    torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, o_proj{nullptr};
    std::int64_t heads;
    double scale;
  };

  struct layer : torch::nn::Module {
    /// Scores are scaled by the head width of the whole network: a client's scores are sums over
    /// fewer nodes of the same products.
    layer(std::int64_t width, std::int64_t heads, std::int64_t head_width, std::int64_t hidden,
          std::int64_t whole_head_width) {
      const double scale = 1 / std::sqrt(static_cast<double>(whole_head_width));
      attend = register_module("attention",
                               std::make_shared<attention>(width, heads, head_width, scale));
      norm1 = register_module("norm1", std::make_shared<layer_norm_module>(width));
      linear1 = register_module("linear1", torch::nn::Linear(width, hidden));
      linear2 = register_module("linear2", torch::nn::Linear(hidden, width));
      norm2 = register_module("norm2", std::make_shared<layer_norm_module>(width));
    }
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor a = norm1->forward(x + attend->forward(x));
      return norm2->forward(a + linear2(torch::relu(linear1(a))));
    }
    std::shared_ptr<attention> attend;
    std::shared_ptr<layer_norm_module> norm1, norm2;
    torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  };

  torch::nn::Embedding embedding_{nullptr}, positions_{nullptr};
  std::shared_ptr<layer_norm_module> norm_, decoder_norm_;
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::Linear decoder1_{nullptr}, decoder2_{nullptr};
};

}  // namespace models
