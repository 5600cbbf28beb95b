// SPDX-License-Identifier: MIT
#include <subfed/layers/recurrent.hpp>

#include <support/checks.hpp>
#include <support/layouts.hpp>

#include <string>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::submodel;
using support::held;
using support::layout_of;
using support::message_of;
using support::node_list;
using support::tensor_lines;

TEST_CASE("an LSTM has four gates of the same nodes, two biases, and PyTorch's names") {
  model net;
  const auto in = net.group("in", 3);
  const auto hidden = net.group("hidden", 5);
  const auto made = lstm(net, "lstm", {.in = in, .hidden = {hidden}});
  CHECK(layout_of(net) == tensor_lines{"lstm.weight_ih_l0 (20, 3)", "lstm.weight_hh_l0 (20, 5)",
                                       "lstm.bias_ih_l0 (20,)", "lstm.bias_hh_l0 (20,)"});
  CHECK(made.out == subfed::dimension(hidden));
  const submodel part(net, {index_set(3, {2}), index_set(5, {4, 1})});
  CHECK(held(part, made.cells[0].weight_hh, 0) == node_list{4, 1, 9, 6, 14, 11, 19, 16});
  CHECK(held(part, made.cells[0].weight_hh, 1) == node_list{4, 1});
  CHECK(held(part, made.cells[0].weight_ih, 1) == node_list{2});
}

TEST_CASE("a GRU has three gates, a plain recurrent layer one") {
  model net;
  const auto hidden = net.group("hidden", 5);
  gru(net, "gru", {.in = 3, .hidden = {hidden}, .bias = subfed::bias::none});
  rnn(net, "rnn", {.in = 3, .hidden = {hidden}, .bias = subfed::bias::none});
  CHECK(layout_of(net) == tensor_lines{"gru.weight_ih_l0 (15, 3)", "gru.weight_hh_l0 (15, 5)",
                                       "rnn.weight_ih_l0 (5, 3)", "rnn.weight_hh_l0 (5, 5)"});
}

TEST_CASE("stacked and bidirectional layers read both directions of the layer below") {
  model net;
  const auto f0 = net.group("f0", 4);
  const auto r0 = net.group("r0", 4);
  const auto f1 = net.group("f1", 4);
  const auto r1 = net.group("r1", 4);
  const auto made =
      gru(net, "g", {.in = 3, .hidden = {f0, f1}, .reverse = {r0, r1}, .bias = subfed::bias::none});
  CHECK(layout_of(net) == tensor_lines{"g.weight_ih_l0 (12, 3)", "g.weight_hh_l0 (12, 4)",
                                       "g.weight_ih_l0_reverse (12, 3)",
                                       "g.weight_hh_l0_reverse (12, 4)", "g.weight_ih_l1 (12, 8)",
                                       "g.weight_hh_l1 (12, 4)", "g.weight_ih_l1_reverse (12, 8)",
                                       "g.weight_hh_l1_reverse (12, 4)"});
  CHECK(made.out == subfed::concat({f1, r1}));
  const submodel part(net,
                      {index_set(4, {1}), index_set(4, {2}), index_set(4, {3}), index_set(4, {0})});
  CHECK(held(part, made.cells[2].weight_ih, 1) == node_list{1, 6});
}

TEST_CASE("cells have no layer number") {
  model net;
  const auto hidden = net.group("hidden", 2);
  lstm_cell(net, "a", {3, hidden});
  gru_cell(net, "b", {3, hidden, subfed::bias::none});
  CHECK(layout_of(net) == tensor_lines{"a.weight_ih (8, 3)", "a.weight_hh (8, 2)", "a.bias_ih (8,)",
                                       "a.bias_hh (8,)", "b.weight_ih (6, 3)",
                                       "b.weight_hh (6, 2)"});
}

