// SPDX-License-Identifier: MIT
#include <subfed/average/fixed_point.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/draw.hpp>
#include <subfed/executor.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <support/average_properties.hpp>
#include <support/executors.hpp>
#include <support/instructions.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::average_options;
using subfed::average_report;
using subfed::bfloat16;
using subfed::fixed_point;
using subfed::half;
using subfed::index_set;
using subfed::non_finite;
using subfed::out_of_bound;
using subfed::selective_average;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

namespace {

constexpr fixed_point small_numbers{.bound = 16, .clients = 32, .total_weight = 64};

/// A number of a size that varies, with all the bits of its type.
template <class T>
T uneven_value(seeded& random) {
  const auto exponent = static_cast<int>(random.between(-30, 1));
  return T(std::ldexp(static_cast<double>(random.between(-1000003, 1000003)) / 1000003, exponent));
}
double uneven_weight(seeded& random) {
  return random.one_in(6) ? 0 : static_cast<double>(random.between(1, 999)) / 500;
}

template <class T>
void add_all(selective_average<T>& mean, const std::vector<subfed::update<T>>& updates,
             std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    mean.add(updates[i].sub, updates[i].tensors, updates[i].weight);
  }
}

/// The average of updates begin .. end-1, from a tree of merges drawn at random.
template <class T>
selective_average<T> tree(seeded& random, const support::cohort<T>& group,
                          const std::vector<subfed::update<T>>& updates, std::size_t begin,
                          std::size_t end, const average_options& options) {
  selective_average<T> out(group.net, options);
  if (end - begin < 3) {
    add_all(out, updates, begin, end);
    return out;
  }
  const auto middle = static_cast<std::size_t>(
      random.between(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)));
  if (middle == begin || middle == end) {
    add_all(out, updates, begin, end);
    return out;
  }
  out = tree(random, group, updates, middle, end, options);
  out.merge(tree(random, group, updates, begin, middle, options));
  return out;
}

/// One element of a double, held by all.
double mean_of(const std::vector<double>& values, const std::vector<double>& weights,
               const fixed_point& sums) {
  subfed::model net;
  net.tensor("x", {1});
  selective_average<double> mean(net, {.sums = sums});
  for (std::size_t i = 0; i < values.size(); ++i) {
    mean.add(submodel(net, {}), {tensor_view<const double>(&values[i], {1})}, weights[i]);
  }
  double out = 99;
  mean.finish({tensor_view<double>(&out, {1})});
  return out;
}

}  // namespace

TEST_CASE("the quanta follow from the declaration, as worked out by hand") {
  constexpr fixed_point hundred{.bound = 4, .clients = 100};
  static_assert(hundred.total() == 100);
  static_assert(hundred.exponent() == 2 + 7 - 56);
  static_assert(hundred.quantum() == 0x1p-47);
  static_assert(hundred.weight_quantum() == 0x1p-45);
  static_assert(hundred.error_bound(3, 2) == 3 * 0x1p-49 + 0x1p-49);
  static_assert(fixed_point{}.exponent() == -50);
  static_assert(fixed_point{.bound = 5}.exponent() == 3 - 50);
  static_assert(fixed_point{.clients = 4096, .total_weight = 0.75}.exponent() == -62);
  static_assert(fixed_point{.clients = 1 << 20}.exponent() == 20 - 62);
  CHECK(hundred == fixed_point{.bound = 4, .clients = 100});
}

TEST_CASE_TEMPLATE("fixed-point sums equal the dense loop, in one pass and streaming", T, float,
                   double, half, bfloat16) {
  for (std::uint64_t n = 0; n < 60; ++n) {
    average_options options = support::options_number(n);
    options.sums = small_numbers;
    support::check_against_oracle<T>(5000 + n, options, support::streamed<T>);
    support::check_against_oracle<T>(6000 + n, options, support::at_once<T>);
  }
  for (std::uint64_t n = 0; n < 8; ++n) {
    average_options options;
    options.sums = small_numbers;
    if (n == 7) options.on_non_finite = non_finite::skip_element;
    support::check_against_oracle<T>(7000 + n, options, support::streamed<T>,
                                     {support::large_network, 13});
    support::check_against_oracle<T>(7100 + n, options, support::at_once<T>,
                                     {support::large_network, 13});
  }
}

