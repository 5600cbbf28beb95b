// SPDX-License-Identifier: MIT
#include <subfed/systems/server_optimizer.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/selective_average.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::server_optimizer;
using subfed::submodel;
using subfed::tensor_view;
using support::message_of;

namespace {

/// A vector of four nodes; clients hold some of them.
struct line {
  subfed::model net;
  subfed::group_id nodes = net.group("nodes", 4);
  subfed::tensor_id x = net.tensor("x", {nodes});

  submodel holding(std::initializer_list<std::int64_t> which) const {
    return submodel(net, {index_set(4, which)});
  }
};

/// The optimiser of [FedOpt, Alg. 2] for one parameter, written out.
struct scalar_state {
  long double x = 0, m = 0, v = 0;
};
enum class kind { sgd, adagrad, adam, yogi };
void advance(kind which, scalar_state& s, long double delta, long double lr, long double beta1,
             long double beta2, long double tau) {
  if (which == kind::sgd) {
    s.m = beta1 * s.m + delta;
    s.x += lr * s.m;
    return;
  }
  s.m = beta1 * s.m + (1 - beta1) * delta;
  if (which == kind::adagrad) s.v += delta * delta;
  if (which == kind::adam) s.v = beta2 * s.v + (1 - beta2) * delta * delta;
  if (which == kind::yogi) {
    const long double gap = s.v - delta * delta;
    const long double sign = gap > 0 ? 1 : gap < 0 ? -1 : 0;
    s.v -= (1 - beta2) * delta * delta * sign;
  }
  s.x += lr * s.m / (std::sqrt(s.v) + tau);
}

/// Twenty rounds on four nodes with random holders, against four scalar optimisers of which only
/// the held ones are advanced.
template <class Rule>
void check_rounds(kind which, const Rule& rule, double lr, double beta1, double beta2, double tau) {
  const line net;
  support::seeded random(7);
  server_optimizer<double, Rule> optimiser(net.net, rule);
  std::array<double, 4> x{1, -2, 3, 0.5};
  std::array<scalar_state, 4> expected;
  for (std::size_t i = 0; i < 4; ++i) {
    expected[i].x = static_cast<long double>(x[i]);
    expected[i].v = which == kind::sgd ? 0 : static_cast<long double>(tau) * tau;
  }
  const tensor_view<double> view(x.data(), {4});
  bool some_still = false;
  for (int round = 0; round < 20; ++round) {
    const auto first = support::random_nodes(random, 4);
    const auto second = support::random_nodes(random, 4);
    const std::vector<submodel> subs{submodel(net.net, {index_set(4, first)}),
                                     submodel(net.net, {index_set(4, second)})};
    subfed::selective_average<double> mean(net.net);
    std::array<long double, 4> sum{}, holders{};
    for (std::size_t c = 0; c < 2; ++c) {
      std::vector<double> values;
      for (const std::int64_t node : subs[c][net.nodes]) {
        const double now = x[static_cast<std::size_t>(node)] + 2 * random.unit() - 1;
        values.push_back(now);
        sum[static_cast<std::size_t>(node)] += static_cast<long double>(now);
        holders[static_cast<std::size_t>(node)] += 1;
      }
      mean.add(subs[c], {tensor_view<const double>(values.data(),
                                                   {static_cast<std::int64_t>(values.size())})});
    }
    const std::array<double, 4> before = x;
    optimiser.begin({view});
    mean.finish({view});
    const auto report = optimiser.finish(subs, {view});
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      if (holders[i] > 0) {
        ++moved;
        const auto average = static_cast<double>(sum[i] / holders[i]);
        advance(which, expected[i],
                static_cast<long double>(average) - static_cast<long double>(before[i]), lr, beta1,
                beta2, tau);
      } else {
        some_still = true;
        CHECK(std::memcmp(&x[i], &before[i], sizeof(double)) == 0);
      }
      CHECK(std::fabs(x[i] - static_cast<double>(expected[i].x)) < 1e-12);
      CHECK(std::fabs(optimiser.first_moment(net.x)[i] - static_cast<double>(expected[i].m)) <
            1e-12);
      CHECK(std::fabs(optimiser.second_moment(net.x)[i] - static_cast<double>(expected[i].v)) <
            1e-12);
    }
    CHECK(report == subfed::server_step_report{moved, 4 - moved});
  }
  CHECK(some_still);
}

}  // namespace

