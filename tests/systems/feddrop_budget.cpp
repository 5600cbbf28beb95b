// SPDX-License-Identifier: MIT
#include <subfed/systems/feddrop_budget.hpp>

#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/vgg9.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::cost_rule;
using subfed::expected_flops;
using subfed::flops_budget;
using subfed::keep_probabilities;
using support::message_of;

namespace {

double mean(std::span<const double> p) {
  double sum = 0;
  for (const double x : p) sum += x;
  return sum / static_cast<double>(p.size());
}

keep_probabilities random_keep(const subfed::model& net, support::seeded& random) {
  keep_probabilities out(net);
  std::vector<double> values(out.values().size());
  for (double& p : values) p = random.unit();
  out.assign(values);
  return out;
}

}  // namespace

TEST_CASE("two layers by hand: 2 positions, weights and biases twice each") {
  subfed::model net;
  const auto h = net.group("h", 4);
  const auto conv = subfed::conv2d(net, "conv", {1, h, 3, 3});
  const auto fc = subfed::linear(net, "fc", {.in = h, .out = 5});
  subfed::workload work(net);
  work.convolution(conv, 2).pooling(h, 2).linear(fc);
  const expected_flops cost(net, work);
  CHECK(cost.dense() == 2 * ((9 * 4 + 4) * 2 + 4 * 5 + 5));
  keep_probabilities keep(net);
  keep.assign(std::vector<double>{0.5, 0.25, 0.25, 0});  // one node is expected
  CHECK(cost(keep) == 2 * ((9 + 1) * 2 + 5 + 5));
  CHECK(cost.gradient(cost.group_sums(keep)) == std::vector<double>{2 * (9 + 1) * 2 + 2 * 5});
}

TEST_CASE("LeNet: Eq. 10 with the layers written out, under random keep probabilities") {
  const auto lenet = models::describe_lenet(models::lenet_options::fashion_mnist());
  support::seeded random(4);
  const expected_flops cost(lenet.net, lenet.work);
  const expected_flops by_table(lenet.net, lenet.work, cost_rule::feddrop_tables());
  for (int trial = 0; trial < 20; ++trial) {
    const auto keep = random_keep(lenet.net, random);
    const double c1 = 32 * mean(keep[lenet.channels[0]]), c2 = 64 * mean(keep[lenet.channels[1]]),
                 c3 = 64 * mean(keep[lenet.channels[2]]), h = 512 * mean(keep[lenet.hidden]);
    const double layers[] = {c1 * (25 + 1) * 784, c2 * (25 * c1 + 1) * 196, c3 * (9 * c2 + 1) * 25,
                             h * (c3 * 4 + 1), 10 * (h + 1)};
    const double pooling[] = {c1 * 784, c2 * 196, c3 * 25};
    double expected = 0, with_pooling = 0;
    for (const double x : layers) expected += 2 * x;
    for (const double x : layers) with_pooling += x;
    for (const double x : pooling) with_pooling += x;
    CHECK(std::fabs(cost(keep) / expected - 1) < 1e-13);
    CHECK(std::fabs(by_table(keep) / with_pooling - 1) < 1e-13);
  }
  // All kept: the count of the whole model.
  CHECK(cost(keep_probabilities(lenet.net)) ==
        static_cast<double>(
            lenet.work.count(subfed::submodel::full(lenet.net), cost_rule::feddrop_equations())));
}

TEST_CASE("the gradient is the difference quotient, node by node of a group") {
  const auto lstm = models::describe_char_lstm();
  const expected_flops cost(lstm.net, lstm.work);
  support::seeded random(6);
  auto keep = random_keep(lstm.net, random);
  const auto gradient = cost.gradient(cost.group_sums(keep));
  const double before = cost(keep);
  std::vector<double> values(keep.values().begin(), keep.values().end());
  const double step = 0x1p-12;
  values[100] += values[100] < 0.5 ? step : -step;
  const double change = values[100] - keep.values()[100];
  keep.assign(values);
  const double quotient = (cost(keep) - before) / change;
  CHECK(std::fabs(quotient / gradient[lstm.hidden.number()] - 1) < 1e-3);
}

