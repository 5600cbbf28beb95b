// SPDX-License-Identifier: MIT
#include <subfed/schemes/node_scores.hpp>

#include <subfed/submodel.hpp>
#include <subfed/tensors.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using subfed::node_norms;
using subfed::norm_order;
using support::message_of;

TEST_CASE("node norms of two layers, by hand") {
  subfed::model net;
  const auto h = net.group("h", 2);
  const auto w1 = net.tensor("w1", {h, 2});
  const auto b1 = net.tensor("b1", {h});
  const auto mean = net.tensor("mean", {h}, subfed::role::statistic);
  const auto w2 = net.tensor("w2", {1, h});
  net.tensor("b2", {1});
  subfed::tensors<float> v(net);
  v[w1](0, 0) = 1;
  v[w1](0, 1) = -2;
  v[b1](0) = 2;
  v[w2](0, 0) = -4;
  v[w1](1, 1) = 3;
  v[mean](1) = 100;
  CHECK(node_norms<float>(net, v, norm_order::one)[h][0] == 9);
  CHECK(node_norms<float>(net, v, norm_order::two)[h][0] == 5);
  CHECK(node_norms<float>(net, v)[h][0] == 5);
  CHECK(node_norms<float>(net, v, norm_order::infinity)[h][0] == 4);
  CHECK(node_norms<float>(net, v, norm_order::one)[h][1] == 3);
}

TEST_CASE("norms of tensors of mixed types are those of their values, and counters have no part") {
  subfed::model net;
  const auto h = net.group("h", 2);
  net.tensor("w", {h, 2});
  net.tensor("b", {h});
  net.tensor("count", {}, subfed::role::counter);
  float w[] = {1, -2, 3, 0};
  double b[] = {2, 0.5};
  std::int64_t count = 7;
  const auto norms = [&] {
    return node_norms<void>(
        net,
        {subfed::tensor_view<float>(w, {2, 2}), subfed::tensor_view<double>(b, {2}),
         subfed::tensor_view<std::int64_t>(&count, {})},
        norm_order::one);
  };
  CHECK(norms()[h][0] == 5);
  CHECK(norms()[h][1] == 3.5);
  b[1] = std::numeric_limits<double>::infinity();
  CHECK(message_of(norms) == "subfed: node_norms: tensor 'b' has an element that is inf");
  subfed::model whole;
  whole.tensor("w", {2});
  std::int32_t n[] = {1, 2};
  CHECK(message_of([&] { node_norms<void>(whole, {subfed::tensor_view<std::int32_t>(n, {2})}); }) ==
        "subfed: node_norms: tensor 'w' is a parameter of integers");
}

TEST_CASE("the norm of a node is that of all that is lost without it") {
  subfed::model net;
  const auto a = net.group("a", 5);
  const auto b = net.group("b", 3);
  net.tensor("flat", {4, subfed::concat({a.repeat(2).block(3), 2, b, a})});
  net.tensor("recurrent", {a.repeat(2), a});
  net.tensor("both", {a, b.block(2)});
  net.tensor("twice", {subfed::concat({b, b}), b});
  net.tensor("free", {7});
  support::seeded random(8);
  subfed::tensors<double> all(net);
  for (double& x : all.elements()) x = random.unit() - 0.5;
  const auto squares = [&](const subfed::submodel& sub) {
    double sum = 0;
    for (std::size_t t = 0; t < net.tensors().size(); ++t) {
      const subfed::tensor_id id(t);
      const auto chosen = sub[id];
      const auto& view = all[id];
      if (chosen.rank() == 1) continue;
      for (const auto& r : chosen.dimension(0).runs) {
        for (const auto& c : chosen.dimension(1).runs) {
          for (std::int64_t i = r.first; i < r.first + r.length; ++i) {
            for (std::int64_t j = c.first; j < c.first + c.length; ++j) {
              sum += view(i, j) * view(i, j);
            }
          }
        }
      }
    }
    return sum;
  };
  const auto scores = node_norms<double>(net, all);
  const auto full = subfed::submodel::full(net);
  for (const auto group : {a, b}) {
    for (std::int64_t n = 0; n < net[group].extent; ++n) {
      std::vector<std::int64_t> others;
      for (std::int64_t m = 0; m < net[group].extent; ++m) {
        if (m != n) others.push_back(m);
      }
      const auto without = full.with(group, subfed::index_set(net[group].extent, others));
      const double lost = squares(full) - squares(without);
      CHECK(std::abs(scores[group][static_cast<std::size_t>(n)] - std::sqrt(lost)) < 1e-12);
    }
  }
}

TEST_CASE("node norms of strided tensors, of halves, of empty groups") {
  subfed::model net;
  const auto a = net.group("a", 2);
  const auto none = net.group("none", 0);
  net.tensor("w", {a, 3});
  net.tensor("empty", {none, a});
  const std::vector<subfed::half> data(12, subfed::half(-1.5f));
  const subfed::tensor_view w(data.data() + 9, {2, 3}, {1, -4});
  const subfed::tensor_view<const subfed::half> nothing(nullptr, {0, 2});
  const auto scores = node_norms<subfed::half>(net, {w, nothing}, norm_order::one);
  CHECK(scores[a][1] == 4.5);
  CHECK(scores[none].empty());
}

TEST_CASE("node norms refuse other tensors and what is not finite") {
  subfed::model net;
  net.tensor("w", {net.group("a", 2)});
  subfed::tensors<float> v(net);
  v.elements()[1] = std::numeric_limits<float>::infinity();
  CHECK(message_of([&] { static_cast<void>(node_norms<float>(net, v)); }) ==
        "subfed: node_norms: tensor 'w' has an element that is inf");
  CHECK(message_of([&] { static_cast<void>(node_norms<float>(net, {})); }) ==
        "subfed: node_norms: 0 global tensors are given for a model of 1");
}

TEST_CASE("a tensor without elements takes no memory, however long its other dimensions are") {
  subfed::model net;
  const auto none = net.group("none", 0), g = net.group("g", 2);
  net.tensor("empty", {g.block(std::int64_t{1} << 50), none});
  net.tensor("w", {g});
  const std::vector<float> w{3, -4};
  const auto scores = subfed::node_norms<float>(
      net, {subfed::tensor_view<const float>(nullptr, {std::int64_t{2} << 50, 0}),
            subfed::tensor_view<const float>(w.data(), {2})});
  CHECK(scores[g][0] == 3);
  CHECK(scores[g][1] == 4);
}
