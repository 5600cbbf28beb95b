// SPDX-License-Identifier: MIT
#include <subfed/average/robust.hpp>

#include <oracle.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/systems/server_optimizer.hpp>
#include <subfed/systems/server_rules.hpp>
#include <support/average_properties.hpp>
#include <support/executors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::few_holders;
using subfed::half;
using subfed::index_set;
using subfed::robust_cohort;
using subfed::robust_options;
using subfed::robust_report;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

namespace {

/// Of one element held by all.
double robust_of(std::vector<double> values, const robust_options& options, double old = 99) {
  subfed::model net;
  net.tensor("x", {1});
  std::vector<subfed::update<double>> updates;
  for (std::size_t c = 0; c < values.size(); ++c) {
    updates.push_back({submodel(net, {}, {.client = c}),
                       {tensor_view<const double>(&values[c], {1})},
                       1 + static_cast<double>(c)});
  }
  double out = old;
  robust_cohort<double>(net, updates, {tensor_view<double>(&out, {1})}, options);
  return out;
}

/// The dumb loop: lists of values, sorted. Values are small whole numbers, whose sums are exact.
template <class T>
robust_report robust_by_hand(const support::cohort<T>& group, const robust_options& options,
                             std::vector<std::vector<T>>& out,
                             std::vector<std::vector<bool>>& taken) {
  robust_report report;
  out = group.elements();
  for (const auto& tensor : out) taken.emplace_back(tensor.size(), false);
  for (const auto& c : group.clients) report.clients += c.weight > 0 ? 1 : 0;
  for (std::size_t t = 0; t < out.size(); ++t) {
    std::vector<std::vector<double>> lists(out[t].size());
    for (const auto& c : group.clients) {
      if (!(c.weight > 0)) continue;
      const auto numbers = oracle::global_numbers(group.plan, group.plan.tensors[t], c.holds);
      const auto values = c.tensors[t].elements();
      for (std::size_t l = 0; l < numbers.size(); ++l) {
        const auto x = static_cast<double>(oracle::value_of(values[l]));
        if (numbers[l] < 0) continue;
        if (std::isfinite(x)) {
          lists[static_cast<std::size_t>(numbers[l])].push_back(x);
        } else {
          ++report.skipped_elements;
        }
      }
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::vector<double>& list = lists[i];
      const std::size_t h = list.size();
      if (h == 0) {
        ++report.unheld;
        continue;
      }
      const bool few = h < static_cast<std::size_t>(options.least_holders);
      report.few += few ? 1 : 0;
      if (few && options.on_few == few_holders::keep) continue;
      std::sort(list.begin(), list.end());
      std::size_t k = 0;
      while (!few && 2 * (k + 1) < h &&
             static_cast<double>(k + 1) <= options.trim * static_cast<double>(h) + 1e-9) {
        ++k;
      }
      double sum = 0;
      for (std::size_t j = k; j < h - k; ++j) sum += list[j];
      report.trimmed_elements += static_cast<std::int64_t>(2 * k);
      ++report.held;
      taken[t][i] = true;
      double value = sum / static_cast<double>(h - 2 * k);
      if (options.content == subfed::content::deltas) {
        value += static_cast<double>(oracle::value_of(out[t][i]));
      }
      const bool was_finite = options.content != subfed::content::deltas ||
                              std::isfinite(static_cast<double>(oracle::value_of(out[t][i])));
      out[t][i] = subfed::scalar_traits<T>::store(value);
      const bool is_finite = std::isfinite(static_cast<double>(oracle::value_of(out[t][i])));
      report.overflowed += was_finite && !is_finite ? 1 : 0;
    }
  }
  return report;
}

}  // namespace

TEST_CASE("medians and trimmed means that were worked out by hand") {
  CHECK(robust_of({1, 2, 1e9}, {}) == 2);
  CHECK(robust_of({1e9, 4, 2, -7}, {}) == 3);
  CHECK(robust_of({5, 1, 2, 3, 1e9, -1e9, 4, 6, 7, 8}, {.trim = 0.1}) == 36.0 / 8);
  CHECK(robust_of({1, 2, 6}, {.trim = 0}) == 3);
  CHECK(robust_of({1, 3}, {}) == 99);  // of two nobody knows which is right
  CHECK(robust_of({1, 3}, {.on_few = few_holders::mean}) == 2);
  CHECK(robust_of({1, 3}, {.least_holders = 2}) == 2);
  CHECK(robust_of({1, 3}, {.trim = 0.4999999999, .least_holders = 1}) == 2);
  CHECK(robust_of({1, 2, 1e9}, {.content = subfed::content::deltas}, 10) == 12);
  CHECK(robust_of({1, std::nan(""), 2, 3, std::numeric_limits<double>::infinity()}, {}) == 2);
  constexpr double most = (std::numeric_limits<double>::max)();
  CHECK(robust_of({most, most, most, most}, {}) == most);
  CHECK(robust_of({}, {}) == 99);
}

