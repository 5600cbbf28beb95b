// SPDX-License-Identifier: MIT
#include <subfed/systems/server_optimizer.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/draw.hpp>
#include <subfed/layers/normalization.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using subfed::held_elements;
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
  held_elements held(std::initializer_list<std::int64_t> which) const {
    return held_elements(net, std::vector{holding(which)});
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
    const auto report = optimiser.finish(mean.held(), {view});
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
  adam.finish(net.held({0}), {view});
  CHECK(x[0] == 1 + 0.5 * 1 / (std::sqrt(1.75) + 1));
  CHECK(x[1] == 1);
  CHECK(adam.second_moment(net.x)[0] == 1.75);
  CHECK(adam.second_moment(net.x)[1] == 1);
}

TEST_CASE(
    "moments and values freeze while nobody holds a parameter, where a plain Adam continues") {
  const line net;
  server_optimizer<double, subfed::server_adam> adam(net.net, {});
  std::array<double, 4> x{0, 0, 0, 0};
  const tensor_view<double> view(x.data(), {4});
  adam.begin({view});
  x = {1, 1, 1, 1};
  adam.finish(net.held({0, 1, 2, 3}), {view});
  const std::array<double, 4> after = x;
  const double m = adam.first_moment(net.x)[3];
  const double v = adam.second_moment(net.x)[3];
  for (int round = 0; round < 5; ++round) {
    adam.begin({view});
    adam.finish(net.held({0, 1}), {view});  // these report that nothing changed
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
    plain.finish(net.held({0, 1, 2}), {view});
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
  const auto report = optimiser.finish(held_elements(net, std::vector{sub, sub}), {view});
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
  optimiser.finish(held_elements(net, std::vector{sub}), globals);
  CHECK(w == std::array<float, 3>{2, 1, 2});  // the average wrote 2 where nobody held: not ours
  CHECK(steps == 9);
}

namespace {

/// Ten rounds in which every client reports the variance 0.1, the mean -2 and the weight 3.
template <class Rule>
void check_statistics(const Rule& rule) {
  subfed::model net;
  const auto g = net.group("g", 2);
  const auto norm = subfed::batch_norm(
      net, "bn", {.channels = g, .statistics = subfed::running_statistics::with_counter});
  const auto own = net.tensor("own", {g}, subfed::role::local);
  server_optimizer<void, Rule> optimiser(net, rule);
  std::array<float, 2> weight{1, 1}, bias{0, 0}, mean{0, 0}, variance{1, 1}, head{5, 5};
  std::int64_t batches = 0;
  const std::vector<tensor_view<void>> globals{
      tensor_view<float>(weight.data(), {2}),  tensor_view<float>(bias.data(), {2}),
      tensor_view<float>(mean.data(), {2}),    tensor_view<float>(variance.data(), {2}),
      tensor_view<std::int64_t>(&batches, {}), tensor_view<float>(head.data(), {2})};
  const std::array<float, 2> weight_now{3, 3}, bias_now{0, 0}, mean_now{-2, -2},
      variance_now{0.1f, 0.1f};
  const std::int64_t batches_now = 7;
  const submodel all = submodel::full(net);
  for (int round = 0; round < 10; ++round) {
    optimiser.begin(globals);
    subfed::selective_average<void> average(net, {.integers = subfed::integer_rule::max});
    average.add(all, {tensor_view<const float>(weight_now.data(), {2}),
                      tensor_view<const float>(bias_now.data(), {2}),
                      tensor_view<const float>(mean_now.data(), {2}),
                      tensor_view<const float>(variance_now.data(), {2}),
                      tensor_view<const std::int64_t>(&batches_now, {}),
                      tensor_view<const float>(head.data(), {2})});
    average.finish(globals);
    const auto report = optimiser.finish(average.held(), globals);
    CHECK(report == subfed::server_step_report{4, 0});
    CHECK(variance == variance_now);
    CHECK(mean == mean_now);
    CHECK(batches == batches_now);
    CHECK(head == std::array<float, 2>{5, 5});
  }
  CHECK(weight[0] != 3);  // momentum or a small step: not the average
  CHECK(optimiser.first_moment(*norm.weight).size() == 2);
  for (const auto t : {*norm.running_mean, *norm.running_var, *norm.num_batches_tracked, own}) {
    CHECK(optimiser.first_moment(t).empty());
    CHECK(optimiser.second_moment(t).empty());
  }
}

}  // namespace

TEST_CASE("statistics and counters stay as averaged, local tensors as they are, by every rule") {
  check_statistics(subfed::server_sgd{.lr = 1, .momentum = 0.9});
  check_statistics(subfed::server_adagrad{});
  check_statistics(subfed::server_adam{});
  check_statistics(subfed::server_yogi{});
  check_statistics([](double delta, double& m, double&) { return m = 0.9 * m + delta / 2; });
}

namespace {

/// Two nodes, of which client 1 has node 0 and client 2 node 1; rounds in which client 2 sends `value`
/// with `weight`, and takes part where `part` says.
struct two_nodes {
  subfed::model net;
  subfed::group_id g = net.group("g", 2);
  subfed::tensor_id x = net.tensor("x", {g});
  std::array<double, 2> values{1, 1};
  server_optimizer<double, subfed::server_sgd> momentum{net, {.lr = 1, .momentum = 0.9}};

  /// By either form of the average; returns what was held of node 1.
  bool round(bool one_pass, std::uint64_t number, double value, double weight,
             const subfed::average_options& options = {},
             std::initializer_list<std::int64_t> part = {0, 1}) {
    const double first_value = values[0];
    const submodel first(net, {index_set(2, {0})}, {.round = number, .client = 1});
    const submodel second = submodel(net, {index_set(2, {1})}, {.round = number, .client = 2})
                                .restricted(g, index_set(2, part));
    const std::vector<subfed::update<double>> updates{
        {first, {tensor_view<const double>(&first_value, {1})}, 1},
        {second, {tensor_view<const double>(&value, {1})}, weight}};
    const tensor_view<double> view(values.data(), {2});
    momentum.begin({view});
    held_elements held;
    if (one_pass) {
      subfed::average_cohort<double>(net, updates, {view}, held, options);
    } else {
      subfed::selective_average<double> mean(net, options);
      for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
      mean.finish({view});
      held = mean.held();
    }
    momentum.finish(held, {view});
    return held.test(x, 1);
  }
};

}  // namespace

TEST_CASE("what the average took no update of does not move on by its momentum") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool one_pass : {true, false}) {
    for (int why = 0; why < 5; ++why) {
      INFO("one pass ", one_pass, ", why ", why);
      two_nodes c;
      CHECK(c.round(one_pass, 0, 2, 1));
      CHECK(c.values == std::array<double, 2>{1, 2});
      const std::array<double, 2> before = c.values;
      const double m = c.momentum.first_moment(c.x)[1];
      CHECK(m == 1);
      // With the moment carried on, node 1 would go to 2.9 and 3.71.
      for (std::uint64_t round = 1; round < 3; ++round) {
        bool held = true;
        if (why == 0) {
          held =
              c.round(one_pass, round, nan, 1, {.on_non_finite = subfed::non_finite::skip_client});
        } else if (why == 1) {
          held =
              c.round(one_pass, round, nan, 1, {.on_non_finite = subfed::non_finite::skip_element});
        } else if (why == 2) {
          held = c.round(one_pass, round, 7, 0);
        } else if (why == 3) {
          held = c.round(one_pass, round, 7, 1, {}, {0});
        } else {
          held = c.round(one_pass, round, nan, 0, {.on_non_finite = subfed::non_finite::propagate});
        }
        CHECK_FALSE(held);
        CHECK(c.values == before);
        CHECK(c.momentum.first_moment(c.x)[1] == m);
      }
      CHECK(c.round(one_pass, 3, 2, 1));  // delta 0: now the moment continues
      CHECK(c.values[1] == 2.9);
    }
  }
}

