// SPDX-License-Identifier: MIT
#include <subfed/systems/scaffold.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::tensor_view;
using support::message_of;

namespace {

/// Clients want target_i; f_i(y) = ||y - target_i||^2 / 2, so the gradient is y - target_i.
struct problem {
  subfed::model net;
  subfed::group_id nodes;
  subfed::tensor_id x;
  std::vector<std::vector<double>> targets;

  problem(std::int64_t extent, std::size_t clients, support::seeded& random)
      : nodes(net.group("nodes", extent)), x(net.tensor("x", {nodes})) {
    for (std::size_t c = 0; c < clients; ++c) {
      targets.emplace_back(static_cast<std::size_t>(extent));
      for (double& t : targets.back()) t = 4 * random.unit() - 2;
    }
  }
};

}  // namespace

TEST_CASE("by hand: the corrected gradient and the new control of one client") {
  subfed::model net;
  net.tensor("x", {1});
  std::vector<double> gradient{1};
  const std::vector<double> own{0.25}, server{2}, start{5}, trained{4};
  std::vector<double> delta{99};
  const auto view = [](const std::vector<double>& v) {
    return tensor_view<const double>(v.data(), {1});
  };
  subfed::correct_gradients<double>(net, {view(own)}, {view(server)},
                                    {tensor_view<double>(gradient.data(), {1})});
  CHECK(gradient[0] == 1 - 0.25 + 2);
  subfed::control_change<double>(net, {view(start)}, {view(trained)}, {view(server)},
                                 {.steps = 4, .lr = 0.5}, {tensor_view<double>(delta.data(), {1})});
  CHECK(delta[0] == (5 - 4) / (4 * 0.5) - 2);  // c_i+ = c_i - c + (x - y) / (K lr)
}

TEST_CASE("the server's control stays the mean of all clients' controls, for any submodels") {
  support::seeded random(3);
  constexpr std::size_t clients = 7;
  const problem p(6, clients, random);
  std::vector<double> server(6, 0.0), model(6, 1.0);
  std::vector<std::vector<double>> own(clients, std::vector<double>(6, 0.0));
  const tensor_view<double> all(model.data(), {6}), control(server.data(), {6});
  for (std::uint64_t round = 0; round < 12; ++round) {
    std::vector<subfed::update<double>> deltas;
    std::vector<std::vector<double>> kept;
    kept.reserve(clients);
    for (std::uint64_t c = 0; c < clients; ++c) {
      if (random.one_in(2)) continue;
      const auto sub = subfed::draw(p.net, subfed::random_subset{},
                                    {.seed = 1, .round = round, .client = c, .capacity = 0.5});
      const auto n = static_cast<std::size_t>(sub.extent(p.nodes));
      std::vector<double> start(n), trained(n), c_server(n);
      const std::vector<std::int64_t> shape{static_cast<std::int64_t>(n)};
      subfed::slice(all, sub[p.x], tensor_view<double>(start.data(), shape));
      subfed::slice(control, sub[p.x], tensor_view<double>(c_server.data(), shape));
      for (double& y : trained) y = random.unit();
      kept.emplace_back(n);
      const tensor_view<double> delta(kept.back().data(), shape);
      subfed::control_change<double>(p.net, {tensor_view<const double>(start.data(), shape)},
                                     {tensor_view<const double>(trained.data(), shape)},
                                     {tensor_view<const double>(c_server.data(), shape)},
                                     {.steps = 3, .lr = 0.1}, {delta});
      subfed::scatter_add(delta, sub[p.x], tensor_view<double>(own[c].data(), {6}));
      deltas.push_back({sub, {delta}});
    }
    if (deltas.empty()) continue;
    subfed::average_cohort<double>(
        p.net, deltas, {control},
        subfed::control_options(static_cast<std::int64_t>(deltas.size()), clients));
    for (std::size_t i = 0; i < 6; ++i) {
      double mean = 0;
      for (const auto& c : own) mean += c[i] / clients;
      CHECK(std::fabs(server[i] - mean) < 1e-12);
    }
  }
}

TEST_CASE(
    "with full models it removes client drift: the mean of the targets, where FedAvg is off") {
  // Clients with unequal curvature: FedAvg of many local steps stops away from the optimum.
  constexpr std::size_t clients = 2;
  const double curvature[] = {1, 4}, target[] = {0, 1};
  const double optimum = (1 * 0 + 4 * 1) / 5.0;
  for (const bool corrected : {false, true}) {
    subfed::model net;
    net.tensor("x", {1});
    const auto full = subfed::submodel::full(net);
    std::vector<double> x{3}, server{0}, own[clients] = {{0}, {0}};
    const tensor_view<double> global(x.data(), {1}), control(server.data(), {1});
    for (int round = 0; round < 200; ++round) {
      std::vector<std::vector<double>> y(clients, x), delta(clients, {0});
      std::vector<subfed::update<double>> updates, controls;
      for (std::size_t c = 0; c < clients; ++c) {
        const tensor_view<double> mine(y[c].data(), {1}), change(delta[c].data(), {1});
        for (int step = 0; step < 10; ++step) {
          std::vector<double> gradient{curvature[c] * (y[c][0] - target[c])};
          if (corrected) {
            subfed::correct_gradients<double>(net, {tensor_view<const double>(own[c].data(), {1})},
                                              {control},
                                              {tensor_view<double>(gradient.data(), {1})});
          }
          y[c][0] -= 0.05 * gradient[0];
        }
        subfed::control_change<double>(net, {global}, {mine}, {control}, {.steps = 10, .lr = 0.05},
                                       {change});
        own[c][0] += delta[c][0];
        updates.push_back({full, {mine}});
        controls.push_back({full, {change}});
      }
      subfed::average_cohort<double>(net, updates, {global});
      subfed::average_cohort<double>(net, controls, {control},
                                     subfed::control_options(clients, clients));
    }
    if (corrected) CHECK(std::fabs(x[0] - optimum) < 1e-9);
    if (!corrected) CHECK(std::fabs(x[0] - optimum) > 0.05);
  }
}

