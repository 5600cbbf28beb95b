// SPDX-License-Identifier: MIT
/// char_lstm.hpp as a torch module: the whole network, or a client's part of it.
#pragma once

#include <torch/torch.h>

#include <models/char_lstm.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>
#include <tuple>

namespace models {

class char_lstm_module : public torch::nn::Module {
 public:
  char_lstm_module(const char_lstm& described, const subfed::submodel& part) {
    const std::int64_t characters = part.extent(described.characters);
    const std::int64_t width = part.extent(described.embedding);
    const std::int64_t hidden = part.extent(described.hidden);
    encoder_ = register_module("encoder", torch::nn::Embedding(characters, width));
    lstm_ = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(width, hidden).batch_first(true)));
    decoder_ = register_module("decoder", torch::nn::Linear(hidden, characters));
  }

  /// Characters (N, steps) to logits of the next one, (N, steps, characters).
  at::Tensor forward(const at::Tensor& characters) {
    return decoder_(std::get<0>(lstm_(encoder_(characters))));
  }

 private:
  torch::nn::Embedding encoder_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
  torch::nn::Linear decoder_{nullptr};
};

}  // namespace models
