// SPDX-License-Identifier: MIT
// A program that says `using namespace` of both can write our names alone. Not among them: slice, which
// <valarray> has too.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <subfed/coverage.hpp>
#include <subfed/coverage/theory.hpp>
#include <subfed/graph.hpp>
#include <subfed/proof.hpp>
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

using namespace std;
using namespace subfed;

int use_names();
int use_names() {
  model net;
  const group_id hidden = net.group("hidden", 4, cut::by_scheme);
  const dimension both = concat({hidden.repeat(2), 3});
  const tensor_id weight = net.tensor("weight", {both, hidden.block(2)});
  linear(net, "fc", {.in = hidden, .out = 2, .bias = bias::none});
  const capacity half_of_it = capacity::ratio(1, 2);
  const draw_key key{.round = 1, .capacity = half_of_it};
  const submodel part = draw(net, rolling{.walk = direction::forward}, key);
  const submodel other = draw(net, prefix{.round_to = rounding::ceil}, key);
  const submodel third = draw(net, simple_ensemble{}, key);
  const submodel fourth = draw(net, random_subset{}, key);
  const selection chosen = part[weight];
  const index_set nodes = index_set::full(4);
  const run first = nodes.runs()[0];
  coverage seen(net);
  seen.record(part);
  seen.end_round();
  parameter_coverage joint(net);
  const evenness even = evenness_of(seen.counts(hidden));
  const cohort_model cohort({.clients = 4, .participation = 1});
  const half h(1.5f);
  const bfloat16 b(1.5f);
  vector<float> values(4);
  const tensor_view<float> view(values.data(), {4});
  const string text = describe(net) + draw_dot(net) + to_text(seen);
  const traffic_bytes bytes = traffic(part);
  const workload work(net);
  selective_average<float> mean(net);
  const tensors<float> memory(part);
  const submodel largest =
      draw(net, top_k(node_norms<float>(net, tensors<float>(net), norm_order::two)), key);
  const vector<binding> uses = bindings_of(net, hidden);
  const vector<doubt> doubts = find_doubts(net);
  const description_proof proof{net};
  const bool is_right = proof.verdict() == verdict::right;
  network_graph graph;
  graph.output(graph.apply("Relu", {graph.parameter("weight", {4})}));
  const derived_description derived = derive_model(graph);
  const description_check checked = check_description(graph, derived.net);
  const round_moments rounds = rounds_until_chosen(4);
  return static_cast<int>(shared_nodes(part, other, hidden) + parameters(third) + chosen.rank() +
                          first.length + even.items + cohort.asked() + h.bits + b.bits +
                          view.rank() + bytes.up + work.count(part) + joint.rounds() + max_rank) +
         static_cast<int>(rounds.mean) +
         static_cast<int>(memory.size() + uses.size() + doubts.size()) +
         static_cast<int>(largest.size()) + is_right + checked.is_right() +
         static_cast<int>(text.size());
}
