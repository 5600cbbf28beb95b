// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/average/by_element.hpp>

#include <subfed/draw.hpp>
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
using support::message_of;

TEST_CASE("held is what finish writes: not what has the weight 0 everywhere") {
  subfed::model net;
  const auto g = net.group("g", 3);
  const auto w = net.tensor("w", {g});
  const auto own = net.tensor("own", {g}, subfed::role::local);
  const submodel sub(net, {index_set(3, {0, 2})});
  element_weighted_average<double> mean(net);
  CHECK(mean.held().count() == 0);
  const std::vector<double> values{3, 5}, weights{0, 1};
  const tensor_view<const double> given(values.data(), {2}), by(weights.data(), {2});
  mean.add(sub, {given, given}, {by, by});
  const subfed::held_elements held = mean.held();
  CHECK_FALSE(held.test(w, 0));
  CHECK_FALSE(held.test(w, 1));
  CHECK(held.test(w, 2));
  CHECK(held.count(own) == 0);
}

TEST_CASE("weights of any size give the mean of finite values") {
  struct given {
    double w[2];
    double x[2];
    double mean;
  };
  for (const given& of :
       {given{{1e308, 1e308}, {3, 3}, 3}, given{{1e308, 5e307}, {2, 4}, 8.0 / 3},
        given{{1e-310, 1e-310}, {0.25, 0.75}, 0.5}, given{{1, 1}, {1.7e308, 1.7e308}, 1.7e308},
        given{{1e-100, 1e-100}, {1e-300, 3e-300}, 2e-300}}) {
    subfed::model net;
    net.tensor("x", {1});
    const auto full = submodel::full(net);
    element_weighted_average<double> mean(net);
    for (int c = 0; c < 2; ++c) {
      mean.add(full, {tensor_view<const double>(&of.x[c], {1})},
               {tensor_view<const double>(&of.w[c], {1})});
    }
    double global = 9;
    mean.finish({tensor_view<double>(&global, {1})});
    CHECK(global == of.mean);
  }
}

TEST_CASE("weights that are too far apart are refused with client, tensor and element") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  element_weighted_average<double> mean(net);
  const std::vector<double> ones{1, 1}, large{1e200, 1e200}, small{1, 1e-320}, tiny{1, 1e-300};
  mean.add(full, {tensor_view<const double>(large.data(), {2})},
           {tensor_view<const double>(large.data(), {2})});
  CHECK(message_of([&] {
          mean.add(full, {tensor_view<const double>(tiny.data(), {2})},
                   {tensor_view<const double>(small.data(), {2})});
        }) ==
        "subfed: element_weighted_average: client 0 of round 0 has 1e-300 with weight "
        "9.99988867e-321 in tensor 'x', at global element (1,), too far from the other products to "
        "be added to them");
  std::array<double, 2> global{5, 6};
  CHECK(mean.finish({tensor_view<double>(global.data(), {2})}).clients == 1);
  CHECK(global == std::array<double, 2>{1e200, 1e200});
}

TEST_CASE("shapes that do not fit are refused by name") {
  subfed::model net;
  net.tensor("x", {2});
  element_weighted_average<double> mean(net);
  CHECK(message_of([&] {
          mean.add(submodel::full(net), {}, {});
        }).starts_with("subfed: element_weighted_average: "));
  CHECK(message_of([&] { mean.finish({}); }).starts_with("subfed: element_weighted_average: "));
}

TEST_CASE("an element of weight 0 does not take part, whatever it is") {
  subfed::model net;
  net.tensor("x", {3});
  const auto full = submodel::full(net);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x{nan, inf, 3}, w{0, 0, 2}, y{4, 5, 6}, v{1, 0, 0};
  element_weighted_average<double> mean(net);
  mean.add(full, {tensor_view<const double>(x.data(), {3})},
           {tensor_view<const double>(w.data(), {3})});
  mean.add(full, {tensor_view<const double>(y.data(), {3})},
           {tensor_view<const double>(v.data(), {3})});
  std::array<double, 3> global{7, 8, 9};
  const auto report = mean.finish({tensor_view<double>(global.data(), {3})});
  CHECK(global == std::array<double, 3>{4, 8, 3});
  CHECK(report.held == 2);
  CHECK(report.unheld == 1);
}

