// SPDX-License-Identifier: MIT
#include <subfed/schemes/top_k.hpp>

#include <subfed/draw.hpp>
#include <subfed/messages/submodel_bytes.hpp>
#include <subfed/tensors.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

using subfed::index_set;
using subfed::node_scores;
using subfed::top_k;
using support::message_of;

TEST_CASE("the nodes with the largest scores, ascending; of equal ones the smaller") {
  subfed::model net;
  const auto g = net.group("g", 6);
  node_scores scores(net);
  const double values[] = {2, 7, 2, -1, 7, 2};
  std::copy(std::begin(values), std::end(values), scores[g].begin());
  const top_k largest(scores);
  const auto kept = [&](double capacity) {
    return largest({.group = "g", .extent = 6, .capacity = capacity});
  };
  CHECK(kept(0.34) == index_set(6, {1, 4}));
  CHECK(kept(0.5) == index_set(6, {0, 1, 4}));
  CHECK(kept(0.7) == index_set(6, {0, 1, 2, 4}));
  CHECK(kept(1) == index_set::full(6));
  CHECK(kept(0.01) == index_set(6, {1}));
  CHECK(
      top_k(scores, subfed::rounding::ceil)({.group = "g", .extent = 6, .capacity = 0.34}).size() ==
      3);
  CHECK(top_k(scores, subfed::rounding::floor, 0)({.group = "g", .extent = 6, .capacity = 0.1})
            .empty());
}

TEST_CASE("smaller sets of the same scores are subsets of larger ones") {
  subfed::model net;
  const auto g = net.group("g", 50);
  support::seeded random(3);
  for (int i = 0; i < 30; ++i) {
    node_scores scores(net);
    for (double& s : scores[g]) s = static_cast<double>(random.between(0, 20));
    const top_k largest(scores);
    index_set before = index_set(50, {});
    for (std::int64_t kept = 1; kept <= 50; ++kept) {
      const auto now =
          largest({.group = "g", .extent = 50, .capacity = subfed::capacity::ratio(kept, 50)});
      CHECK(now.size() == kept);
      CHECK(now.is_ascending());
      CHECK(std::all_of(before.begin(), before.end(), [&](auto n) { return now.contains(n); }));
      double least = 100, most = -1;
      for (std::int64_t n = 0; n < 50; ++n) {
        const double s = scores[g][static_cast<std::size_t>(n)];
        if (now.contains(n)) {
          least = (std::min)(least, s);
        } else {
          most = (std::max)(most, s);
        }
      }
      CHECK(least >= most);
      before = now;
    }
  }
}

TEST_CASE("the largest nodes of a network, in five lines, and to a client that has no scores") {
  subfed::model net;
  const auto h = net.group("h", 4);
  const auto w = net.tensor("w", {h, 2});
  subfed::tensors<float> globals(net);
  globals[w](2, 0) = 3;
  globals[w](1, 1) = -4;
  const top_k largest(subfed::node_norms<float>(net, globals));
  const auto sub = draw(net, largest, {.capacity = 0.5});
  CHECK(sub[h] == index_set(4, {1, 2}));
  CHECK(read_sets(net, write_sets(sub)).same_nodes(sub));
}

TEST_CASE("scores of another model, and NaN, are refused") {
  subfed::model net;
  const auto g = net.group("g", 3);
  node_scores scores(net);
  const top_k largest(scores);
  CHECK(message_of([&] { static_cast<void>(largest({.group = "x", .extent = 3})); }) ==
        "subfed: model: there is no group 'x'");
  CHECK(message_of([&] { static_cast<void>(largest({.group = "g", .extent = 4})); }) ==
        "subfed: top_k: group 'g' has 4 nodes, but there are scores of 3");
  scores[g][2] = std::numeric_limits<double>::quiet_NaN();
  CHECK(message_of([&] { static_cast<void>(top_k(scores)); }) ==
        "subfed: top_k: a score of group 'g' is NaN");
}
