// SPDX-License-Identifier: MIT
#include <subfed/systems/ordered_dropout.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/slice.hpp>
#include <subfed/systems/nested.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using subfed::capacity;
using subfed::index_set;
using subfed::ordered_dropout;
using subfed::width_distribution;
using subfed::width_for;
using support::message_of;

namespace {

struct golden_width {
  std::uint64_t seed, round, client, step;
  const char* group;
  std::int64_t allowed, number;
};
constexpr golden_width golden[] = {
#include <golden/systems_widths.inc>
};

}  // namespace

TEST_CASE("U_5 for a client of capacity 0.6: 1/5, 2/5 and 3/5, a third each") {
  const auto u5 = width_distribution::uniform(5);
  CHECK(u5.allowed(0.6) == 3);
  CHECK(u5.allowed(0.6f) ==
        3);  // 0.6f is a little more, 0.7f and 0.4f a little less than the width
  CHECK(width_distribution({0.4, 0.7}).allowed(0.7f) == 2);
  CHECK(u5.largest(0.79) == capacity::ratio(3, 5));
  CHECK(u5.probability(2, 0.6) == doctest::Approx(1.0 / 3));
  CHECK(u5.probability(3, 0.6) == 0);
  CHECK(u5.probability(3) == 0.2);
  CHECK(u5.pick(0, 0.6) == 0);
  CHECK(u5.pick(0.34, 0.6) == 1);
  CHECK(u5.pick(0x1.fffffffffffffp-1, 0.6) == 2);
}

TEST_CASE(
    "a number on the border of two widths picks the wider one, as its interval is half-open") {
  const width_distribution given({0.25, 0.5, 1}, {1, 1, 2});
  CHECK(given.pick(0x1.fffffffffffffp-3, 1) == 0);
  CHECK(given.pick(0.25, 1) == 1);
  CHECK(given.pick(0.5, 1) == 2);
  CHECK(given.pick(0.5, 0.5) == 1);
}

TEST_CASE("drawn widths have the probabilities of D_P given p <= p_max, and repeat") {
  const width_distribution given({0.25, 0.5, 1}, {1, 2, 5});
  std::array<int, 3> seen{};
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    const ordered_dropout scheme{given, width_for::submodel, static_cast<std::uint64_t>(i)};
    const subfed::draw_request where{.seed = 3, .round = 2, .client = 1, .group = "g", .extent = 8};
    const double p = scheme.width(where).value();
    CHECK(p == ordered_dropout(scheme).width(where).value());
    ++seen[p == 0.25 ? 0 : p == 0.5 ? 1 : 2];
    subfed::draw_request narrow = where;
    narrow.capacity = 0.5;
    CHECK(scheme.width(narrow).value() <= 0.5);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double expected = given.probability(i) * draws;
    CHECK(std::fabs(seen[i] - expected) < 4 * std::sqrt(expected));
  }
}

TEST_CASE("width 2/5 of a group of 12 is the first 5 nodes, and the least is one") {
  const width_distribution narrow({0.01, 0.4});
  CHECK(ordered_dropout{narrow}({.extent = 12, .capacity = 0.3}) == index_set::prefix(12, 1));
  const width_distribution one({capacity::ratio(2, 5)});
  CHECK(ordered_dropout{one}({.extent = 12}) == index_set::prefix(12, 5));
}

TEST_CASE("one width for all groups of a submodel, or one for each") {
  subfed::model net;
  for (const char* name : {"a", "b", "c"}) net.group(name, 10);
  const auto widths = width_distribution::uniform(10);
  int differ = 0;
  for (std::uint64_t step = 0; step < 30; ++step) {
    for (const auto drawn_for : {width_for::submodel, width_for::group}) {
      const auto sub =
          subfed::draw(net, ordered_dropout{widths, drawn_for, step}, {.seed = 9, .client = 4});
      const bool same = sub[subfed::group_id(0)] == sub[subfed::group_id(1)] &&
                        sub[subfed::group_id(1)] == sub[subfed::group_id(2)];
      if (drawn_for == width_for::submodel) CHECK(same);
      if (drawn_for == width_for::group && !same) ++differ;
    }
  }
  CHECK(differ > 20);
}