TEST_CASE("global tensors that overlap are refused, with nothing written") {
  subfed::model net;
  net.tensor("x", {2});
  net.tensor("y", {2});
  const auto full = submodel::full(net);
  const std::vector<double> ones{1, 1};
  const tensor_view<const double> view(ones.data(), {2});
  element_weighted_average<double> mean(net);
  mean.add(full, {view, view}, {view, view});
  std::array<double, 3> global{7, 8, 9};
  CHECK(message_of([&] {
          mean.finish({tensor_view<double>(global.data(), {2}),
                       tensor_view<double>(global.data() + 1, {2})});
        }).find("overlap in memory") != std::string::npos);
  CHECK(global == std::array<double, 3>{7, 8, 9});
}

TEST_CASE("minus zero of a single holder stays") {
  subfed::model net;
  net.tensor("x", {1});
  const float x = -0.0f;
  const double w = 3;
  element_weighted_average<float> mean(net);
  mean.add(submodel::full(net), {tensor_view<const float>(&x, {1})},
           {tensor_view<const double>(&w, {1})});
  float global = 1;
  mean.finish({tensor_view<float>(&global, {1})});
  CHECK(std::signbit(global));
}

TEST_CASE("of a tensor that stays with its client neither values, weights nor shapes matter") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  net.tensor("own", {g}, subfed::role::local);
  const submodel sub(net, {index_set(3, {0, 2})});
  const std::vector<float> values{3, 5};
  const std::vector<double> ones{1, 1}, bad{std::nan(""), -1};
  const tensor_view<const float> given(values.data(), {2});
  const tensor_view<const double> by(ones.data(), {2});
  for (const auto& own_weights :
       {tensor_view<const double>(bad.data(), {2}), tensor_view<const double>(nullptr, {0}),
        tensor_view<const double>(reinterpret_cast<const double*>(std::uintptr_t{16}), {2})}) {
    element_weighted_average<float> mean(net);
    mean.add(
        sub,
        {given, tensor_view<const float>(reinterpret_cast<const float*>(std::uintptr_t{16}), {2})},
        {by, own_weights});
    std::array<float, 3> w{7, 8, 9}, own{1, 2, 3};
    const auto report =
        mean.finish({tensor_view<float>(w.data(), {3}), tensor_view<float>(own.data(), {3})});
    CHECK(w == std::array<float, 3>{3, 8, 5});
    CHECK(own == std::array<float, 3>{1, 2, 3});
    CHECK(report.kept == 3);
  }
}

TEST_CASE("counters are not averaged: they keep their bits, and nobody holds them") {
  subfed::model net;
  net.tensor("w", {2});
  const auto batches = net.tensor("batches", {}, subfed::role::counter);
  const auto full = submodel::full(net);
  const std::vector<float> values{3, 5};
  const std::vector<double> ones{1, 1};
  const float found = 9;
  element_weighted_average<float> mean(net);
  mean.add(
      full, {tensor_view<const float>(values.data(), {2}), tensor_view<const float>(&found, {})},
      {tensor_view<const double>(ones.data(), {2}), tensor_view<const double>(ones.data(), {})});
  std::array<float, 2> w{7, 8};
  float counter = 100;
  const auto report =
      mean.finish({tensor_view<float>(w.data(), {2}), tensor_view<float>(&counter, {})});
  CHECK(w == std::array<float, 2>{3, 5});
  CHECK(counter == 100);
  CHECK(report.held == 2);
  CHECK(report.kept == 1);
  CHECK(mean.held().count(batches) == 0);
}