TEST_CASE("Adam by hand: one held parameter moves, one that nobody holds does not") {
  const line net;
  server_optimizer<double, subfed::server_adam> adam(
      net.net, {.lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .tau = 1});
  std::array<double, 4> x{1, 1, 1, 1};
  const tensor_view<double> view(x.data(), {4});
  adam.begin({view});
  x[0] = 3;  // the average: delta = 2, m = 1, v = 0.75 1 + 0.25 4 = 1.75
  adam.finish(std::vector{net.holding({0})}, {view});
  CHECK(x[0] == 1 + 0.5 * 1 / (std::sqrt(1.75) + 1));
  CHECK(x[1] == 1);
  CHECK(adam.second_moment(net.x)[0] == 1.75);
  CHECK(adam.second_moment(net.x)[1] == 1);
}

TEST_CASE("moments and values freeze while nobody holds a parameter, where a plain Adam goes on") {
  const line net;
  server_optimizer<double, subfed::server_adam> adam(net.net, {});
  std::array<double, 4> x{0, 0, 0, 0};
  const tensor_view<double> view(x.data(), {4});
  adam.begin({view});
  x = {1, 1, 1, 1};
  adam.finish(std::vector{net.holding({0, 1, 2, 3})}, {view});
  const std::array<double, 4> after = x;
  const double m = adam.first_moment(net.x)[3];
  const double v = adam.second_moment(net.x)[3];
  for (int round = 0; round < 5; ++round) {
    adam.begin({view});
    adam.finish(std::vector{net.holding({0, 1})}, {view});  // these report that nothing changed
  }
  CHECK(x[3] == after[3]);
  CHECK(x[2] == after[2]);
  CHECK(adam.first_moment(net.x)[3] == m);
  CHECK(adam.second_moment(net.x)[3] == v);
  CHECK(m != 0);
  CHECK(x[0] > after[0]);  // held: the old moment carries it on
  CHECK(adam.first_moment(net.x)[0] < m);
}

TEST_CASE("every rule equals scalar optimisers of which only the held ones are advanced") {
  check_rounds(kind::sgd, subfed::server_sgd{.lr = 0.7, .momentum = 0.9}, 0.7, 0.9, 0, 0);
  check_rounds(kind::adagrad, subfed::server_adagrad{.lr = 0.3, .beta1 = 0.2, .tau = 0.05}, 0.3,
               0.2, 0, 0.05);
  check_rounds(kind::adam, subfed::server_adam{.lr = 0.1, .tau = 0.01}, 0.1, 0.9, 0.99, 0.01);
  check_rounds(kind::yogi, subfed::server_yogi{.lr = 0.1, .beta2 = 0.9, .tau = 0.5}, 0.1, 0.9, 0.9,
               0.5);
}

TEST_CASE("SGD with lr 1 and without momentum gives the average itself") {
  const line net;
  server_optimizer<float, subfed::server_sgd> plain(net.net);
  std::array<float, 4> x{1, 2, 3, 4};
  const tensor_view<float> view(x.data(), {4});
  for (int round = 0; round < 3; ++round) {
    plain.begin({view});
    const std::array<float, 4> mean{0.1f, 5, 0.3f * static_cast<float>(round), 4};
    x = mean;
    plain.finish(std::vector{net.holding({0, 1, 2})}, {view});
    CHECK(x == mean);
  }
}

TEST_CASE("a rule of one's own is a lambda, and works on a rolling window") {
  subfed::model net;
  const auto hidden = net.group("hidden", 5);
  net.tensor("w", {hidden, 3});
  const auto half = [](double delta, double& m, double&) { return m = delta / 2; };
  server_optimizer<float, decltype(half)> optimiser(net, half);
  std::vector<float> w(15, 0.0f);
  // Column-major, so that the walk has to follow strides.
  const tensor_view<float> view(w.data(), {5, 3}, {1, 5});
  const auto sub = subfed::draw(net, subfed::rolling{}, {.round = 3, .capacity = 0.6});
  optimiser.begin({view});
  for (const std::int64_t row : sub[hidden]) {
    for (std::int64_t c = 0; c < 3; ++c) view(row, c) = 8;
  }
  const auto report = optimiser.finish(std::vector{sub, sub}, {view});
  CHECK(report == subfed::server_step_report{9, 6});
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t c = 0; c < 3; ++c) CHECK(view(row, c) == (sub[hidden].contains(row) ? 4 : 0));
  }
}