TEST_CASE("g(p) is the ratio minus the mean share of the clients") {
  const auto vgg = models::describe_vgg9();
  const flops_budget budget(expected_flops(vgg.net, vgg.work), 0.5);
  support::seeded random(8);
  std::vector<keep_probabilities> clients;
  double share = 0;
  for (int c = 0; c < 5; ++c) {
    clients.push_back(random_keep(vgg.net, random));
    share += budget.cost()(clients.back()) / budget.cost().dense() / 5;
  }
  CHECK(std::fabs(budget.slack(clients) - (0.5 - share)) < 1e-14);
  CHECK(budget.slack(std::vector{keep_probabilities(vgg.net)}) == -0.5);
}

TEST_CASE("the constant start meets the budget, and the next larger double does not") {
  const auto lenet = models::describe_lenet(models::lenet_options::svhn());
  for (const double ratio : {0.05, 0.25, 0.5, 0.75, 0.999}) {
    const flops_budget budget(expected_flops(lenet.net, lenet.work), ratio);
    const double p = budget.constant_start();
    CHECK(p > 0);
    CHECK(p < 1);
    const auto g = [&](double q) {
      return budget.slack(std::vector(3, keep_probabilities(lenet.net, q)));
    };
    CHECK(std::fabs(g(p)) < 1e-12);
    CHECK(g(p * (1 + 1e-9)) < 0);
    CHECK(g(p * (1 - 1e-9)) > 0);
  }
  CHECK(flops_budget(expected_flops(lenet.net, lenet.work), 1).constant_start() == 1);
}

TEST_CASE("where everything can be dropped, the constant start meets budgets of any size") {
  subfed::model net;
  const auto in = net.group("in", 4), out = net.group("out", 2);
  const auto fc = linear(net, "fc", {.in = in, .out = out, .bias = subfed::bias::none});
  subfed::workload work(net);
  work.linear(fc);
  for (const double ratio : {1e-9, 1e-13, 1e-25, 1e-300}) {
    CAPTURE(ratio);
    CHECK(flops_budget(expected_flops(net, work), ratio).constant_start() ==
          doctest::Approx(std::sqrt(ratio)).epsilon(1e-12));
  }
}

TEST_CASE("a budget for what is never dropped and nothing else is refused") {
  subfed::model net;
  const auto hidden = net.group("hidden", 3),
             classes = net.group("classes", 10, subfed::cut::never);
  const auto a = linear(net, "a", {.in = 2, .out = hidden, .bias = subfed::bias::none});
  const auto b = linear(net, "b", {.in = 2, .out = classes, .bias = subfed::bias::none});
  subfed::workload work(net);
  work.linear(a).linear(b);
  const expected_flops cost(net, work);  // 6 + 20
  CHECK(message_of([&] { flops_budget(cost, 0.75).constant_start(); }) ==
        "subfed: flops_budget: what is never dropped costs 0.769230769 of the model, expected less "
        "than the ratio 0.75");
  CHECK(message_of([&] { flops_budget(cost, 20.0 / 26).constant_start(); }) ==
        "subfed: flops_budget: what is never dropped costs 0.769230769 of the model, expected less "
        "than the ratio 0.769230769");
  CHECK(flops_budget(cost, 20.0 / 26 + 6e-13 / 26).constant_start() ==
        doctest::Approx(1e-13).epsilon(0.01));
}

TEST_CASE("budgets out of range, that nothing can meet, or of another model are refused") {
  const auto lenet = models::describe_lenet(models::lenet_options::fashion_mnist());
  const expected_flops cost(lenet.net, lenet.work);
  for (const double bad : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(message_of([&] { flops_budget(cost, bad); }).find("is outside (0, 1]") !=
          std::string::npos);
  }
  CHECK(message_of([&] {
          flops_budget(cost, 1e-9).constant_start();
        }).find("of the model, expected less than the ratio 1e-09") != std::string::npos);
  CHECK(message_of([&] { flops_budget(cost, 0.5).slack({}); }) ==
        "subfed: flops_budget: there is no client");
  const auto vgg = models::describe_vgg9();
  CHECK(message_of([&] { cost(keep_probabilities(vgg.net)); }) ==
        "subfed: expected_flops: the keep probabilities are of another model");
  CHECK(message_of([&] { expected_flops(lenet.net, subfed::workload(lenet.net)); }) ==
        "subfed: expected_flops: the workload has no operation that costs anything");
  CHECK(message_of([&] { expected_flops(lenet.net, vgg.work); }) ==
        "subfed: cost: the submodel is of another model than the workload");
}