TEST_CASE_TEMPLATE("one cohort in a hundred orders, trees and executors has one average", T, float,
                   double, half, bfloat16) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    average_options options = support::options_number(seed);
    options.sums = fixed_point{.bound = 2, .clients = 24};
    options.sums->total_weight = 48;
    const support::cohort<T> group{
        random, seed % 2 == 0 ? support::random_network(random) : support::large_network(random),
        24, uneven_value<T>, uneven_weight};
    support::cohort<T> first = group;
    const average_report expected =
        support::at_once(group.net, group.updates(), first.global_views(), options);
    auto updates = group.updates();
    const int orders = std::is_same_v<T, float> && seed < 2 ? 100 : 12;
    for (int again = 0; again < orders; ++again) {
      random.shuffle(updates);
      support::cohort<T> copy = group;
      const auto views = copy.global_views();
      average_report found;
      if (again % 4 == 0) {
        found = subfed::average_cohort<T>(group.net, updates, tensor_views<T>(views), options,
                                          support::backwards{});
      } else if (again % 4 == 1) {
        found = support::streamed(group.net, updates, views, options);
      } else {
        auto mean = tree(random, group, updates, 0, updates.size(), options);
        found = again % 4 == 2 ? mean.finish(tensor_views<T>(views))
                               : mean.finish(tensor_views<T>(views), support::three_threads{});
      }
      support::check_report(found, expected);
      CHECK(copy.rest_untouched());
      for (std::size_t t = 0; t < copy.globals.size(); ++t) {
        CHECK(support::same_bits(copy.globals[t].elements(), first.globals[t].elements()));
      }
    }
  }
}

TEST_CASE("an average is within its bound of the exact one") {
  // Values are whole multiples of 2^-60 and weights whole, so exact sums fit in two integers.
  seeded random(5);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t n = random.between(1, 40);
    fixed_point sums{.bound = 4, .clients = n};
    std::vector<double> values, weights;
    std::int64_t high = 0, low = 0, total = 0;
    double most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t whole =
          random.between(-(std::int64_t{1} << 61), std::int64_t{1} << 61) >> random.between(0, 40);
      const double x = static_cast<double>(whole);
      values.push_back(x * 0x1p-60);
      const std::int64_t w = random.between(1, 9);
      weights.push_back(static_cast<double>(w));
      const auto exact = static_cast<std::int64_t>(x);
      high += w * (exact >> 32);
      low += w * (exact & 0xFFFFFFFF);
      total += w;
      most = (std::max)(most, std::fabs(values.back()));
    }
    sums.total_weight = static_cast<double>(total + random.between(0, 100));
    const long double exact =
        (static_cast<long double>(high) * 0x1p32L + static_cast<long double>(low)) /
        static_cast<long double>(total) * 0x1p-60L;
    const double found = mean_of(values, weights, sums);
    const double bound =
        sums.error_bound(n, static_cast<double>(total)) + std::fabs(found) * 0x1p-53;
    CHECK(std::fabs(static_cast<double>(static_cast<long double>(found) - exact)) <= bound);
  }
}

TEST_CASE("sums whose bits depend on the order in double have one value") {
  std::vector<double> values{1, 0x1p-53, 0x1p-53};
  std::sort(values.begin(), values.end());
  do {
    // Terms of 2^-53 are a quarter of the quantum, 2^-51 and more.
    CHECK(mean_of(values, {1, 1, 1}, {.bound = 1, .clients = 3}) == 1.0 / 3);
  } while (std::next_permutation(values.begin(), values.end()));
  values = {-1e16, 1, 1e16};
  do {
    CHECK(std::bit_cast<std::uint64_t>(mean_of(values, {1, 1, 1}, {.bound = 1e16, .clients = 3})) ==
          0);
  } while (std::next_permutation(values.begin(), values.end()));
  CHECK(mean_of({-0.0}, {1}, {}) == 0);
  CHECK_FALSE(std::signbit(mean_of({-0.0}, {1}, {})));
}