TEST_CASE("no layer, or another number of layers in reverse, is refused") {
  model net;
  const auto h = net.group("h", 2);
  const model before = net;
  CHECK(message_of([&] { lstm(net, "lstm", {.in = 3, .hidden = {}}); }) ==
        "subfed: layers: 'lstm' has no hidden dimension");
  CHECK(message_of([&] {
          lstm(net, "lstm", {.in = 3, .hidden = {h, h}, .reverse = {h}});
        }) == "subfed: layers: 'lstm' has 2 layers forward, but 1 in reverse");
  net.tensor("lstm.bias_hh_l0", {1});
  const model taken = net;
  CHECK(message_of([&] { lstm(net, "lstm", {.in = 3, .hidden = {h}}); }) ==
        "subfed: model: the tensor name 'lstm.bias_hh_l0' is taken");
  CHECK(net == taken);
}

TEST_CASE("an LSTM with a projection keeps and writes it in place of the hidden nodes") {
  model net;
  const auto h0 = net.group("h0", 5);
  const auto h1 = net.group("h1", 5);
  const auto p0 = net.group("p0", 2);
  const auto p1 = net.group("p1", 2);
  const auto made = lstm(net, "lstm", {.in = 3, .hidden = {h0, h1}, .projection = {p0, p1}});
  CHECK(layout_of(net) == tensor_lines{"lstm.weight_ih_l0 (20, 3)", "lstm.weight_hh_l0 (20, 2)",
                                       "lstm.bias_ih_l0 (20,)", "lstm.bias_hh_l0 (20,)",
                                       "lstm.weight_hr_l0 (2, 5)", "lstm.weight_ih_l1 (20, 2)",
                                       "lstm.weight_hh_l1 (20, 2)", "lstm.bias_ih_l1 (20,)",
                                       "lstm.bias_hh_l1 (20,)", "lstm.weight_hr_l1 (2, 5)"});
  CHECK(made.out == subfed::dimension(p1));
  CHECK(net[*made.cells[0].weight_hr].dimensions == std::vector<subfed::dimension>{p0, h0});
  CHECK(net[made.cells[1].weight_ih].dimensions[1] == subfed::dimension(p0));

  model both;
  const auto f = both.group("f", 5), r = both.group("r", 5);
  const auto pf = both.group("pf", 2), pr = both.group("pr", 2);
  const auto two = lstm(both, "l",
                        {.in = 3,
                         .hidden = {f},
                         .reverse = {r},
                         .bias = subfed::bias::none,
                         .projection = {pf},
                         .reverse_projection = {pr}});
  CHECK(layout_of(both) == tensor_lines{"l.weight_ih_l0 (20, 3)", "l.weight_hh_l0 (20, 2)",
                                        "l.weight_hr_l0 (2, 5)", "l.weight_ih_l0_reverse (20, 3)",
                                        "l.weight_hh_l0_reverse (20, 2)",
                                        "l.weight_hr_l0_reverse (2, 5)"});
  CHECK(two.out == subfed::concat({pf, pr}));
}

TEST_CASE("projections that do not fit are refused, and nothing is described") {
  model net;
  const auto h = net.group("h", 5), p = net.group("p", 2);
  const model before = net;
  CHECK(message_of([&] {
          lstm(net, "lstm", {.in = 3, .hidden = {h, h}, .projection = {p}});
        }) == "subfed: layers: 'lstm' has 2 layers forward, but 1 projections");
  const std::string one_sided =
      "' has a projection, which an LSTM has, in both directions or in none";
  CHECK(message_of([&] { gru(net, "gru", {.in = 3, .hidden = {h}, .projection = {p}}); }) ==
        "subfed: layers: 'gru" + one_sided);
  CHECK(message_of([&] {
          lstm(net, "lstm", {.in = 3, .hidden = {h}, .reverse = {h}, .projection = {p}});
        }) == "subfed: layers: 'lstm" + one_sided);
  CHECK(message_of([&] {
          lstm(net, "lstm", {.in = 3, .hidden = {h}, .reverse_projection = {p}});
        }) == "subfed: layers: 'lstm" + one_sided);
  CHECK(net == before);
}
