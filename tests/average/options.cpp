// SPDX-License-Identifier: MIT
#include <subfed/average/options.hpp>

#include <oracle.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <support/average_properties.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

using subfed::average_options;
using subfed::average_report;
using subfed::content;
using subfed::divisor;
using subfed::non_finite;
using subfed::tensor_view;
using support::message_of;

namespace {

/// One element, old value 10, held by clients with values 4 and 8 of weights 1 and 3; a third
/// client of weight 4 does not hold it.
double combined(const average_options& options) {
  subfed::model net;
  const auto g = net.group("g", 1);
  net.tensor("x", {g});
  const double a = 4;
  const double b = 8;
  const subfed::submodel holds(net, {subfed::index_set::full(1)});
  const subfed::submodel lacks(net, {subfed::index_set(1, {})});
  const std::vector<subfed::update<double>> updates{
      {holds, {subfed::tensor_view<const double>(&a, {1})}, 1},
      {holds, {subfed::tensor_view<const double>(&b, {1})}, 3},
      {lacks, {subfed::tensor_view<const double>(nullptr, {0})}, 4}};
  double one_pass = 10;
  double streamed = 10;
  const std::vector<subfed::tensor_view<double>> first{{&one_pass, {1}}};
  const std::vector<subfed::tensor_view<double>> second{{&streamed, {1}}};
  support::check_report(support::at_once(net, updates, first, options),
                        support::streamed(net, updates, second, options));
  CHECK(one_pass == streamed);
  return one_pass;
}

}  // namespace

TEST_CASE("the defaults are the selective average of parameters, with everything let through") {
  const average_options options;
  CHECK(options.divide_by == divisor::holders);
  CHECK(options.content == content::parameters);
  CHECK(options.step == 1);
  CHECK(options.on_non_finite == non_finite::propagate);
  CHECK_FALSE(options.round.has_value());
  CHECK(average_report{} == average_report{.clients = 0, .held = 0, .unheld = 0});
}

TEST_CASE("divisor, content and step: eight formulas by hand") {
  using enum divisor;
  using enum content;
  // Sum of w x: 1 4 + 3 8 = 28. Weight of the holders 4, of the cohort 8.
  CHECK(combined({.divide_by = holders, .content = parameters}) == 7);   // 28 / 4
  CHECK(combined({.divide_by = cohort, .content = parameters}) == 8.5);  // (28 + 4 10) / 8
  CHECK(combined({.divide_by = holders, .content = deltas}) == 17);      // 10 + 28 / 4
  CHECK(combined({.divide_by = cohort, .content = deltas}) == 13.5);     // 10 + 28 / 8
  CHECK(combined({.divide_by = holders, .content = parameters, .step = 0.5}) == 8.5);
  CHECK(combined({.divide_by = cohort, .content = parameters, .step = 0.5}) == 9.25);
  CHECK(combined({.divide_by = holders, .content = deltas, .step = 2}) == 24);
  CHECK(combined({.divide_by = cohort, .content = deltas, .step = 2}) == 17);
}

TEST_CASE("a step above 1 goes beyond the average, a negative one away from it") {
  CHECK(combined({.step = 2}) == 4);
  CHECK(combined({.step = -1}) == 13);
  CHECK(combined({.step = 0}) == 10);
}

TEST_CASE("a cohort of one that holds everything: both divisors are the client's own values") {
  subfed::model net;
  net.tensor("x", {3});
  const std::vector<float> values{0.1f, -2.5f, 3e-30f};
  for (const auto divide_by : {divisor::holders, divisor::cohort}) {
    std::vector<float> global{7, 7, 7};
    const std::vector<subfed::update<float>> updates{
        {subfed::submodel::full(net), {subfed::tensor_view<const float>(values.data(), {3})}, 3}};
    subfed::average_cohort<float>(net, updates, {subfed::tensor_view<float>(global.data(), {3})},
                                  {.divide_by = divide_by});
    CHECK(support::same_bits(global, values));
  }
}

TEST_CASE("clients of weight 0 do not enlarge the cohort's divisor") {
  subfed::model net;
  net.tensor("x", {1});
  const double value = 6;
  double global = 2;
  const auto full = subfed::submodel::full(net);
  const subfed::tensor_view<const double> view(&value, {1});
  const std::vector<subfed::update<double>> updates{{full, {view}, 2}, {full, {view}, 0}};
  subfed::average_cohort<double>(net, updates, {subfed::tensor_view<double>(&global, {1})},
                                 {.divide_by = divisor::cohort});
  CHECK(global == 6);
}

