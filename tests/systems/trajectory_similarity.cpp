// SPDX-License-Identifier: MIT
#include <subfed/systems/trajectory_similarity.hpp>

#include <subfed/draw.hpp>
#include <subfed/layers/recurrent.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::keep_probabilities;
using subfed::submodel;
using subfed::tensor_view;
using subfed::trajectory;
using subfed::trajectory_similarity;
using support::message_of;

namespace {

/// A client's tensors, and what it holds written out over the whole model: old minus new.
struct trained {
  std::vector<std::vector<double>> own;
  std::vector<std::vector<double>> delta;  // whole tensors, 0 where not held
};

/// Slices by the library, changes every element, and records the change at its global place.
trained train(const subfed::model& net, const submodel& sub,
              const std::vector<std::vector<double>>& before, support::seeded& random) {
  trained out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& extents = net.tensors()[t].extents;
    std::vector<double> after = before[t];
    for (double& x : after) x += 2 * random.unit() - 1;
    const auto local = sub.extents(subfed::tensor_id(t));
    std::vector<double> own(static_cast<std::size_t>(support::elements_of(local)));
    subfed::slice(tensor_view<const double>(after.data(), extents), sub[subfed::tensor_id(t)],
                  tensor_view<double>(own.data(), local));
    std::vector<double> put_back = before[t];
    subfed::scatter(tensor_view<const double>(own.data(), local), sub[subfed::tensor_id(t)],
                    tensor_view<double>(put_back.data(), extents));
    std::vector<double> delta;
    for (std::size_t i = 0; i < after.size(); ++i) delta.push_back(before[t][i] - put_back[i]);
    out.own.push_back(own);
    out.delta.push_back(delta);
  }
  return out;
}

}  // namespace

TEST_CASE("two clients by hand: they agree on node 0 and disagree on node 1") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("w", {g, 2});
  net.tensor("b", {g});
  net.tensor("next", {3, g});  // the next layer's: its first dimension is not the group
  const std::vector<double> w(4, 1.0), b(2, 1.0), next(6, 0.0), next_new(6, 9.0);
  const std::vector<double> w1{0, 1, 2, 1}, b1{1, 1}, w2{0, 0, 0, 1}, b2{-1, 3};
  keep_probabilities one(net, 0.5), two(net, 0.25);
  const tensor_view<const double> vw(w.data(), {2, 2}), vb(b.data(), {2}), vn(next.data(), {3, 2}),
      vn1(next_new.data(), {3, 2});
  const std::vector<trajectory<double>> clients{{submodel::full(net),
                                                 {tensor_view<const double>(w1.data(), {2, 2}),
                                                  tensor_view<const double>(b1.data(), {2}), vn1},
                                                 one,
                                                 1},
                                                {submodel::full(net),
                                                 {tensor_view<const double>(w2.data(), {2, 2}),
                                                  tensor_view<const double>(b2.data(), {2}), vn1},
                                                 two,
                                                 3}};
  const auto s = subfed::similarity_of<double>(net, {vw, vb, vn}, clients);
  // Deltas of node 0: (1, 0, 0) and (1, 1, 2); of node 1: (-1, 0, 0) and (1, 0, -2).
  CHECK(s(0, 0, 0) == 0.25 * 0.25 * 0.5 * 1);
  CHECK(s(0, 0, 1) == 0.25 * 0.75 * 0.5 * 1);
  CHECK(s(0, 1, 1) == 0.75 * 0.75 * 0.25 * 6);
  CHECK(s(1, 0, 1) == 0.25 * 0.75 * 0.5 * -1);
  CHECK(s(1, 1, 0) == s(1, 0, 1));
  CHECK(s(1, 1, 1) == 0.75 * 0.75 * 0.25 * 5);
}

