// SPDX-License-Identifier: MIT
#include "text_networks.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "text_data.hpp"
#include "times.hpp"

namespace trainer {
namespace {

/// Tensors under names, without first values.
struct named_tensors : torch::nn::Module {
  at::Tensor add(const std::string& name, std::vector<std::int64_t> shape) {
    return register_parameter(name, at::empty(shape));
  }
};

struct weights_and_biases : named_tensors {
  /// A linear layer.
  weights_and_biases(std::int64_t in, std::int64_t out)
      : weight(add("weight", {out, in})), bias(add("bias", {out})) {}
  /// A layer norm.
  explicit weights_and_biases(std::int64_t width)
      : weight(add("weight", {width})), bias(add("bias", {width})) {}

  at::Tensor linear(const at::Tensor& x, double scale = 1) const {
    return times(at::linear(x, weight, bias), scale);
  }
  at::Tensor norm(const at::Tensor& x) const {
    return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5);
  }

  at::Tensor weight, bias;
};

struct embedding_table : named_tensors {
  embedding_table(std::int64_t count, std::int64_t width) : weight(add("weight", {count, width})) {}

  at::Tensor weight;
};

class char_lstm : public network {
 public:
  explicit char_lstm(const channel_counts& channels)
      : encoder_(register_module(
            "encoder", std::make_shared<embedding_table>(channels.classes, embedding_width))) {
    const std::int64_t hidden = channels.inner.at(0);
    gates_ = register_module("lstm", std::make_shared<gates>(hidden));
    decoder_ =
        register_module("decoder", std::make_shared<weights_and_biases>(hidden, channels.classes));
  }

  at::Tensor forward(const at::Tensor& characters, const forward_pass& pass) const override {
    const at::Tensor x = at::embedding(encoder_->weight, characters);
    const std::int64_t nodes = gates_->weight_hh.size(1);
    const at::Tensor none = at::zeros({1, x.size(0), nodes}, x.options());
    const auto written = at::lstm(
        x, {none, none},
        {gates_->weight_ih, times(gates_->weight_hh, pass.scale), gates_->bias_ih, gates_->bias_hh},
        true, 1, 0, at::GradMode::is_enabled(), false, true);
    const at::Tensor states = std::get<0>(written).reshape({-1, nodes});
    return decoder_->linear(times(states, pass.scale));
  }
  std::int64_t classes() const override { return decoder_->bias.size(0); }

 private:
  static constexpr std::int64_t embedding_width = 8;

  struct gates : named_tensors {
    explicit gates(std::int64_t hidden)
        : weight_ih(add("weight_ih_l0", {4 * hidden, embedding_width})),
          weight_hh(add("weight_hh_l0", {4 * hidden, hidden})),
          bias_ih(add("bias_ih_l0", {4 * hidden})),
          bias_hh(add("bias_hh_l0", {4 * hidden})) {}

    at::Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };

  std::shared_ptr<embedding_table> encoder_;
  std::shared_ptr<gates> gates_;
  std::shared_ptr<weights_and_biases> decoder_;
};

class transformer : public network {
 public:
  explicit transformer(const channel_counts& channels) {
    const std::int64_t width = channels.stream.at(0), decoder = channels.inner.back();
    embedding_ = register_module("embedding",
                                 std::make_shared<embedding_table>(channels.classes + 1, width));
    positions_ =
        register_module("positions", std::make_shared<embedding_table>(most_positions, width));
    norm_ = register_module("norm", std::make_shared<weights_and_biases>(width));
    const auto layers = register_module("layers", std::make_shared<torch::nn::Module>());
    for (std::size_t i = 0; i + 1 < channels.inner.size(); i += 2) {
      layers_.push_back(std::make_shared<block>(width, channels.inner[i], channels.inner[i + 1]));
      layers->register_module(std::to_string(i / 2), layers_.back());
    }
    decoder1_ = register_module("decoder1", std::make_shared<weights_and_biases>(width, decoder));
    decoder_norm_ = register_module("decoder_norm", std::make_shared<weights_and_biases>(decoder));
    decoder2_ = register_module("decoder2",
                                std::make_shared<weights_and_biases>(decoder, channels.classes));
  }

  at::Tensor forward(const at::Tensor& words, const forward_pass& pass) const override {
    const std::int64_t steps = words.size(1);
    const at::Tensor later = at::ones({steps, steps}, words.options().dtype(at::kBool)).triu(1);
    at::Tensor x =
        at::embedding(embedding_->weight, words) + positions_->weight.narrow(0, 0, steps);
    x = norm_->norm(x);
    for (const auto& each : layers_) x = each->forward(x, later, pass.scale);
    x = decoder_norm_->norm(at::relu(decoder1_->linear(x, pass.scale)));
    return decoder2_->linear(x.flatten(0, 1));
  }
  std::int64_t classes() const override { return decoder2_->bias.size(0); }

 private:
  static constexpr std::int64_t most_positions = 64, heads = 8;
  static_assert(words_each <= most_positions);
  /// Of the heads of the papers' network, in every part of it: a client's scores are sums over fewer
  /// nodes of the same products.
  static constexpr double score_scale = 0.25;  // 1 / sqrt(16)

  struct attention : torch::nn::Module {
    attention(std::int64_t width, std::int64_t head) {
      const auto projection = [&](const char* name, std::int64_t in, std::int64_t out) {
        return register_module(name, std::make_shared<weights_and_biases>(in, out));
      };
      q = projection("q_proj", width, heads * head);
      k = projection("k_proj", width, heads * head);
      v = projection("v_proj", width, heads * head);
      o = projection("o_proj", heads * head, width);
    }
    at::Tensor forward(const at::Tensor& x, const at::Tensor& later, double scale) const {
      const auto split = [&](const std::shared_ptr<weights_and_biases>& by) {
        return by->linear(x, scale).view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
      };
      const at::Tensor scores = at::matmul(split(q), split(k).transpose(-2, -1)) * score_scale;
      const at::Tensor shares = scores.masked_fill(later, -INFINITY).softmax(-1);
      return o->linear(at::matmul(shares, split(v)).transpose(1, 2).flatten(2), scale);
    }
    std::shared_ptr<weights_and_biases> q, k, v, o;
  };

  struct block : torch::nn::Module {
    block(std::int64_t width, std::int64_t head, std::int64_t hidden) {
      attend = register_module("attention", std::make_shared<attention>(width, head));
      norm1 = register_module("norm1", std::make_shared<weights_and_biases>(width));
      linear1 = register_module("linear1", std::make_shared<weights_and_biases>(width, hidden));
      linear2 = register_module("linear2", std::make_shared<weights_and_biases>(hidden, width));
      norm2 = register_module("norm2", std::make_shared<weights_and_biases>(width));
    }
    at::Tensor forward(const at::Tensor& x, const at::Tensor& later, double scale) const {
      const at::Tensor a = norm1->norm(x + attend->forward(x, later, scale));
      return norm2->norm(a + linear2->linear(at::relu(linear1->linear(a, scale)), scale));
    }
    std::shared_ptr<attention> attend;
    std::shared_ptr<weights_and_biases> norm1, linear1, linear2, norm2;
  };

  std::shared_ptr<embedding_table> embedding_, positions_;
  std::shared_ptr<weights_and_biases> norm_, decoder1_, decoder_norm_, decoder2_;
  std::vector<std::shared_ptr<block>> layers_;
};

}  // namespace

std::shared_ptr<network> make_text_network(const channel_counts& channels) {
  if (channels.model == model_kind::char_lstm) return std::make_shared<char_lstm>(channels);
  return std::make_shared<transformer>(channels);
}

}  // namespace trainer
