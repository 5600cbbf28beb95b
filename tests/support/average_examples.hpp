// SPDX-License-Identifier: MIT
/// Averages worked out by hand, as data: both forms of the average go through all of them.
#pragma once

#include <subfed/average/options.hpp>
#include <support/cohorts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace support {

using numbers = std::vector<double>;

struct example_client {
  std::vector<oracle::node_list> nodes;  ///< one list a group
  std::vector<numbers> tensors;
  double weight = 1;
  std::vector<oracle::node_list> labels = {};  ///< nodes that take part, where not all do
};

struct example {
  std::string name;
  oracle::network plan;
  std::vector<numbers> before;
  std::vector<example_client> clients;
  subfed::average_options options;
  std::vector<numbers> after;
  subfed::average_report report;
};

/// One group, one tensor of its nodes.
inline oracle::network vector_of(std::int64_t nodes) { return {{nodes}, {{{{0, 0, 1, 1}}}}}; }

inline subfed::average_options with_policy(subfed::non_finite policy) {
  subfed::average_options out;
  out.on_non_finite = policy;
  return out;
}

inline std::vector<example> average_examples() {
  using subfed::non_finite;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const oracle::network head{{4}, {{{{0, 0, 1, 1}}, {{-1, 2, 1, 1}}}, {{{0, 0, 1, 1}}}}};
  const oracle::network matrix{{4, 3}, {{{{0, 0, 1, 1}}, {{1, 0, 1, 1}}}}};

  std::vector<example> out{
      {"[Rolex, Fig. 1]: nodes a, b of the large client, e of the small one, c, d of both",
       vector_of(5),
       {{9, 9, 9, 9, 9}},
       {{{{0, 1, 2, 3}}, {{1, 2, 3, 4}}}, {{{2, 3, 4}}, {{5, 8, 7}}}},
       {},
       {{1, 2, 4, 6, 7}},
       {.clients = 2, .held = 5}},
      {"[Rolex, Fig. 1], third round: both windows wrap",
       vector_of(5),
       {{9, 9, 9, 9, 9}},
       {{{{2, 3, 4, 0}}, {{1, 2, 3, 4}}}, {{{4, 0, 1}}, {{5, 8, 7}}}},
       {},
       {{6, 7, 1, 2, 4}},
       {.clients = 2, .held = 5}},
      {"label rows: a client that lacks a class takes no part in that class's row",
       head,
       {{9, 9, 9, 9, 9, 9, 9, 9}, {9, 9, 9, 9}},
       {{{{0, 1, 2, 3}}, {{1, 1, 5, 5, 3, 3, 5, 5}, {1, 5, 3, 5}}, 1, {{0, 2}}},
        {{{0, 1, 2, 3}}, {{7, 7, 7, 7, 5, 5, 2, 2}, {7, 7, 5, 2}}, 1, {{2, 3}}}},
       {},
       {{1, 1, 9, 9, 4, 4, 2, 2}, {1, 9, 4, 2}},
       {.clients = 2, .held = 9, .unheld = 3}},
      {"corner and whole, alike: by holders, not padded with zeros",
       matrix,
       {numbers(12, 9)},
       {{{{0, 1}, {0, 1}}, {numbers(4, 1)}}, {{{0, 1, 2, 3}, {0, 1, 2}}, {numbers(12, 3)}}},
       {},
       {{2, 2, 3, 2, 2, 3, 3, 3, 3, 3, 3, 3}},
       {.clients = 2, .held = 12}},
      {"corner and whole, weights 1 and 3",
       matrix,
       {numbers(12, 9)},
       {{{{0, 1}, {0, 1}}, {numbers(4, 1)}, 1}, {{{0, 1, 2, 3}, {0, 1, 2}}, {numbers(12, 3)}, 3}},
       {},
       {{2.5, 2.5, 3, 2.5, 2.5, 3, 3, 3, 3, 3, 3, 3}},
       {.clients = 2, .held = 12}},
      {"running variance, alike",
       vector_of(4),
       {{9, 9, 9, 9}},
       {{{{0, 1}}, {{1, 3}}}, {{{1, 2}}, {{5, 7}}}},
       {},
       {{1, 4, 7, 9}},
       {.clients = 2, .held = 3, .unheld = 1}},
      {"running variance, weights 1 and 3",
       vector_of(4),
       {{9, 9, 9, 9}},
       {{{{0, 1}}, {{1, 3}}, 1}, {{{1, 2}}, {{5, 7}}, 3}},
       {},
       {{1, 4.5, 7, 9}},
       {.clients = 2, .held = 3, .unheld = 1}},
      {"all weights 0: nothing is held",
       vector_of(2),
       {{5, 6}},
       {{{{0, 1}}, {{10, 20}}, 0}, {{{0, 1}}, {{30, 40}}, 0}},
       {},
       {{5, 6}},
       {.clients = 2, .unheld = 2}},
      {"weight 0 is not held, weight 2 alone is the mean",
       vector_of(2),
       {{5, 6}},
       {{{{0, 1}}, {{1, 2}}, 0}, {{{1}}, {{8}}, 2}},
       {},
       {{5, 8}},
       {.clients = 2, .held = 1, .unheld = 1}},
      {"a NaN of weight 0 does nothing",
       vector_of(2),
       {{5, 6}},
       {{{{0, 1}}, {{nan, inf}}, 0}, {{{1}}, {{8}}, 2}},
       {},
       {{5, 8}},
       {.clients = 2, .held = 1, .unheld = 1}},
  };
  for (const double bad : {nan, inf, -inf}) {
    const std::string called = bad > 0 ? "inf" : bad < 0 ? "-inf" : "NaN";
    const auto add = [&](const std::string& name, non_finite policy, numbers after,
                         subfed::average_report report) {
      out.push_back({called + ": " + name,
                     vector_of(3),
                     {{0, 0, 0}},
                     {{{{0, 1}}, {{1, bad}}}, {{{1, 2}}, {{4, 6}}}},
                     with_policy(policy),
                     {after},
                     report});
    };
    add("propagate", non_finite::propagate, {1, bad, 6}, {.clients = 2, .held = 3});
    add("skip client", non_finite::skip_client, {0, 4, 6},
        {.clients = 1, .skipped_clients = 1, .held = 2, .unheld = 1});
    add("skip element", non_finite::skip_element, {1, 4, 6},
        {.clients = 2, .skipped_elements = 1, .held = 3});
  }
  out.push_back({"skip element, of the only holder: not held",
                 vector_of(3),
                 {{3, 4, 5}},
                 {{{{2, 0}}, {{nan, 1}}}},
                 with_policy(non_finite::skip_element),
                 {{1, 4, 5}},
                 {.clients = 1, .skipped_elements = 1, .held = 1, .unheld = 2}});
  out.push_back(
      {"skip client, with a NaN in a row that does not take part: it stays in",
       head,
       {numbers(8, 9), numbers(4, 9)},
       {{{{0, 1, 2, 3}}, {{nan, nan, 2, 2, nan, 1, 1, nan}, {nan, 3, nan, nan}}, 1, {{1}}}},
       with_policy(non_finite::skip_client),
       {{9, 9, 2, 2, 9, 9, 9, 9}, {9, 3, 9, 9}},
       {.clients = 1, .held = 3, .unheld = 9}});

  subfed::average_options cheng;
  cheng.divide_by = subfed::divisor::cohort;
  out.push_back({"all clients divide, parameters: who lacks an element left it as it was",
                 vector_of(3),
                 {{8, 8, 8}},
                 {{{{0, 1}}, {{2, 4}}}, {{{1}}, {{6}}}},
                 cheng,
                 {{5, 5, 8}},
                 {.clients = 2, .held = 2, .unheld = 1}});
  cheng.content = subfed::content::deltas;
  cheng.step = 0.5;
  out.push_back({"[Cheng, Alg. 1]: U += alpha / m times the sum of the deltas",
                 vector_of(3),
                 {{8, 8, 8}},
                 {{{{0, 1}}, {{-6, 4}}}, {{{1}}, {{12}}}},
                 cheng,
                 {{6.5, 12, 8}},
                 {.clients = 2, .held = 2, .unheld = 1}});
  cheng.divide_by = subfed::divisor::holders;
  out.push_back({"deltas, by holders, half a step",
                 vector_of(3),
                 {{8, 8, 8}},
                 {{{{0, 1}}, {{-6, 4}}}, {{{1}}, {{12}}}},
                 cheng,
                 {{5, 12, 8}},
                 {.clients = 2, .held = 2, .unheld = 1}});
  cheng.content = subfed::content::parameters;
  out.push_back({"parameters, by holders, half a step",
                 vector_of(3),
                 {{8, 8, 8}},
                 {{{{0, 1}}, {{2, 4}}}, {{{1}}, {{6}}}},
                 cheng,
                 {{5, 6.5, 8}},
                 {.clients = 2, .held = 2, .unheld = 1}});
  subfed::average_options none;
  none.step = 0;
  out.push_back({"step 0 changes nothing but counts",
                 vector_of(2),
                 {{8, 8}},
                 {{{{0}}, {{2}}}},
                 none,
                 {{8, 8}},
                 {.clients = 1, .held = 1, .unheld = 1}});

  const oracle::network corners{{3, 0}, {{}, {{{-1, 0, 1, 1}}}, {{{1, 0, 1, 1}}, {{0, 0, 1, 1}}}}};
  out.push_back({"rank 0 is one element, an extent of 0 is none",
                 corners,
                 {{7}, {}, {}},
                 {{{{1}, {}}, {{1}, {}, {}}}, {{{0, 2}, {}}, {{4}, {}, {}}, 2}},
                 {},
                 {{3}, {}, {}},
                 {.clients = 2, .held = 1}});
  out.push_back({"a client without any node of a group",
                 vector_of(2),
                 {{5, 6}},
                 {{{{}}, {{}}}, {{{1}}, {{2}}}},
                 {},
                 {{5, 2}},
                 {.clients = 2, .held = 1, .unheld = 1}});
  return out;
}