TEST_CASE("weights that add up to one, each rounded") {
  const fixed_point sums{.bound = 1, .clients = 10, .total_weight = 1};
  const double found = mean_of(std::vector<double>(10, 0.375), std::vector<double>(10, 0.1), sums);
  CHECK(std::fabs(found - 0.375) <= sums.error_bound(10, 1));
  CHECK(mean_of({1, 0.25}, {1e6, 1}, {.bound = 1, .clients = 2, .total_weight = 2e6}) ==
        1000000.25 / 1000001);
}

TEST_CASE("the largest sums that were declared do not overflow") {
  for (const std::int64_t clients : {std::int64_t{1}, std::int64_t{5}, std::int64_t{1} << 40}) {
    const fixed_point sums{.bound = 3.9, .clients = clients};
    const double total = sums.total();
    CHECK(mean_of({3.9, 3.9}, {total - 0.5, 0.5}, sums) == doctest::Approx(3.9).epsilon(1e-14));
    CHECK(mean_of({-3.9, -3.9}, {total / 2, total / 2}, sums) ==
          doctest::Approx(-3.9).epsilon(1e-14));
  }
}

TEST_CASE("a value out of bound is refused by name, and nothing changes") {
  support::refusal_setting s;
  const average_options options{.sums = fixed_point{.bound = 100, .clients = 4}};
  selective_average<float> mean(s.net, options);
  mean.add(s.holds({0, 1}, 3), s.update({0, 1}, 3).tensors, 1);
  const auto result = [&] {
    auto globals = std::pair(s.global_w, s.global_b);
    mean.finish({tensor_view<float>(globals.first.data(), {3, 2}),
                 tensor_view<float>(globals.second.data(), {3})});
    return globals;
  };
  const auto before = result();
  s.client_b[1] = 101;
  const auto bad = s.update({2, 0}, 5, 8);
  CHECK(
      message_of([&] { mean.add(bad.sub, bad.tensors, 1); }) ==
      "subfed: average: client 5 of round 8 has 101 in tensor 'b', at global element (0,), beyond "
      "the bound of the fixed-point sums, 100");
  CHECK(result() == before);
  CHECK(mean.report().clients == 1);
  CHECK_FALSE(mean.held().test(s.b, 2));
  const std::vector<subfed::update<float>> both{s.update({1}, 1), bad};
  CHECK(
      message_of([&] { subfed::average_cohort<float>(s.net, both, s.globals(), options); }) ==
      "subfed: average: client 5 of round 8 has 101 in tensor 'b', at global element (0,), beyond "
      "the bound of the fixed-point sums, 100");
  CHECK(s.untouched());

  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    s.client_b[1] = odd;
    CHECK(message_of([&] { mean.add(bad.sub, bad.tensors, 1); }) ==
          std::string("subfed: average: client 5 of round 8 has ") + (odd < 0 ? "-inf" : "NaN") +
              " in tensor 'b', at global element (0,), beyond the bound of the fixed-point sums, "
              "100");
    CHECK(result() == before);
  }
  s.client_b[1] = -100;
  mean.add(bad.sub, bad.tensors, 1);
  CHECK(result() != before);
}