TEST_CASE(
    "random submodels, gates and grouped blocks: the sum over each node's rows, spelled out") {
  support::seeded random(23);
  for (int trial = 0; trial < 12; ++trial) {
    subfed::model net;
    const auto a = net.group("a", random.between(1, 4));
    const auto never = net.group("never", 2, subfed::cut::never);
    const auto h = net.group("h", random.between(1, 5));
    subfed::linear(net, "fc", {.in = never, .out = a});
    subfed::lstm(net, "lstm", {.in = a, .hidden = {h}});
    net.tensor("mixed", {subfed::concat({h.block(2), never, a}), h});
    net.tensor("scalar", {});
    std::vector<std::vector<double>> before;
    std::vector<tensor_view<const double>> views;
    for (const auto& t : net.tensors()) {
      before.emplace_back(static_cast<std::size_t>(support::elements_of(t.extents)));
      for (double& x : before.back()) x = random.unit();
    }
    for (std::size_t t = 0; t < before.size(); ++t) {
      views.emplace_back(before[t].data(), net.tensors()[t].extents);
    }
    std::vector<trained> results;
    std::vector<trajectory<double>> clients;
    double weights = 0;
    results.reserve(4);
    for (std::uint64_t c = 0; c < 4; ++c) {
      const auto sub = subfed::draw(
          net, subfed::random_subset{},
          {.seed = 1, .round = static_cast<std::uint64_t>(trial), .client = c, .capacity = 0.7});
      results.push_back(train(net, sub, before, random));
      std::vector<tensor_view<const double>> own;
      for (std::size_t t = 0; t < before.size(); ++t) {
        own.emplace_back(results.back().own[t].data(), sub.extents(subfed::tensor_id(t)));
      }
      keep_probabilities keep(net);
      std::vector<double> p(keep.values().size());
      for (double& x : p) x = random.unit();
      keep.assign(p);
      clients.push_back({sub, own, keep, 1.0 + static_cast<double>(c)});
      weights += 1.0 + static_cast<double>(c);
    }
    const auto s = subfed::similarity_of<double>(net, views, clients);

    // Rows of node n: fc.weight (a), fc.bias (a), lstm.weight_* (4 gates of h), lstm.bias_* (4
    // gates), mixed (2 elements a node of h, 2 of never, then a).
    const auto na = static_cast<std::size_t>(net[a].extent),
               nh = static_cast<std::size_t>(net[h].extent);
    REQUIRE(s.nodes() == na + nh);
    for (std::size_t n = 0; n < na + nh; ++n) {
      const bool of_a = n < na;
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (std::size_t t = 0; t < before.size(); ++t) {
            const auto& info = net.tensors()[t];
            if (info.extents.empty()) continue;
            const auto rows = static_cast<std::size_t>(info.extents[0]);
            const std::size_t width = before[t].size() / rows;
            for (std::size_t row = 0; row < rows; ++row) {
              bool own = false;
              if (info.name.substr(0, 2) == "fc") own = of_a && row == n;
              if (info.name.substr(0, 4) == "lstm") own = !of_a && row % nh == n - na;
              if (info.name == "mixed") {
                own = of_a ? row == 2 * nh + 2 + n : row / 2 == n - na && row < 2 * nh;
              }
              for (std::size_t e = 0; own && e < width; ++e) {
                sum += results[i].delta[t][row * width + e] * results[j].delta[t][row * width + e];
              }
            }
          }
          const double p = (std::max)(clients[i].keep.values()[n], clients[j].keep.values()[n]);
          const double expected =
              clients[i].weight / weights * (clients[j].weight / weights) * p * sum;
          CHECK(std::fabs(s(n, i, j) - expected) < 1e-14);
        }
      }
    }
  }
}

TEST_CASE("statistics, counters and local tensors have no part in how alike updates are") {
  subfed::model plain, full;
  for (subfed::model* net : {&plain, &full}) {
    const auto g = net->group("g", 2);
    net->tensor("w", {g});
    if (net == &plain) continue;
    for (const auto is : {subfed::role::statistic, subfed::role::counter, subfed::role::local}) {
      net->tensor("of role " + std::string(subfed::role_text(is)), {g}, is);
    }
  }
  const std::vector<double> before{1, 1}, after{0, 3};
  const tensor_view<const double> old(before.data(), {2}), now(after.data(), {2});
  const auto similarity = [&](const subfed::model& net) {
    const std::vector<tensor_view<const double>> start(net.tensors().size(), old);
    const std::vector<tensor_view<const double>> trained_to(net.tensors().size(), now);
    const keep_probabilities keep(net);
    const std::vector<trajectory<double>> clients{{submodel::full(net), trained_to, keep, 1},
                                                  {submodel::full(net), start, keep, 1}};
    return subfed::similarity_of<double>(net, start, clients);
  };
  const auto with = similarity(full), without = similarity(plain);
  CHECK(without(0, 0, 0) == 0.25 * 1);
  CHECK(without(1, 0, 0) == 0.25 * 4);
  for (std::size_t n = 0; n < 2; ++n) CHECK(with(n, 0, 0) == without(n, 0, 0));
}