/// Puts an example's numbers into tensors of type T, averages with form(net, updates, globals,
/// options), and gives the report; `globals` are the elements afterwards.
template <class T, class Form>
subfed::average_report run_example(const example& e, Form&& form,
                                   std::vector<std::vector<T>>& globals) {
  const subfed::model net = model_of(e.plan);
  const auto rounded = [](const numbers& from) {
    std::vector<T> out;
    for (const double x : from) out.push_back(T(x));
    return out;
  };
  std::vector<std::vector<std::vector<T>>> values;
  for (const auto& c : e.clients) {
    values.emplace_back();
    for (const auto& tensor : c.tensors) values.back().push_back(rounded(tensor));
  }
  std::vector<subfed::update<T>> updates;
  for (std::size_t c = 0; c < e.clients.size(); ++c) {
    const oracle::holding holds{
        e.clients[c].nodes, e.clients[c].labels.empty() ? e.clients[c].nodes : e.clients[c].labels};
    const auto sub = submodel_of(net, holds, {.client = c});
    std::vector<subfed::tensor_view<const T>> views;
    for (std::size_t t = 0; t < values[c].size(); ++t) {
      views.emplace_back(values[c][t].data(),
                         oracle::local_shape(e.plan, e.plan.tensors[t], holds));
    }
    updates.push_back({sub, subfed::tensor_views<const T>(views), e.clients[c].weight});
  }
  globals.clear();
  for (const auto& tensor : e.before) globals.push_back(rounded(tensor));
  std::vector<subfed::tensor_view<T>> global_views;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    global_views.emplace_back(globals[t].data(), oracle::global_shape(e.plan, e.plan.tensors[t]));
  }
  return form(net, updates, global_views, e.options);
}

}  // namespace support