TEST_CASE("submodels are nested: a narrower one is part of every wider one, and of the client's") {
  subfed::model net;
  const auto a = net.group("a", 7);
  const auto b = net.group("b", 13);
  net.tensor("w", {a, b});
  const auto widths = width_distribution::uniform(6);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = i; j < 6; ++j) {
      const auto narrow =
          subfed::draw(net, subfed::prefix::ordered(), {.capacity = widths.widths()[i]});
      const auto wide =
          subfed::draw(net, subfed::prefix::ordered(), {.capacity = widths.widths()[j]});
      for (const auto group : {a, b}) {
        for (const std::int64_t node : narrow[group]) CHECK(wide[group].contains(node));
      }
    }
  }
  for (const double p_max : {0.2, 0.5, 0.9, 1.0}) {
    const auto held =
        subfed::draw(net, subfed::prefix::ordered(), {.capacity = widths.largest(p_max)});
    for (std::uint64_t step = 0; step < 40; ++step) {
      const auto part = subfed::draw(net, ordered_dropout{widths, width_for::group, step},
                                     {.seed = 1, .capacity = p_max});
      const auto inside = subfed::within(part, held);  // throws when it is not a part
      CHECK(inside[b] == index_set::prefix(held.extent(b), part.extent(b)));
    }
  }
}

TEST_CASE("FjORD's average of rings is the selective average with prefix sets") {
  // w_{s_i} \ w_{s_{i-1}} is averaged over the clients with p_max >= s_i, by their examples.
  support::seeded random(11);
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t rows = random.between(1, 9), columns = random.between(1, 9);
    subfed::model net;
    const auto r = net.group("r", rows);
    const auto c = net.group("c", columns);
    const auto w = net.tensor("w", {r, c});
    const auto widths = width_distribution::uniform(random.between(1, 5));
    std::vector<double> old(static_cast<std::size_t>(rows * columns));
    for (double& x : old) x = random.unit();

    struct client {
      std::size_t width;  // number of p_max in the widths
      double examples;
      std::vector<double> values;  // in the shape of the whole tensor; used where held
      std::vector<double> own;     // its tensor
    };
    std::vector<client> clients(static_cast<std::size_t>(random.between(1, 5)));
    std::vector<subfed::update<double>> updates;
    for (client& one : clients) {
      one.width = static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(widths.widths().size()) - 1));
      one.examples = static_cast<double>(random.between(1, 50));
      one.values.resize(old.size());
      for (double& x : one.values) x = random.unit();
      const auto sub =
          subfed::draw(net, subfed::prefix::ordered(), {.capacity = widths.widths()[one.width]});
      const subfed::tensor_view<double> all(one.values.data(), {rows, columns});
      one.own.resize(static_cast<std::size_t>(sub.extent(r) * sub.extent(c)));
      const subfed::tensor_view<double> own(one.own.data(), {sub.extent(r), sub.extent(c)});
      subfed::slice(all, sub[w], own);
      updates.push_back({sub, {own}, one.examples});
    }
    std::vector<double> averaged = old;
    subfed::average_cohort<double>(net, updates,
                                   {subfed::tensor_view<double>(averaged.data(), {rows, columns})});

    // The rings: ceil(s K) counted in integers, s_i = i / k.
    const auto k = static_cast<std::int64_t>(widths.widths().size());
    const auto kept = [k](std::size_t i, std::int64_t extent) {
      return ((static_cast<std::int64_t>(i) + 1) * extent + k - 1) / k;
    };
    std::vector<double> rings = old;
    for (std::size_t i = 0; i < widths.widths().size(); ++i) {
      for (std::int64_t x = 0; x < kept(i, rows); ++x) {
        for (std::int64_t y = 0; y < kept(i, columns); ++y) {
          if (i != 0 && x < kept(i - 1, rows) && y < kept(i - 1, columns)) continue;
          const auto at = static_cast<std::size_t>(x * columns + y);
          double sum = 0, examples = 0;
          for (const client& one : clients) {
            if (one.width < i) continue;
            sum += one.examples * one.values[at];
            examples += one.examples;
          }
          if (examples > 0) rings[at] = sum / examples;
        }
      }
    }
    for (std::size_t i = 0; i < old.size(); ++i) {
      CHECK(std::fabs(averaged[i] - rings[i]) <= 1e-15 * std::fabs(rings[i]));
    }
  }
}