TEST_CASE("results that are too large for the global type are counted") {
  subfed::model net;
  net.tensor("x", {2});
  const auto all = subfed::submodel::full(net);
  const std::vector<float> large{1e6f, 2}, larger{3e6f, 3};
  const auto views = [](const std::vector<float>& v) {
    return subfed::tensor_views<const float>({tensor_view<const float>(v.data(), {2})});
  };
  const std::vector<subfed::update<float>> updates{
      {all, views(large)}, {all, views(large)}, {all, views(larger)}};
  std::vector<half> out{half(1.0f), half(1.0f)};
  const auto average = [&](const robust_options& options) {
    return robust_cohort<half, float>(net, updates, {tensor_view<half>(out.data(), {2})}, options);
  };
  const robust_report counted{.clients = 3, .held = 2, .trimmed_elements = 4, .overflowed = 1};
  CHECK(average({}) == counted);
  CHECK(std::isinf(static_cast<float>(out[0])));
  CHECK(static_cast<float>(out[1]) == 2);
  // An old value that is infinite is no fault of the cohort's.
  CHECK(average({.content = subfed::content::deltas}).overflowed == 0);
  out[0] = half(1.0f);
  CHECK(average({.content = subfed::content::deltas}) == counted);
}

TEST_CASE_TEMPLATE("the median and the trimmed mean equal the dumb loop, for any views", T, float,
                   double, half) {
  static constexpr double trims[] = {0.5, 0.1, 0, 0.3, 0.25};
  for (std::uint64_t n = 0; n < 120; ++n) {
    INFO("number ", n);
    seeded random(n);
    const auto value = [&](seeded& r) {
      return r.one_in(30) ? T(std::numeric_limits<double>::infinity())
                          : support::small_integer<T>(r);
    };
    const support::cohort<T> group{
        random, n % 8 == 0 ? support::large_network(random) : support::random_network(random),
        random.between(1, 9), value, support::dyadic_weight};
    const robust_options options{
        .trim = trims[n % 5],
        .least_holders = random.between(1, 4),
        .on_few = n % 2 == 0 ? few_holders::keep : few_holders::mean,
        .content = n % 3 == 0 ? subfed::content::deltas : subfed::content::parameters};
    std::vector<std::vector<T>> expected;
    std::vector<std::vector<bool>> taken;
    const robust_report report = robust_by_hand(group, options, expected, taken);
    auto updates = group.updates();
    for (int again = 0; again < 3; ++again) {
      support::cohort<T> copy = group;
      const auto views = copy.global_views();
      subfed::held_elements held;
      const robust_report found =
          again == 0   ? robust_cohort<T>(group.net, updates, tensor_views<T>(views), options)
          : again == 1 ? robust_cohort<T>(group.net, updates, tensor_views<T>(views), options,
                                          support::backwards{})
                       : robust_cohort<T>(group.net, updates, tensor_views<T>(views), held, options,
                                          support::backwards{});
      CHECK(found == report);
      if (again == 2) {
        CHECK(held.count() == report.held);
        for (std::size_t t = 0; t < taken.size(); ++t) {
          for (std::size_t i = 0; i < taken[t].size(); ++i) {
            CHECK(held.test(subfed::tensor_id(t), static_cast<std::int64_t>(i)) == taken[t][i]);
          }
        }
      }
      CHECK(copy.rest_untouched());
      for (std::size_t t = 0; t < expected.size(); ++t) {
        const auto after = copy.globals[t].elements();
        for (std::size_t i = 0; i < after.size(); ++i) {
          CHECK(support::same_value(after[i], expected[t][i]));
        }
      }
      random.shuffle(updates);
    }
  }
}

TEST_CASE("values of any bits in any order have one trimmed mean") {
  seeded random(4);
  std::vector<double> values{0.0, -0.0, 0.0, -0.0};
  for (int i = 0; i < 20; ++i) {
    values.push_back(std::ldexp(1 + 0.37 * i, static_cast<int>(random.between(-60, 60))));
  }
  for (const double trim : {0.0, 0.2, 0.5}) {
    const double first = robust_of(values, {.trim = trim});
    for (int again = 0; again < 20; ++again) {
      random.shuffle(values);
      CHECK(support::same_bits(std::vector<double>{robust_of(values, {.trim = trim})},
                               std::vector<double>{first}));
    }
  }
}