TEST_CASE("rows that do not take part do not move, and integers stay as the average left them") {
  subfed::model net;
  const auto classes = net.group("classes", 3, subfed::cut::never);
  net.tensor("w", {classes});
  net.tensor("steps", {});
  server_optimizer<void, subfed::server_sgd> optimiser(net, {.lr = 0.5, .momentum = 0});
  std::array<float, 3> w{0, 0, 0};
  std::int64_t steps = 3;
  const std::vector<tensor_view<void>> globals{tensor_view<float>(w.data(), {3}),
                                               tensor_view<std::int64_t>(&steps, {})};
  optimiser.begin(globals);
  w = {2, 2, 2};
  steps = 9;
  const auto sub = submodel::full(net).restricted(classes, index_set(3, {1}));
  optimiser.finish(std::vector{sub}, globals);
  CHECK(w == std::array<float, 3>{2, 1, 2});  // the average wrote 2 where nobody held: not ours
  CHECK(steps == 9);
}

TEST_CASE("what is out of range or missing is refused by name, and nothing is written") {
  const line net;
  const auto refused = [&](auto rule) {
    return message_of([&] { server_optimizer<double, decltype(rule)>(net.net, rule); });
  };
  CHECK(refused(subfed::server_adam{.beta1 = 1}) ==
        "subfed: server_optimizer: beta1 is 1, expected in [0, 1)");
  CHECK(refused(subfed::server_adagrad{.beta1 = -0.5}) ==
        "subfed: server_optimizer: beta1 is -0.5, expected in [0, 1)");
  CHECK(refused(subfed::server_yogi{.beta1 = 1.5}) ==
        "subfed: server_optimizer: beta1 is 1.5, expected in [0, 1)");
  CHECK(refused(subfed::server_adam{.beta2 = 1}) ==
        "subfed: server_optimizer: beta2 is 1, expected in [0, 1)");
  CHECK(refused(subfed::server_sgd{.momentum = 1}) ==
        "subfed: server_optimizer: the momentum is 1, expected in [0, 1)");
  CHECK(refused(subfed::server_yogi{.beta2 = -0.5}) ==
        "subfed: server_optimizer: beta2 is -0.5, expected in [0, 1)");
  CHECK(refused(subfed::server_sgd{.lr = std::numeric_limits<double>::quiet_NaN()})
            .find("the learning rate is NaN") != std::string::npos);
  CHECK(refused(subfed::server_adagrad{.tau = 0}).find("tau is 0") != std::string::npos);

  server_optimizer<double, subfed::server_sgd> sgd(net.net, {.lr = 0.5, .momentum = 0});
  std::array<double, 4> x{1, 2, 3, 4};
  const std::array<double, 4> before = x;
  const tensor_view<double> view(x.data(), {4});
  CHECK(message_of([&] { sgd.finish(std::vector{net.holding({0})}, {view}); }) ==
        "subfed: server_optimizer: finish() without begin()");
  CHECK(message_of([&] { sgd.begin({tensor_view<double>(x.data(), {3})}); }) ==
        "subfed: server_optimizer: the global tensor 'x' has shape (3,), expected (4,)");
  sgd.begin({view});
  subfed::model other;
  other.tensor("y", {4});
  CHECK(message_of([&] { sgd.finish(std::vector{submodel::full(other)}, {view}); }) ==
        "subfed: server_optimizer: the submodel of client 0 is of another model");
  CHECK(message_of([&] { sgd.finish(std::vector{net.holding({0})}, {}); }) ==
        "subfed: server_optimizer: 0 global tensors are given for a model of 1");
  const tensor_view<double> broadcast(x.data(), {4}, {0});
  CHECK(message_of([&] { sgd.finish(std::vector{net.holding({0})}, {broadcast}); }).find("'x'") !=
        std::string::npos);
  CHECK(x == before);
}