TEST_CASE("the objective is the sum of S / max, and Theorem 3: least at q = 1 for similarities") {
  support::seeded random(31);
  for (int trial = 0; trial < 30; ++trial) {
    // S^n = sum of outer products, hence positive semidefinite.
    constexpr std::size_t nodes = 3, count = 4;
    subfed::model net;
    net.group("g", nodes);
    trajectory_similarity s(nodes, count);
    for (std::size_t n = 0; n < nodes; ++n) {
      for (int term = 0; term < 2; ++term) {
        double x[count];
        for (double& v : x) v = 2 * random.unit() - 1;
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t j = 0; j <= i; ++j) s(n, i, j) += x[i] * x[j];
        }
      }
    }
    std::vector<keep_probabilities> q;
    double expected = 0;
    for (std::size_t c = 0; c < count; ++c) {
      q.emplace_back(net);
      std::vector<double> p(nodes);
      for (double& x : p) x = 0.05 + 0.95 * random.unit();
      q.back().assign(p);
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          expected += s(n, i, j) / (std::max)(q[i].values()[n], q[j].values()[n]);
        }
      }
    }
    CHECK(std::fabs(subfed::trajectory_objective(s, q) - expected) < 1e-12);
    const std::vector<keep_probabilities> ones(count, keep_probabilities(net));
    CHECK(std::fabs(subfed::trajectory_objective(s, ones) - s.total()) < 1e-12);
    CHECK(subfed::trajectory_objective(s, q) >= s.total() - 1e-12);
    const double before = s.total(), trace = s.trace();
    double diagonal = 0;
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t i = 0; i < count; ++i) diagonal += s(n, i, i);
    }
    CHECK(std::fabs(trace - diagonal) < 1e-12);
    s.scale(0.5);
    CHECK(std::fabs(s.total() - before / 2) < 1e-12);
    CHECK(std::fabs(s.trace() - trace / 2) < 1e-12);
  }
}

TEST_CASE("what does not fit is refused by name") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("w", {g});
  const std::vector<double> w(2, 0.0);
  std::vector<double> bad{0, std::numeric_limits<double>::infinity()};
  const tensor_view<const double> view(w.data(), {2}), infinite(bad.data(), {2});
  const keep_probabilities keep(net);
  const auto full = submodel::full(net);
  using list = std::vector<trajectory<double>>;
  const auto refused = [&](const list& clients) {
    return message_of([&] { subfed::similarity_of<double>(net, {view}, clients); });
  };
  CHECK(
      refused({}) ==
      "subfed: similarity_of: the weights of the clients add up to 0, expected a positive number");
  CHECK(
      refused({{full, {infinite}, keep, 1}}) ==
      "subfed: similarity_of: client 0 of round 0 has a value that is not finite in tensor 'w', at "
      "global element (1,)");
  CHECK(refused({{full, {view}, keep, -1}}) ==
        "subfed: similarity_of: the weight of client 0 of round 0 is -1, expected a finite number "
        "that is not negative");
  CHECK(refused({{full, {}, keep, 1}}).starts_with("subfed: similarity_of: "));
  const std::vector<double> huge{1e200, 1};
  CHECK(
      refused({{full, {tensor_view<const double>(huge.data(), {2})}, keep, 1}})
          .find(
              "subfed: similarity_of: the updates of node 0 by client 0 of round 0 and client 0 of "
              "round 0 are so large that their product is not finite") == 0);
  subfed::model other;
  other.group("g", 3);
  CHECK(
      refused({{full, {view}, keep_probabilities(other), 1}}) ==
      "subfed: similarity_of: the keep probabilities of client 0 of round 0 are of another model");
  trajectory_similarity s(2, 2);
  s(0, 0, 0) = 1e308;
  CHECK(message_of([&] {
          subfed::trajectory_objective(s, std::vector(2, keep_probabilities(net, 1e-3)));
        }) == "subfed: trajectory_objective: the sum is not finite");
  s(0, 0, 0) = 0;
  CHECK(message_of([&] { subfed::trajectory_objective(s, std::vector{keep}); }) ==
        "subfed: trajectory_objective: 1 clients are given, expected 2");
  CHECK(message_of([&] {
          subfed::trajectory_objective(s, std::vector(2, keep_probabilities(other)));
        }) == "subfed: trajectory_objective: keep probabilities of 3 nodes are given, expected 2");
  CHECK(message_of(
            [&] { subfed::trajectory_objective(s, std::vector(2, keep_probabilities(net, 0))); }) ==
        "subfed: trajectory_objective: clients 0 and 0 both have the keep probability 0 for "
        "node 0");
}

TEST_CASE("copies of an empty group, and rows of a tensor without elements, take no time") {
  subfed::model net;
  const auto none = net.group("none", 0), some = net.group("some", 2);
  net.tensor("copies", {none.repeat(std::int64_t{1} << 40), 3});
  net.tensor("rows", {some.block(std::int64_t{1} << 40), none});
  net.tensor("w", {some});
  const auto full = submodel::full(net);
  const std::vector<float> before{1, 2}, after{2, 4};
  const auto views = [&](const std::vector<float>& of) {
    return subfed::tensor_views<const float>{
        tensor_view<const float>(nullptr, {0, 3}),
        tensor_view<const float>(nullptr, {std::int64_t{2} << 40, 0}),
        tensor_view<const float>(of.data(), {2})};
  };
  const std::vector<subfed::trajectory<float>> clients{
      {full, views(after), subfed::keep_probabilities(net), 1}};
  const auto found = subfed::similarity_of<float>(net, views(before), clients);
  CHECK(found.nodes() == 2);
  CHECK(found(0, 0, 0) == 1);
  CHECK(found(1, 0, 0) == 4);
}
