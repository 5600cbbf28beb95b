// SPDX-License-Identifier: MIT
/// The character LSTM of [FedDrop, Table 9] for Shakespeare. char_lstm_module.hpp has it as a torch
/// module.
#pragma once

#include <subfed/cost.hpp>
#include <subfed/layers.hpp>

#include <cstdint>

namespace models {

struct char_lstm_options {
  std::int64_t characters = 80;
  std::int64_t embedding = 8;
  std::int64_t hidden = 256;
};

struct char_lstm {
  subfed::model net;
  subfed::group_id characters;
  subfed::group_id embedding;
  subfed::group_id hidden;
  subfed::workload work;  // of one time step
};

/// The hidden state is cut, and with it the memory cell; characters and their embedding are whole.
inline char_lstm describe_char_lstm(const char_lstm_options& options = {}) {
  subfed::model net;
  const auto characters = net.group("characters", options.characters, subfed::cut::never);
  const auto width = net.group("embedding", options.embedding, subfed::cut::never);
  const auto hidden = net.group("hidden", options.hidden);
  embedding(net, "encoder", {.count = characters, .width = width});
  const auto cells = lstm(net, "lstm", {.in = width, .hidden = {hidden}}).cells;
  const auto decoder = linear(net, "decoder", {hidden, characters});

  subfed::workload work(net);
  work.linear({cells[0].weight_ih, cells[0].bias_ih});
  work.linear({cells[0].weight_hh, cells[0].bias_hh});
  // Gates, cell and state: ten operations a hidden node, as the table has them.
  work.elementwise(hidden, 10);
  work.linear(decoder);
  return {net, characters, width, hidden, work};
}

}  // namespace models