TEST_CASE("batch norm statistics are kept per width, and a client has those up to its p_max") {
  subfed::model net;
  const auto c = net.group("conv", 10);
  subfed::linear(net, "fc", {.in = 3, .out = c});
  const auto widths = width_distribution::uniform(4);
  const auto norms = subfed::batch_norm_per_width(net, "bn", c, widths);
  REQUIRE(norms.groups.size() == 4);
  CHECK(net[norms.groups[0]].extent == 3);
  CHECK(net[norms.groups[2]].extent == 8);
  CHECK(net.find_tensor("bn.width2.running_var").number() == norms.norms[1].running_var->number());
  CHECK_FALSE(norms.norms[0].weight.has_value());

  const auto drawn = subfed::draw(net, subfed::prefix::ordered(), {.capacity = 0.5});
  const auto held = subfed::with_widths_up_to(drawn, norms, widths, 0.5);
  CHECK(held.extents(*norms.norms[0].running_mean) == std::vector<std::int64_t>{3});
  CHECK(held.extents(*norms.norms[1].running_mean) == std::vector<std::int64_t>{5});
  CHECK(held.extents(*norms.norms[2].running_mean) == std::vector<std::int64_t>{0});
  CHECK(held.extents(*norms.norms[3].running_mean) == std::vector<std::int64_t>{0});
  CHECK(held.extent(c) == 5);
}

TEST_CASE("distributions and clients without a width are refused") {
  CHECK(message_of([] { width_distribution::uniform(0); }) ==
        "subfed: width_distribution: 0 widths, expected at least 1");
  CHECK(message_of([] { width_distribution({}); }) ==
        "subfed: width_distribution: no width is given");
  CHECK(message_of([] {
          width_distribution({0.5, 0.5});
        }) == "subfed: width_distribution: the widths must ascend, but 0.5 follows 0.5");
  CHECK(message_of([] {
          width_distribution({0.5, 1}, {1});
        }) == "subfed: width_distribution: 1 weights are given for 2 widths");
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    CHECK(message_of([&] {
            width_distribution({0.5}, {bad});
          }).find("is not positive and finite") != std::string::npos);
  }
  CHECK(message_of([] { width_distribution::uniform(5).largest(0.1); }) ==
        "subfed: width_distribution: a client of capacity 0.1 can hold none of the widths, the "
        "smallest is 0.2");
}

TEST_CASE("drawn widths are the golden ones") {
  const auto eight = width_distribution::uniform(8);
  for (const golden_width& row : golden) {
    const auto own = *row.group == '\0' ? width_for::submodel : width_for::group;
    const subfed::draw_request where{.seed = row.seed,
                                     .round = row.round,
                                     .client = row.client,
                                     .group = *row.group == '\0' ? "any" : row.group,
                                     .extent = 8,
                                     .capacity = capacity::ratio(row.allowed, 8)};
    CHECK(ordered_dropout{eight, own, row.step}.width(where) == capacity::ratio(row.number + 1, 8));
  }
}

TEST_CASE("widths with weights of any size are picked by their shares") {
  for (const double unit : {0x1p-1074, 0x1p-1000, 1.0, 0x1p1020}) {
    const width_distribution widths({1.0 / 4, 1.0 / 2, 1.0}, {unit, 2 * unit, unit});
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t expected = i < 16 ? 0 : i < 48 ? 1 : 2;
      CHECK(widths.pick(static_cast<double>(i) / 64, 1.0) == expected);
      CHECK(widths.pick(static_cast<double>(i) / 64, 0.5) == (3 * i < 64 ? 0 : 1));
    }
  }
}