TEST_CASE("an update out of bound is left out, or clipped, by choice") {
  support::refusal_setting s;
  s.client_b[0] = -1e6f;
  s.client_w[1] = 200;
  const auto bad = s.update({2, 0}, 5);
  const auto good = s.update({1}, 6);
  fixed_point sums{.bound = 150, .clients = 4, .on_out_of_bound = out_of_bound::skip_client};
  {
    const average_options options{.sums = sums};
    selective_average<float> mean(s.net, options);
    const auto outcome = mean.add(bad.sub, bad.tensors, 1);
    CHECK(outcome.fate == subfed::fate::out_of_bound);
    CHECK(outcome.tensor == "w");
    CHECK(outcome.element == 5);
    CHECK(outcome.weight == 0);
    CHECK(mean.report().skipped_clients == 1);
    CHECK(mean.report().left_out.size() == 1);
    CHECK(mean.finish(s.globals()).held == 0);
    CHECK(s.untouched());
    const auto report = subfed::average_cohort<float>(
        s.net, std::vector<subfed::update<float>>{bad}, s.globals(), options);
    CHECK(report == mean.finish(s.globals()));
    CHECK(s.untouched());
  }
  sums.on_out_of_bound = out_of_bound::clip;
  const average_options options{.sums = sums};
  selective_average<float> mean(s.net, options);
  CHECK(mean.add(bad.sub, bad.tensors, 1).clipped_elements == 2);
  CHECK(mean.add(bad.sub, bad.tensors, 1).clipped_elements == 2);
  CHECK(mean.report().clipped_elements == 4);
  selective_average<float> other(s.net, options);
  other.merge(mean);
  CHECK(other.report().clipped_elements == 4);
  mean.finish(s.globals());
  CHECK(s.global_b == std::vector<float>{80, 8, -150});
  CHECK(s.global_w == std::vector<float>{30, 40, 3, 4, 10, 150});
  s.global_w = {1, 2, 3, 4, 5, 6};
  s.global_b = {7, 8, 9};
  const auto report = subfed::average_cohort<float>(s.net, std::vector<subfed::update<float>>{bad},
                                                    s.globals(), options);
  CHECK(report.clipped_elements == 2);
  CHECK(s.global_b == std::vector<float>{80, 8, -150});

  // What is not finite cannot be clipped; skip_element leaves it out before.
  s.client_b[0] = -std::numeric_limits<float>::infinity();
  CHECK(message_of([&] {
          mean.add(bad.sub, bad.tensors, 1);
        }).find("has -inf in tensor 'b', at global element (2,)") != std::string::npos);
  average_options skips = options;
  skips.on_non_finite = non_finite::skip_element;
  selective_average<float> rest(s.net, skips);
  const auto outcome = rest.add(bad.sub, bad.tensors, 1);
  CHECK(outcome.skipped_elements == 1);
  CHECK(outcome.clipped_elements == 1);
  s.global_b = {7, 8, 9};
  rest.finish(s.globals());
  CHECK(s.global_b == std::vector<float>{80, 8, 9});
}

TEST_CASE(
    "a refused update leaves the bits of sums and of weights, with weights for every element") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    seeded random(seed);
    average_options options;
    options.sums = fixed_point{.bound = 2, .clients = 12, .total_weight = 24};
    options.on_non_finite = non_finite::skip_element;
    const auto value = [](seeded& r) {
      return r.one_in(9) ? std::numeric_limits<float>::infinity() : uneven_value<float>(r);
    };
    support::cohort<float> group{random, support::random_network(random), 6, value, uneven_weight};
    const auto updates = group.updates();
    selective_average<float> mean(group.net, options);
    selective_average<float> same(group.net, options);
    add_all(mean, updates, 0, 3);
    add_all(same, updates, 0, 3);
    support::cohort<float> bad = group;
    for (auto& t : bad.clients[3].tensors) {
      const std::int64_t n = t.view().size();
      std::int64_t i = 0;
      t.fill([&](std::int64_t) { return ++i == n ? 3.0f : value(random); });
    }
    const auto hostile = bad.clients[3].update();
    // Where its last elements take no part, it is taken.
    if (message_of([&] { mean.add(hostile.sub, hostile.tensors, 1.5); }) == "nothing was thrown") {
      same.add(hostile.sub, hostile.tensors, 1.5);
    }
    add_all(mean, updates, 3, 6);
    add_all(same, updates, 3, 6);
    support::cohort<float> a = group, b = group;
    support::check_report(mean.finish(tensor_views<float>(a.global_views())),
                          same.finish(tensor_views<float>(b.global_views())));
    for (std::size_t t = 0; t < a.globals.size(); ++t) {
      CHECK(support::same_bits(a.globals[t].elements(), b.globals[t].elements()));
    }
  }
}