TEST_CASE("a step that leaves the range of numbers is refused, and nothing is written") {
  const line net;
  const auto refused = [&]<class T, class Rule>(T old, T now, const Rule& rule) {
    server_optimizer<T, Rule> optimiser(net.net, rule);
    std::array<T, 4> x{1, 1, old, 1};
    const tensor_view<T> view(x.data(), {4});
    optimiser.begin({view});
    x[0] = 2, x[2] = now;
    const std::array<T, 4> before = x;
    const double m = optimiser.first_moment(net.x)[0], v = optimiser.second_moment(net.x)[0];
    std::string message;
    try {
      optimiser.finish(net.held({0, 2}), {view});
      return std::string("nothing was thrown");
    } catch (const subfed::error& e) {
      message = e.what();
      CHECK(e.tensor() == "x");
    }
    CHECK(x == before);
    CHECK(optimiser.first_moment(net.x)[0] == m);
    CHECK(optimiser.second_moment(net.x)[0] == v);
    return message;
  };
  CHECK(refused(0.0, 1e200, subfed::server_adam{}) ==
        "subfed: server_optimizer: the step from 0 through the average 1e+200 of tensor 'x', at "
        "element (2,), leaves the range of its numbers");  // 1e400 in the second moment
  CHECK(refused(0.0, 1e200, subfed::server_adagrad{}).find("leaves the range") !=
        std::string::npos);
  CHECK(refused(0.0, -1e200, subfed::server_yogi{}).find("leaves the range") != std::string::npos);
  CHECK(refused(-1e308, 1e308, subfed::server_sgd{}).find("leaves the range") != std::string::npos);
  CHECK(refused(0.0f, 2e38f, subfed::server_sgd{.lr = 2}).find("leaves the range") !=
        std::string::npos);  // 4e38 is beyond float
  CHECK(refused(0.0, 1e150, subfed::server_adam{}) == "nothing was thrown");
}

