// SPDX-License-Identifier: MIT
/// Recurrent layers and cells: LSTM, GRU and plain RNN. Gates are copies of the hidden nodes.
#pragma once

#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// `hidden` has a dimension for each layer of the stack. A bidirectional layer has as many in
/// `reverse`; its layers read concat({hidden, reverse}) of the layer below.
struct recurrent_layer {
  dimension in;
  std::vector<dimension> hidden;
  std::vector<dimension> reverse = {};
  subfed::bias bias = subfed::bias::added;
};
struct recurrent_cell {
  dimension in;
  dimension hidden;
  subfed::bias bias = subfed::bias::added;
};

struct recurrent_cell_tensors {
  tensor_id weight_ih;
  tensor_id weight_hh;
  std::optional<tensor_id> bias_ih;
  std::optional<tensor_id> bias_hh;
};
struct recurrent_tensors {
  std::vector<recurrent_cell_tensors> cells;  ///< layer by layer, forward before reverse
  dimension out;                              ///< what the last layer writes
};

namespace detail {

inline recurrent_cell_tensors gates(model& net, const std::string& name, const std::string& suffix,
                                    std::int64_t count, const recurrent_cell& cell) {
  const dimension rows = cell.hidden.repeat(count);
  recurrent_cell_tensors made{net.tensor(name + ".weight_ih" + suffix, {rows, cell.in}),
                              net.tensor(name + ".weight_hh" + suffix, {rows, cell.hidden}),
                              {},
                              {}};
  if (cell.bias == bias::added) {
    made.bias_ih = net.tensor(name + ".bias_ih" + suffix, {rows});
    made.bias_hh = net.tensor(name + ".bias_hh" + suffix, {rows});
  }
  return made;
}

inline recurrent_tensors recurrent(model& net, const std::string& name, std::int64_t count,
                                   const recurrent_layer& layer) {
  if (layer.hidden.empty()) fail("subfed: layers: '" + name + "' has no hidden dimension");
  if (!layer.reverse.empty() && layer.reverse.size() != layer.hidden.size()) {
    fail("subfed: layers: '" + name + "' has " + std::to_string(layer.hidden.size()) +
         " layers forward, but " + std::to_string(layer.reverse.size()) + " in reverse");
  }
  return describe_all_or_nothing(net, [&](model& described) {
    recurrent_tensors made{{}, layer.in};
    for (std::size_t l = 0; l < layer.hidden.size(); ++l) {
      const std::string suffix = "_l" + std::to_string(l);
      const dimension in = made.out;
      made.cells.push_back(
          gates(described, name, suffix, count, {in, layer.hidden[l], layer.bias}));
      made.out = layer.hidden[l];
      if (layer.reverse.empty()) continue;
      made.cells.push_back(
          gates(described, name, suffix + "_reverse", count, {in, layer.reverse[l], layer.bias}));
      made.out = concat({layer.hidden[l], layer.reverse[l]});
    }
    return made;
  });
}

inline recurrent_cell_tensors cell(model& net, const std::string& name, std::int64_t count,
                                   const recurrent_cell& layer) {
  return describe_all_or_nothing(
      net, [&](model& described) { return gates(described, name, "", count, layer); });
}

}  // namespace detail

/// Of each layer l: name.weight_ih_ll (4 hidden, in), name.weight_hh_ll (4 hidden, hidden),
/// name.bias_ih_ll and name.bias_hh_ll (4 hidden), and the same with _reverse. Rows are (gate,
/// node), gates input, forget, cell, output, so that the same nodes of each gate are cut.
///
///   lstm(net, "lstm", {.in = width, .hidden = {hidden}});
///
/// Throws  error when there is no layer, or reverse has another number of layers.
inline recurrent_tensors lstm(model& net, const std::string& name, const recurrent_layer& layer) {
  return detail::recurrent(net, name, 4, layer);
}
/// As lstm with three gates: reset, update, new.
inline recurrent_tensors gru(model& net, const std::string& name, const recurrent_layer& layer) {
  return detail::recurrent(net, name, 3, layer);
}
/// As lstm without gates: torch.nn.RNN.
inline recurrent_tensors rnn(model& net, const std::string& name, const recurrent_layer& layer) {
  return detail::recurrent(net, name, 1, layer);
}

/// name.weight_ih (4 hidden, in), name.weight_hh (4 hidden, hidden), name.bias_ih, name.bias_hh.
inline recurrent_cell_tensors lstm_cell(model& net, const std::string& name,
                                        const recurrent_cell& layer) {
  return detail::cell(net, name, 4, layer);
}
/// As lstm_cell with three gates.
inline recurrent_cell_tensors gru_cell(model& net, const std::string& name,
                                       const recurrent_cell& layer) {
  return detail::cell(net, name, 3, layer);
}

}  // namespace subfed::inline v0
