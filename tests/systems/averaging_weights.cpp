// SPDX-License-Identifier: MIT
#include <subfed/systems/averaging_weights.hpp>

#include <subfed/average/by_element.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/draw.hpp>
#include <subfed/layers/convolution.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::element_weighted_average;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::update_counts;
using subfed::weighting;
using support::message_of;

TEST_CASE("a client's weight: nothing, kernels held, rounds taken part in, or both") {
  subfed::model net;
  const auto c = net.group("c", 8);
  subfed::conv2d(net, "conv", {3, c, 5, 5});
  subfed::linear(net, "fc", {.in = c, .out = 10});
  const auto sub = subfed::draw(net, subfed::rolling{}, {.round = 6, .capacity = 0.5});
  CHECK(subfed::kept_kernels(sub) == 4 * 3 + 10 * 4);
  CHECK(subfed::client_weight(weighting::none, sub, 7) == 1);
  CHECK(subfed::client_weight(weighting::kept_size, sub, 7) == 52);
  CHECK(subfed::client_weight(weighting::updates, sub, 7) == 7);
  CHECK(subfed::client_weight(weighting::both, sub, 7) == 52 * 7);
  CHECK(message_of([&] { subfed::client_weight(weighting::none, sub, -1); }) ==
        "subfed: client_weight: -1 updates");
}

TEST_CASE("kernels are counted in parameters alone") {
  subfed::model net;
  const auto c = net.group("c", 8);
  net.tensor("w", {c, 3});
  net.tensor("whitening", {c, c}, subfed::role::statistic);
  net.tensor("head", {10, c}, subfed::role::local);
  CHECK(subfed::kept_kernels(submodel(net, {index_set(8, {1, 5})})) == 2 * 3);
}

TEST_CASE("element weights: statistics are averaged, a local tensor keeps its bits") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("w", {g});
  net.tensor("variance", {g}, subfed::role::statistic);
  net.tensor("own", {g}, subfed::role::local);
  const submodel all = submodel::full(net);
  update_counts counts(net);
  counts.record(all);
  const auto weights = subfed::element_weights(weighting::updates, all, counts);
  CHECK(weights[1] == std::vector<double>{1, 1});
  CHECK(weights[2] == std::vector<double>{0, 0});
  element_weighted_average<double> mean(net);
  const std::vector<double> values{3, 5}, three(2, 3.0);
  const tensor_view<const double> given(values.data(), {2}), by(three.data(), {2});
  mean.add(all, {given, given, given}, {by, by, by});
  std::vector<double> w(2, 9.0), variance(2, 9.0), own(2, 9.0);
  const auto report =
      mean.finish({tensor_view<double>(w.data(), {2}), tensor_view<double>(variance.data(), {2}),
                   tensor_view<double>(own.data(), {2})});
  CHECK(w == values);
  CHECK(variance == values);
  CHECK(own == std::vector<double>(2, 9.0));
  CHECK(report.held == 4);
  CHECK(report.unheld == 0);
  CHECK(report.kept == 2);
}

TEST_CASE("by hand: two clients, one element that the second has updated three times as often") {
  subfed::model net;
  const auto g = net.group("g", 3);
  const auto x = net.tensor("x", {g});
  const submodel first(net, {index_set(3, {0, 1})}), second(net, {index_set(3, {1})});
  update_counts of_first(net), of_second(net);
  of_first.record(first);
  for (int round = 0; round < 3; ++round) of_second.record(second);
  CHECK(of_second.of(x) == std::vector<std::uint32_t>{0, 3, 0});
  element_weighted_average<double> mean(net);
  const std::vector<double> a{10, 20}, b{40};
  const auto wa = subfed::element_weights(weighting::updates, first, of_first),
             wb = subfed::element_weights(weighting::updates, second, of_second);
  mean.add(first, {tensor_view<const double>(a.data(), {2})},
           {tensor_view<const double>(wa[0].data(), {2})});
  mean.add(second, {tensor_view<const double>(b.data(), {1})},
           {tensor_view<const double>(wb[0].data(), {1})});
  std::array<double, 3> global{1, 1, 1};
  const auto report = mean.finish({tensor_view<double>(global.data(), {3})});
  CHECK(global == std::array<double, 3>{10, (20 + 3 * 40) / 4.0, 1});
  CHECK(report.held == 2);
  CHECK(report.unheld == 1);
  CHECK(report.clients == 2);
}