TEST_CASE("an element left out of a client's update counts as one that the client left as it was") {
  subfed::model net;
  net.tensor("x", {2});
  const std::vector<double> a{6, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<double> b{8, 4};
  const auto full = subfed::submodel::full(net);
  const std::vector<subfed::update<double>> updates{
      {full, {subfed::tensor_view<const double>(a.data(), {2})}, 1},
      {full, {subfed::tensor_view<const double>(b.data(), {2})}, 1}};
  const average_options options{.divide_by = divisor::cohort,
                                .on_non_finite = non_finite::skip_element};
  std::vector<double> one_pass{2, 2};
  std::vector<double> streamed{2, 2};
  const std::vector<subfed::tensor_view<double>> first{{one_pass.data(), {2}}};
  const std::vector<subfed::tensor_view<double>> second{{streamed.data(), {2}}};
  support::at_once(net, updates, first, options);
  support::streamed(net, updates, second, options);
  CHECK(one_pass == std::vector<double>{7, 3});
  CHECK(streamed == one_pass);
}

TEST_CASE("a skipped client is not part of the cohort") {
  subfed::model net;
  net.tensor("x", {1});
  const double bad = std::numeric_limits<double>::infinity();
  const double good = 6;
  const auto full = subfed::submodel::full(net);
  const std::vector<subfed::update<double>> updates{
      {full, {subfed::tensor_view<const double>(&bad, {1})}, 5},
      {full, {subfed::tensor_view<const double>(&good, {1})}, 1}};
  const average_options options{.divide_by = divisor::cohort,
                                .on_non_finite = non_finite::skip_client};
  double one_pass = 2;
  double streamed = 2;
  const std::vector<subfed::tensor_view<double>> first{{&one_pass, {1}}};
  const std::vector<subfed::tensor_view<double>> second{{&streamed, {1}}};
  support::at_once(net, updates, first, options);
  support::streamed(net, updates, second, options);
  CHECK(one_pass == 6);
  CHECK(streamed == 6);
}

TEST_CASE("the smallest and the largest weights are weights") {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = subfed::submodel::full(net);
  const double value = 3;
  for (const double weight : {std::numeric_limits<double>::denorm_min(), 1e-300, 1e300}) {
    double global = 1;
    const std::vector<subfed::update<double>> updates{
        {full, {subfed::tensor_view<const double>(&value, {1})}, weight}};
    subfed::average_cohort<double>(net, updates, {subfed::tensor_view<double>(&global, {1})});
    CHECK(global == 3);
  }
}

TEST_CASE("weights that add up to infinity are refused, by both forms and by merge") {
  const std::string expected =
      "subfed: average: the weights of the cohort add up to more than a double can hold";
  subfed::model net;
  net.tensor("x", {1});
  const auto full = subfed::submodel::full(net);
  const double value = 3;
  const subfed::tensor_view<const double> view(&value, {1});
  double global = 1;
  const subfed::tensor_view<double> out(&global, {1});
  const std::vector<subfed::update<double>> updates{{full, {view}, 1e308}, {full, {view}, 1e308}};
  CHECK(message_of([&] { subfed::average_cohort<double>(net, updates, {out}); }) == expected);
  CHECK(global == 1);
  subfed::selective_average<double> mean(net);
  mean.add(full, {view}, 0x1p1000);
  CHECK(message_of([&] {
          mean.add(full, {view}, 0x1.fp1023);
          mean.add(full, {view}, 0x1.fp1023);
        }) == expected);
  subfed::selective_average<double> heavy(net);
  heavy.add(full, {view}, 1e308);
  CHECK(message_of([&] { heavy.merge(heavy); }) == expected);
  CHECK(heavy.report().clients == 1);
  subfed::selective_average<double> light(net);
  light.add(full, {view}, 1e300);
  light.finish({out});
  CHECK(global == 3);
}

TEST_CASE("steps that are no finite number are refused") {
  for (const double step :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    CHECK(message_of([&] { combined({.step = step}); }) ==
          "subfed: average: the step is not finite");
  }
}

TEST_CASE_TEMPLATE("an old value that is no number goes where all of the cohort hold it", T, float,
                   double, subfed::half) {
  subfed::model net;
  net.tensor("x", {net.group("g", 2)});
  const subfed::submodel both(net, {subfed::index_set::full(2)});
  const subfed::submodel first(net, {subfed::index_set::prefix(2, 1)});
  const T a[] = {T(4.f), T(2.f)};
  const T b[] = {T(8.f)};
  const std::vector<subfed::update<T>> updates{{both, {tensor_view<const T>(a, {2})}, 1},
                                               {first, {tensor_view<const T>(b, {1})}, 3}};
  const average_options options{.divide_by = divisor::cohort};
  using views = subfed::tensor_views<T>;
  const auto check = [](auto&& form) {
    for (const float old :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      T found[] = {T(old), T(old)};
      form(views{tensor_view<T>(found, {2})});
      CHECK(oracle::value_of(found[0]) == 7);
      // The client that lacks the second element stands for its old value.
      CHECK_FALSE(std::isfinite(oracle::value_of(found[1])));
    }
  };
  check([&](const views& to) { subfed::average_cohort<T>(net, updates, to, options); });
  check([&](const views& to) {
    subfed::selective_average<T> mean(net, options);
    for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
    mean.finish(to);
  });
  check([&](const views& to) {
    subfed::selective_average<T> mean(net, options), other(net, options);
    mean.add(updates[0].sub, updates[0].tensors, updates[0].weight);
    other.add(updates[1].sub, updates[1].tensors, updates[1].weight);
    mean.merge(other);
    mean.finish(to);
  });
  check([&](const views& to) {
    std::vector<subfed::update<void>> any;
    for (const auto& u : updates) {
      any.push_back({u.sub, {tensor_view<const void>(u.tensors[0])}, u.weight});
    }
    subfed::average_cohort<void>(net, any, {tensor_view<void>(to[0])}, options);
  });
}

TEST_CASE_TEMPLATE("weights that are added in another order make no client absent", T, float,
                   double, subfed::half) {
  constexpr std::int64_t size = 1000;  // so that streaming has one weight for each set
  subfed::model net;
  net.tensor("x", {net.group("g", size)});
  const subfed::submodel both(net, {subfed::index_set::full(size)});
  const subfed::submodel first(net, {subfed::index_set::prefix(size, size / 2)});
  const std::vector<T> a(size, T(4.f)), b(size / 2, T(8.f));
  // A streaming average adds the weights of equal sets first.
  REQUIRE(0.1 + 0.1 + 0.4 > 0.1 + 0.4 + 0.1);
  const std::vector<subfed::update<T>> updates{
      {both, {tensor_view<const T>(a.data(), {size})}, 0.1},
      {first, {tensor_view<const T>(b.data(), {size / 2})}, 0.1},
      {both, {tensor_view<const T>(a.data(), {size})}, 0.4}};
  using views = subfed::tensor_views<T>;
  for (const double step : {1., 0.5}) {
    const average_options options{.divide_by = divisor::cohort, .step = step};
    const auto check = [&](auto&& form) {
      for (const float old :
           {3.f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<T> found(size, T(old));
        form(views{tensor_view<T>(found.data(), {size})});
        if (step == 1)
          CHECK(oracle::value_of(found[0]) == doctest::Approx(2.8 / 0.6).epsilon(1e-3));
        CHECK(std::isfinite(oracle::value_of(found.back())) == std::isfinite(old));
      }
    };
    check([&](const views& to) { subfed::average_cohort<T>(net, updates, to, options); });
    check([&](const views& to) {
      subfed::selective_average<T> mean(net, options);
      for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
      CHECK_FALSE(mean.has_dense_weights());
      mean.finish(to);
    });
    check([&](const views& to) {
      subfed::selective_average<T> mean(net, options);
      mean.add(updates);
      mean.finish(to);
    });
    check([&](const views& to) {
      subfed::selective_average<T> mean(net, options), other(net, options);
      mean.add(updates[0].sub, updates[0].tensors, updates[0].weight);
      mean.add(updates[2].sub, updates[2].tensors, updates[2].weight);
      other.add(updates[1].sub, updates[1].tensors, updates[1].weight);
      other.merge(mean);
      other.finish(to);
    });
  }
}

TEST_CASE("such an old value hides no result that is too large for its type") {
  subfed::model net;
  net.tensor("x", {net.group("g", 1)});
  const subfed::submodel all = subfed::submodel::full(net);
  // The sum leaves the range of double, the mean does not; half has neither.
  const double large = 1.5e308;
  const subfed::update<double> one{all, {tensor_view<const double>(&large, {1})}, 1};
  const std::vector<subfed::update<double>> updates{one, one};
  for (const float old : {1.f, std::numeric_limits<float>::infinity()}) {
    subfed::half found(old);
    const auto report = subfed::average_cohort<subfed::half, double>(
        net, std::span(updates), {tensor_view<subfed::half>(&found, {1})},
        {.divide_by = divisor::cohort});
    CHECK(std::isinf(oracle::value_of(found)));
    CHECK(report.overflowed == 1);
  }
}