TEST_CASE("weights that fixed-point sums cannot hold are refused") {
  support::refusal_setting s;
  const average_options options{.sums = fixed_point{.bound = 100, .clients = 4}};
  selective_average<float> mean(s.net, options);
  const auto one = s.update({1}, 1);
  const auto add = [&](double weight) {
    return message_of([&] { mean.add(one.sub, one.tensors, weight); });
  };
  CHECK(add(4.5) ==
        "subfed: average: the weight of client 1 of round 0 is 4.5, more than the total_weight of "
        "the "
        "fixed-point sums, 4");
  CHECK(
      add(0x1p-60).find("client 1 of round 0 is 8.67361738e-19, too small for the total_weight") !=
      std::string::npos);
  CHECK(mean.add(one.sub, one.tensors, 3).weight == 3);
  CHECK(add(2) ==
        "subfed: average: the weights of the cohort add up to 5, more than the total_weight of its "
        "fixed-point sums, 4");
  const selective_average<float> copy = mean;
  CHECK(message_of([&] { mean.merge(copy); }).find("add up to 6, more than") != std::string::npos);
  CHECK(mean.report().clients == 1);
  const std::vector<subfed::update<float>> five(5, one);
  CHECK(message_of([&] {
          subfed::average_cohort<float>(s.net, five, s.globals(), options);
        }).find("add up to 5, more than") != std::string::npos);
  CHECK(s.untouched());
  selective_average<float> others(s.net, {.sums = fixed_point{.bound = 100, .clients = 5}});
  CHECK(message_of([&] { mean.merge(others); }).find("has other options") != std::string::npos);
}

TEST_CASE("declarations that are refused") {
  const auto refused = [](const fixed_point& sums) {
    return message_of([&] { selective_average<float>(subfed::model{}, {.sums = sums}); });
  };
  CHECK(refused({.bound = 0}) == "subfed: fixed_point: bound is 0, expected 2^-400 to 2^400");
  CHECK(refused({.bound = std::nan("")}) ==
        "subfed: fixed_point: bound is NaN, expected 2^-400 to 2^400");
  CHECK(refused({.clients = 0}) == "subfed: fixed_point: clients is 0, expected 1 or more");
  CHECK(refused({.total_weight = -1}) ==
        "subfed: fixed_point: total_weight is -1, expected 2^-400 to 2^400");
  CHECK(refused({.bound = 0x1p400, .clients = 1, .total_weight = 0x1p-400}) ==
        "nothing was thrown");
}

TEST_CASE("updates of mixed element types have the bits of one pass, in any order") {
  subfed::model net;
  const auto g = net.group("g", 6);
  net.tensor("w", {g, 5});
  net.tensor("n", {g});
  seeded random(9);
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<half>> halves;
  std::vector<std::vector<double>> doubles;
  std::vector<std::vector<std::int32_t>> counts;
  std::vector<subfed::update<void>> updates;
  for (std::uint64_t c = 0; c < 12; ++c) {
    std::vector<std::int64_t> nodes = support::random_nodes(random, 6);
    const auto k = static_cast<std::int64_t>(nodes.size());
    const submodel sub(net, {index_set(6, nodes)}, {.client = c});
    const auto fill = [&]<class T>(std::vector<std::vector<T>>& into) {
      into.emplace_back();
      for (std::int64_t i = 0; i < 5 * k; ++i) into.back().push_back(uneven_value<T>(random));
      return tensor_view<const void>(tensor_view<const T>(into.back().data(), {k, 5}));
    };
    counts.emplace_back(static_cast<std::size_t>(k), static_cast<std::int32_t>(c));
    const auto w = c % 3 == 0 ? fill(floats) : c % 3 == 1 ? fill(halves) : fill(doubles);
    updates.push_back(
        {sub,
         {w, tensor_view<const void>(tensor_view<const std::int32_t>(counts.back().data(), {k}))},
         1 + static_cast<double>(c % 4)});
  }
  const average_options options{.integers = subfed::integer_rule::sum,
                                .sums = fixed_point{.bound = 2, .clients = 12, .total_weight = 30}};
  std::vector<float> expected;
  for (int again = 0; again < 20; ++again) {
    std::vector<float> w(30, 0.5f);
    std::vector<std::int32_t> n(6, 1);
    const tensor_views<void> globals{tensor_view<void>(tensor_view<float>(w.data(), {6, 5})),
                                     tensor_view<void>(tensor_view<std::int32_t>(n.data(), {6}))};
    if (again % 2 == 0) {
      subfed::average_cohort<void>(net, updates, globals, options);
    } else {
      selective_average<void> mean(net, options);
      for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
      mean.finish(globals);
    }
    if (again == 0) expected = w;
    CHECK(support::same_bits(w, expected));
    random.shuffle(updates);
  }
}