TEST_CASE("liars who are fewer than half of a parameter's holders do not move its median") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  net.tensor("steps", {g}, subfed::role::counter);
  net.tensor("own", {g}, subfed::role::local);
  std::vector<float> honest{1, 2, 3}, lies{1e30f, -1e30f, 1e30f}, none{0};
  std::vector<subfed::update<float>> updates;
  for (std::uint64_t c = 0; c < 5; ++c) {
    const auto& x = c < 2 ? lies : honest;
    updates.push_back(
        {submodel(net, {index_set::full(3)}, {.client = c}),
         {tensor_view<const float>(x.data(), {3}), tensor_view<const float>(x.data(), {3}),
          tensor_view<const float>(none.data(), {0})}});
  }
  std::vector<float> w(3), steps(3, 7), own(3, 8);
  const auto report = robust_cohort<float>(
      net, updates,
      {tensor_view<float>(w.data(), {3}), tensor_view<float>(steps.data(), {3}),
       tensor_view<float>(own.data(), {3})});
  CHECK(w == honest);
  CHECK(steps == std::vector<float>(3, 7));
  CHECK(own == std::vector<float>(3, 8));
  CHECK(report == robust_report{.clients = 5, .held = 3, .kept = 6, .trimmed_elements = 12});
}

TEST_CASE("an optimiser does not move what has too few holders, or none with a finite value") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  net.tensor("batches", {}, subfed::role::counter);
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> both{3, infinite}, one{5};
  const float count = 7;
  const tensor_view<const float> batches(&count, {});
  std::vector<subfed::update<float>> updates;
  for (std::uint64_t c = 0; c < 3; ++c) {
    updates.push_back({submodel(net, {index_set(3, {0, 2})}, {.client = c}),
                       {tensor_view<const float>(both.data(), {2}), batches}});
  }
  updates.push_back({submodel(net, {index_set(3, {1})}, {.client = 3}),
                     {tensor_view<const float>(one.data(), {1}), batches}});
  std::vector<float> globals(3, 1.0f);
  float counter = 100;
  const tensor_views<float> all{tensor_view<float>(globals.data(), {3}),
                                tensor_view<float>(&counter, {})};
  subfed::server_optimizer<float, subfed::server_sgd> sgd(net, {.lr = 1, .momentum = 0.5});
  for (double& m : sgd.first_moment(subfed::tensor_id(0))) m = 8;
  sgd.begin(
      {tensor_view<const float>(globals.data(), {3}), tensor_view<const float>(&counter, {})});
  subfed::held_elements held;
  const robust_report report = robust_cohort<float>(net, updates, all, held);
  CHECK(report.few == 1);
  CHECK(report.unheld == 1);
  CHECK(sgd.finish(held, all).moved == 1);
  CHECK(globals[0] != 1);
  CHECK(globals[1] == 1);
  CHECK(globals[2] == 1);
  CHECK(held.count(subfed::tensor_id(1)) == 0);
}

TEST_CASE("what a robust average refuses") {
  support::refusal_setting s;
  const std::vector<subfed::update<float>> updates{s.update({0, 1}, 3), s.update({1}, 4)};
  const auto refused = [&](const robust_options& options) {
    return message_of([&] { robust_cohort<float>(s.net, updates, s.globals(), options); });
  };
  CHECK(refused({.trim = 0.6}) == "subfed: robust_cohort: trim is 0.6, expected 0 to 1/2");
  CHECK(refused({.trim = std::nan("")}).find("trim is NaN") != std::string::npos);
  CHECK(refused({.least_holders = 0}) ==
        "subfed: robust_cohort: least_holders is 0, expected 1 or more");
  auto bad = updates;
  bad[1].weight = -1;
  const auto refusal = [&] {
    return message_of([&] { robust_cohort<float>(s.net, bad, s.globals()); });
  };
  CHECK(refusal().starts_with("subfed: robust_cohort: the weight of client 4 of round "));
  bad[1].weight = 1;
  bad[1].tensors = {tensor_view<const float>(s.global_w.data(), {1, 2}),
                    tensor_view<const float>(s.client_b.data(), {1})};
  CHECK(refusal().starts_with("subfed: robust_cohort: "));
  CHECK(message_of([&] {
          robust_cohort<float>(s.net, updates, {});
        }).starts_with("subfed: robust_cohort: "));
  CHECK(s.untouched());
}