TEST_CASE("bad steps, cohorts and shapes are refused, and nothing is written") {
  subfed::model net;
  net.tensor("x", {1});
  std::vector<double> a{1}, out{7};
  const tensor_view<const double> one(a.data(), {1}), none(a.data(), {0});
  const tensor_view<double> to(out.data(), {1});
  CHECK(message_of([&] {
          subfed::control_change<double>(net, {one}, {one}, {one}, {.steps = 0, .lr = 0.1}, {to});
        }) ==
        "subfed: control_change: 0 steps with the learning rate 0.1, expected at least 1 and "
        "a positive number");
  CHECK(message_of([&] {
          subfed::control_change<double>(net, {one}, {one}, {one}, {.steps = 1, .lr = 0}, {to});
        }).find("the learning rate 0,") != std::string::npos);
  CHECK(message_of([&] { subfed::correct_gradients<double>(net, {one}, {none}, {to}); }) ==
        "subfed: correct_gradients: the server control tensor 'x' has shape (0,), expected "
        "(1,)");
  CHECK(message_of([] { subfed::control_options(3, 2); }) ==
        "subfed: control_options: a cohort of 3 out of 2 clients");
  CHECK(out[0] == 7);
}

TEST_CASE("statistics, counters and local tensors never get a control, and none is applied") {
  using subfed::role;
  subfed::model net;
  net.tensor("w", {2});
  for (const role is : {role::statistic, role::counter, role::local}) {
    net.tensor("of role " + std::string(subfed::role_text(is)), {2}, is);
  }
  const std::vector<double> x{5, 6}, y{4, 4}, control{1, 3};
  const tensor_view<const double> vx(x.data(), {2}), vy(y.data(), {2}), vc(control.data(), {2});
  const tensor_view<const double> empty(nullptr, {0});
  std::vector<double> gradients(8, 10), deltas(8, 99), server(8, 0.0);
  std::vector<tensor_view<double>> vg, vd, vs;
  for (std::size_t t = 0; t < 4; ++t) {
    const std::vector<std::int64_t> shape{2};
    vg.emplace_back(gradients.data() + 2 * t, shape);
    vd.emplace_back(deltas.data() + 2 * t, shape);
    vs.emplace_back(server.data() + 2 * t, shape);
  }
  const std::vector<tensor_view<const double>> zero(4,
                                                    tensor_view<const double>(server.data(), {2}));
  subfed::correct_gradients<double>(net, zero, {vc, vc, vc, vc}, vg);
  CHECK(gradients == std::vector<double>{11, 13, 10, 10, 10, 10, 10, 10});
  subfed::correct_gradients<double>(net, {vc, empty, vc, empty}, {zero[0], vc, empty, empty}, vg);
  CHECK(gradients == std::vector<double>(8, 10));
  subfed::control_change<double>(net, {vx, vx, vx, empty}, {vy, vy, empty, vy}, {vc, vc, empty, vc},
                                 {.steps = 2, .lr = 0.25}, vd);
  CHECK(deltas == std::vector<double>{1, 1, 0, 0, 0, 0, 0, 0});
  const std::vector<subfed::update<double>> updates{{subfed::submodel::full(net), vd}};
  subfed::average_cohort<double>(net, updates, vs, subfed::control_options(1, 2));
  CHECK(server == std::vector<double>{0.5, 0.5, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("what is finite in the end may be too large in between") {
  subfed::model net;
  net.tensor("x", {1});
  constexpr double largest = (std::numeric_limits<double>::max)();
  const auto view = [](const std::vector<double>& v) {
    return tensor_view<const double>(v.data(), {1});
  };
  std::vector<double> gradient{largest}, delta{0};
  const std::vector<double> low{-largest}, high{largest}, none{0};
  subfed::correct_gradients<double>(net, {view(low)}, {view(low)},
                                    {tensor_view<double>(gradient.data(), {1})});
  CHECK(gradient[0] == largest);
  const auto change = [&](const auto& x, const auto& y, const auto& server, double lr) {
    subfed::control_change<double>(net, {view(x)}, {view(y)}, {view(server)},
                                   {.steps = 4, .lr = lr},
                                   {tensor_view<double>(delta.data(), {1})});
    return delta[0];
  };
  CHECK(change(high, low, none, 0x1p10) == largest * 0x1p-11);
  CHECK(change(high, low, high, 0.5) == 0);
  CHECK(change(high, low, none, 0.25) == std::numeric_limits<double>::infinity());
}