TEST_CASE("late updates count with their weight rounded") {
  subfed::model net;
  net.tensor("x", {1});
  average_options options{.round = 5, .on_late = subfed::late_update::weigh};
  options.late_weight = [](std::uint64_t passed) {
    return 1 / (1.0 + static_cast<double>(passed));
  };
  options.sums = fixed_point{.bound = 1, .clients = 2};
  selective_average<double> mean(net, options);
  const double x = 0.5;
  const auto outcome = mean.add(submodel(net, {}, {.round = 3, .client = 1}),
                                {tensor_view<const double>(&x, {1})}, 1);
  CHECK(outcome.weight == std::nearbyint(std::ldexp(1.0 / 3, 51)) * 0x1p-51);
}

TEST_CASE_TEMPLATE(
    "random sets, of rows longer than a tile: every form has the bits of the plain loop", T, float,
    double, half, bfloat16) {
  using traits = subfed::scalar_traits<T>;
  subfed::model net;
  const auto rows = net.group("rows", 40);
  const auto columns = net.group("columns", 1300);
  net.tensor("matrix", {rows, columns});
  net.tensor("embedding", {9, columns});
  for (const bool ones : {true, false}) {
    CAPTURE(ones);
    seeded random(21);
    // Whole numbers and weights of a few bits: no sum is rounded.
    std::vector<double> sums[2], weights[2];
    std::vector<std::vector<T>> data;
    std::vector<subfed::update<T>> updates;
    for (std::size_t t = 0; t < 2; ++t) {
      sums[t].assign(t == 0 ? 40 * 1300 : 9 * 1300, -0.0);
      weights[t].assign(sums[t].size(), 0.0);
    }
    data.reserve(14);
    for (std::uint64_t c = 0; c < 7; ++c) {
      const submodel sub = subfed::draw(
          net, subfed::random_subset{},
          {.seed = 3, .client = c, .capacity = c == 6 ? 1.0 : 1.0 / static_cast<double>(1 + c)});
      const double weight = ones ? 1 : 0.25 * static_cast<double>(1 + c);
      std::vector<tensor_view<const T>> views;
      for (std::size_t t = 0; t < 2; ++t) {
        const auto shape = sub.extents(subfed::tensor_id(t));
        auto& own = data.emplace_back();
        for (std::int64_t i = 0; i < shape[0]; ++i) {
          for (std::int64_t j = 0; j < shape[1]; ++j) {
            const double x =
                random.one_in(5) ? -0.0 : static_cast<double>(random.between(-9, 9)) / 4;
            own.push_back(traits::store(x));
            const std::int64_t row = t == 0 ? sub[rows][i] : i;
            const auto at = static_cast<std::size_t>(row * 1300 + sub[columns][j]);
            sums[t][at] += weight * x;
            weights[t][at] += weight;
          }
        }
        views.emplace_back(own.data(), std::span<const std::int64_t>(shape));
      }
      updates.push_back({sub, tensor_views<const T>(views), weight});
    }
    const auto check = [&]<class Global>(Global, bool fixed, auto&& average) {
      using to = subfed::scalar_traits<Global>;
      const Global old = to::store(-7);
      std::vector<Global> globals[2] = {std::vector<Global>(sums[0].size(), old),
                                        std::vector<Global>(sums[1].size(), old)};
      average(tensor_views<Global>{tensor_view<Global>(globals[0].data(), {40, 1300}),
                                   tensor_view<Global>(globals[1].data(), {9, 1300})});
      std::int64_t wrong = 0;
      for (std::size_t t = 0; t < 2; ++t) {
        for (std::size_t i = 0; i < sums[t].size(); ++i) {
          const double sum = fixed ? sums[t][i] + 0.0 : sums[t][i];  // integers have no -0
          const Global expected = weights[t][i] > 0 ? to::store(sum / weights[t][i]) : old;
          wrong += std::memcmp(&globals[t][i], &expected, sizeof(Global)) == 0 ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    };
    using other = std::conditional_t<std::is_same_v<T, float>, double, float>;
    support::with_all_instructions([&] {
      for (const bool fixed : {false, true}) {
        CAPTURE(fixed);
        average_options options;
        if (fixed) options.sums = fixed_point{.bound = 4, .clients = 7, .total_weight = 8};
        check(T{}, fixed, [&](const tensor_views<T>& globals) {
          subfed::average_cohort<T>(net, updates, globals, options);
        });
        check(other{}, fixed, [&](const tensor_views<other>& globals) {
          subfed::average_cohort<other, T>(net, std::span<const subfed::update<T>>(updates),
                                           globals, options);
        });
        for (const std::size_t by : {1u, 3u, 7u}) {
          CAPTURE(by);
          check(T{}, fixed, [&](const tensor_views<T>& globals) {
            selective_average<T> mean(net, options);
            const std::span<const subfed::update<T>> all(updates);
            for (std::size_t from = 0; from < all.size(); from += by) {
              mean.add(all.subspan(from, (std::min)(by, all.size() - from)));
            }
            mean.finish(globals);
          });
        }
      }
    });
  }
}

TEST_CASE_TEMPLATE("many clients of random sets, with a weight for each element: the plain loop", T,
                   float, double, half) {
  using traits = subfed::scalar_traits<T>;
  subfed::model net;
  const auto columns = net.group("columns", 75);
  net.tensor("matrix", {6, columns});
  std::vector<double> sums(6 * 75, -0.0), weights(6 * 75, 0.0);
  std::vector<std::vector<T>> data;
  std::vector<subfed::update<T>> updates;
  seeded random(5);
  for (std::uint64_t c = 0; c < 90; ++c) {
    const submodel sub =
        subfed::draw(net, subfed::random_subset{},
                     {.seed = 4, .client = c, .capacity = c % 3 == 0 ? 0.25 : 0.5});
    const double weight = 0.25 * static_cast<double>(1 + c % 5);
    const auto shape = sub.extents(subfed::tensor_id(0));
    auto& own = data.emplace_back();
    for (std::int64_t i = 0; i < 6; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        const double x = static_cast<double>(random.between(-9, 9)) / 4;
        own.push_back(traits::store(x));
        const auto at = static_cast<std::size_t>(i * 75 + sub[columns][j]);
        sums[at] += weight * x;
        weights[at] += weight;
      }
    }
    updates.push_back(
        {sub, {tensor_view<const T>(own.data(), std::span<const std::int64_t>(shape))}, weight});
  }
  support::with_all_instructions([&] {
    for (const bool fixed : {false, true}) {
      average_options options;
      if (fixed) options.sums = fixed_point{.bound = 4, .clients = 90, .total_weight = 90};
      for (const std::size_t by : {1u, 9u}) {
        CAPTURE(fixed);
        CAPTURE(by);
        std::vector<T> global(6 * 75, traits::store(-7));
        selective_average<T> mean(net, options);
        const std::span<const subfed::update<T>> all(updates);
        for (std::size_t from = 0; from < all.size(); from += by) mean.add(all.subspan(from, by));
        REQUIRE(mean.has_dense_weights());
        mean.finish({tensor_view<T>(global.data(), {6, 75})});
        bool same = true;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          same = same && weights[i] > 0 &&
                 traits::load(global[i]) == traits::load(traits::store(sums[i] / weights[i]));
        }
        CHECK(same);
      }
    }
  });
}