TEST_CASE("random clients: sums over all elements written out, and counts of every round") {
  support::seeded random(6);
  for (int trial = 0; trial < 20; ++trial) {
    subfed::model net;
    const std::int64_t rows = random.between(1, 5), columns = random.between(1, 5);
    const auto r = net.group("r", rows);
    const auto c = net.group("c", columns);
    const auto w = net.tensor("w", {r, c});
    std::vector<float> global(static_cast<std::size_t>(rows * columns));
    for (float& v : global) v = static_cast<float>(random.unit());
    std::vector<double> expected_sum(global.size(), 0), expected_weight(global.size(), 0);
    element_weighted_average<float> mean(net);
    for (std::uint64_t client = 0; client < 3; ++client) {
      update_counts counts(net);
      std::vector<double> by_hand(global.size(), 0);
      submodel last = submodel::full(net);
      const auto rounds = static_cast<std::uint64_t>(random.between(1, 4));
      for (std::uint64_t round = 0; round < rounds; ++round) {
        last = subfed::draw(net, subfed::random_subset{},
                            {.seed = static_cast<std::uint64_t>(trial),
                             .round = round,
                             .client = client,
                             .capacity = 0.7});
        counts.record(last);
        for (const std::int64_t i : last[r]) {
          for (const std::int64_t j : last[c])
            by_hand[static_cast<std::size_t>(i * columns + j)] += 1;
        }
      }
      for (std::size_t k = 0; k < by_hand.size(); ++k) CHECK(counts.of(w)[k] == by_hand[k]);
      const auto weights = subfed::element_weights(weighting::both, last, counts);
      support::strided<float> own(support::random_layout(random, last.extents(w)));
      own.fill([&](std::int64_t) { return static_cast<float>(random.unit()); });
      mean.add(last, {own.view()}, {tensor_view<const double>(weights[0].data(), last.extents(w))});
      std::int64_t p = 0;
      for (const std::int64_t i : last[r]) {
        std::int64_t q = 0;
        for (const std::int64_t j : last[c]) {
          const auto k = static_cast<std::size_t>(i * columns + j);
          const double weight = by_hand[k] * static_cast<double>(last.extent(r) * last.extent(c));
          expected_sum[k] += weight * static_cast<double>(own({p, q}));
          expected_weight[k] += weight;
          ++q;
        }
        ++p;
      }
    }
    std::vector<float> averaged = global;
    mean.finish({tensor_view<float>(averaged.data(), {rows, columns})});
    for (std::size_t k = 0; k < global.size(); ++k) {
      const float expected = expected_weight[k] > 0
                                 ? static_cast<float>(expected_sum[k] / expected_weight[k])
                                 : global[k];
      CHECK(averaged[k] == expected);
    }
  }
}

TEST_CASE(
    "with equal weights it is the selective average, and rows that take no part weigh nothing") {
  subfed::model net;
  const auto g = net.group("classes", 4, subfed::cut::never);
  net.tensor("x", {g});
  const auto sub = submodel::full(net).restricted(g, index_set(4, {1, 3}));
  update_counts counts(net);
  counts.record(sub);
  const auto weights = subfed::element_weights(weighting::none, sub, counts);
  CHECK(weights[0] == std::vector<double>{0, 1, 0, 1});
  const std::vector<float> own{0.1f, 0.2f, 0.3f, 0.4f};
  const tensor_view<const float> view(own.data(), {4});
  element_weighted_average<float> mean(net);
  subfed::selective_average<float> plain(net);
  for (int client = 0; client < 3; ++client) {
    mean.add(sub, {view}, {tensor_view<const double>(weights[0].data(), {4})});
    plain.add(sub, {view});
  }
  std::array<float, 4> one{9, 9, 9, 9}, two = one;
  mean.finish({tensor_view<float>(one.data(), {4})});
  plain.finish({tensor_view<float>(two.data(), {4})});
  CHECK(one == two);
  CHECK(one[0] == 9);
}

TEST_CASE("counts can be taken out and put back") {
  subfed::model net;
  const auto g = net.group("g", 4);
  const auto w = net.tensor("w", {g, 2});
  update_counts counts(net), again(net);
  for (std::uint64_t round = 0; round < 5; ++round) {
    counts.record(subfed::draw(net, subfed::rolling{}, {.round = round, .capacity = 0.5}));
  }
  const std::vector<std::uint32_t> kept = counts.of(w);
  std::copy(kept.begin(), kept.end(), again.counts(w).begin());
  CHECK(again.of(w) == kept);
  const auto sub = subfed::draw(net, subfed::rolling{}, {.round = 5, .capacity = 0.5});
  counts.record(sub);
  again.record(sub);
  CHECK(again.of(w) == counts.of(w));
  CHECK_THROWS_AS(counts.counts(subfed::tensor_id(1)), subfed::error);
}

TEST_CASE("bad weights and foreign models are refused, and the state stays") {
  subfed::model net, other;
  net.tensor("x", {2});
  other.tensor("y", {3});
  element_weighted_average<double> mean(net);
  const std::vector<double> x{1, 2}, good{1, 1};
  const auto full = submodel::full(net);
  const tensor_view<const double> view(x.data(), {2});
  for (const double w : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::vector<double> bad{1, w};
    CHECK(message_of([&] {
            mean.add(full, {view}, {tensor_view<const double>(bad.data(), {2})});
          }).find("a weight of tensor 'x' is") != std::string::npos);
  }
  CHECK(message_of([&] { mean.add(full, {view}, {}); }) ==
        "subfed: element_weighted_average: 0 weight tensors are given for a model of 1");
  CHECK(
      message_of([&] { mean.add(full, {view}, {tensor_view<const double>(good.data(), {1})}); }) ==
      "subfed: element_weighted_average: the weight tensor 'x' has shape (1,), expected "
      "(2,)");
  std::array<double, 2> global{5, 6};
  mean.finish({tensor_view<double>(global.data(), {2})});
  CHECK(global == std::array<double, 2>{5, 6});
  update_counts counts(net);
  CHECK(message_of([&] { counts.record(submodel::full(other)); }) ==
        "subfed: update_counts: the submodel of client 0 is of another model");
}