TEST_CASE("what is not finite in the average passes on, and leaves the others alone") {
  const line net;
  server_optimizer<double, subfed::server_sgd> sgd(net.net, {.lr = 1, .momentum = 0.9});
  std::array<double, 4> x{1, 1, 1, 1};
  const tensor_view<double> view(x.data(), {4});
  sgd.begin({view});
  x[0] = std::numeric_limits<double>::infinity();
  x[1] = 3;
  sgd.finish(net.held({0, 1}), {view});
  CHECK(std::isinf(x[0]));
  CHECK(x[1] == 3);
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
  CHECK(message_of([&] { sgd.finish(net.held({0}), {view}); }) ==
        "subfed: server_optimizer: finish() without begin()");
  CHECK(message_of([&] { sgd.begin({tensor_view<double>(x.data(), {3})}); }) ==
        "subfed: server_optimizer: the global tensor 'x' has shape (3,), expected (4,)");
  sgd.begin({view});
  subfed::model other;
  other.tensor("y", {4});
  CHECK(message_of([&] { sgd.finish(held_elements(other), {view}); }) ==
        "subfed: server_optimizer: the held elements are of another model");
  CHECK(message_of([&] { sgd.finish(net.held({0}), {}); }) ==
        "subfed: server_optimizer: 0 global tensors are given for a model of 1");
  const tensor_view<double> broadcast(x.data(), {4}, {0});
  CHECK(message_of([&] { sgd.finish(net.held({0}), {broadcast}); }).find("'x'") !=
        std::string::npos);
  CHECK(x == before);
}

TEST_CASE(
    "server_optimizer: a parameter of integers in begin() that has none in finish() is refused") {
  subfed::model net;
  net.tensor("x", {2});
  server_optimizer<void, subfed::server_sgd> sgd(net);
  const std::array<std::int32_t, 2> integers{1, 2};
  std::array<float, 2> x{3, 4};
  const std::vector<subfed::tensor_view<const void>> before{
      tensor_view<const std::int32_t>(integers.data(), {2})};
  const std::vector<subfed::tensor_view<void>> now{tensor_view<float>(x.data(), {2})};
  sgd.begin(before);
  const held_elements all(net, std::vector<subfed::submodel>{subfed::submodel::full(net)});
  CHECK(message_of([&] { sgd.finish(all, now); }) ==
        "subfed: server_optimizer: tensor 'x' had integers in begin() and has none now");
  CHECK(x == std::array<float, 2>{3, 4});
}
