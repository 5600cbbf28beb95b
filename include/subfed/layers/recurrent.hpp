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
/// `reverse`; its layers read concat({hidden, reverse}) of the layer below. An LSTM with a projection
/// (proj_size) has as many dimensions in `projection`, and in `reverse_projection`: they are what it writes
/// and keeps as its state in place of the hidden nodes.
struct recurrent_layer {
  dimension in;
  std::vector<dimension> hidden;
  std::vector<dimension> reverse = {};
  subfed::bias bias = subfed::bias::added;
  std::vector<dimension> projection = {};
  std::vector<dimension> reverse_projection = {};
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
  std::optional<tensor_id> weight_hr;  ///< of a projection
};
struct recurrent_tensors {
  std::vector<recurrent_cell_tensors> cells;  ///< layer by layer, forward before reverse
  dimension out;                              ///< what the last layer writes
};

namespace detail {

inline recurrent_cell_tensors gates(model& net, const std::string& name, const std::string& suffix,
                                    std::int64_t count, const recurrent_cell& cell,
                                    const dimension* projection = nullptr) {
  const dimension rows = cell.hidden.repeat(count);
  const dimension& state = projection != nullptr ? *projection : cell.hidden;
  recurrent_cell_tensors made{net.tensor(name + ".weight_ih" + suffix, {rows, cell.in}),
                              net.tensor(name + ".weight_hh" + suffix, {rows, state}),
                              {},
                              {},
                              {}};
  if (cell.bias == bias::added) {
    made.bias_ih = net.tensor(name + ".bias_ih" + suffix, {rows});
    made.bias_hh = net.tensor(name + ".bias_hh" + suffix, {rows});
  }
  if (projection != nullptr) {
    made.weight_hr = net.tensor(name + ".weight_hr" + suffix, {state, cell.hidden});
  }
  return made;
}

/// Throws unless a list has a dimension for each layer, or is empty.
inline void check_layers(const std::string& name, const std::vector<dimension>& hidden,
                         const std::vector<dimension>& other, const std::string& what) {
  if (other.empty() || other.size() == hidden.size()) return;
  fail("subfed: layers: '" + name + "' has " + std::to_string(hidden.size()) +
       " layers forward, but " + std::to_string(other.size()) + " " + what);
}

inline recurrent_tensors recurrent(model& net, const std::string& name, std::int64_t count,
                                   const recurrent_layer& layer) {
  if (layer.hidden.empty()) fail("subfed: layers: '" + name + "' has no hidden dimension");
  check_layers(name, layer.hidden, layer.reverse, "in reverse");
  check_layers(name, layer.hidden, layer.projection, "projections");
  check_layers(name, layer.hidden, layer.reverse_projection, "projections in reverse");
  const bool projected = !layer.projection.empty();
  if ((projected && count != 4) ||
      (projected && !layer.reverse.empty()) != !layer.reverse_projection.empty()) {
    fail("subfed: layers: '" + name +
         "' has a projection, which an LSTM has, in both directions or in none");
  }
  return describe_all_or_nothing(net, [&](model& described) {
    recurrent_tensors made{{}, layer.in};
    for (std::size_t l = 0; l < layer.hidden.size(); ++l) {
      const std::string suffix = "_l" + std::to_string(l);
      const dimension in = made.out;
      const auto direction = [&](const dimension& hidden, const std::vector<dimension>& projection,
                                 const std::string& end) -> const dimension& {
        const dimension* state = projected ? &projection[l] : nullptr;
        made.cells.push_back(
            gates(described, name, suffix + end, count, {in, hidden, layer.bias}, state));
        return projected ? *state : hidden;
      };
      made.out = direction(layer.hidden[l], layer.projection, "");
      if (layer.reverse.empty()) continue;
      made.out =
          concat({made.out, direction(layer.reverse[l], layer.reverse_projection, "_reverse")});
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
/// With a projection, name.weight_hh_ll is (4 hidden, projection), and name.weight_hr_ll (projection,
/// hidden) comes after the biases.
///
///   lstm(net, "lstm", {.in = width, .hidden = {hidden}});
///
/// Throws  error when there is no layer, or reverse or a projection has another number of layers.
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
