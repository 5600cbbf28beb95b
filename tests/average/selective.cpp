// SPDX-License-Identifier: MIT
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>

#include <support/average_properties.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::average_options;
using subfed::average_report;
using subfed::bfloat16;
using subfed::half;
using subfed::index_set;
using subfed::integer_rule;
using subfed::non_finite;
using subfed::selective_average;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

namespace {

const auto streamed = [](const auto& net, const auto& updates, const auto& globals,
                         const average_options& options) {
  return support::streamed(net, updates, globals, options);
};

/// Numbers whose weighted sums are exact in double but whose averages are not.
template <class T>
support::cohort<T> exact_cohort(seeded& random, std::int64_t clients) {
  return {random, support::random_network(random), clients, support::small_integer<T>,
          support::dyadic_weight};
}

/// As exact_cohort, now and then with a NaN or an infinity.
template <class T>
support::cohort<T> cohort_with_bad_elements(seeded& random, std::int64_t clients) {
  const auto value = [](seeded& r) {
    if (r.one_in(10)) return T(std::numeric_limits<double>::quiet_NaN());
    if (r.one_in(20)) return T(std::numeric_limits<double>::infinity());
    return support::small_integer<T>(r);
  };
  return {random, support::random_network(random), clients, value, support::dyadic_weight};
}

/// The average of some of a cohort's clients, without finish().
template <class T>
selective_average<T> mean_of(const support::cohort<T>& group, const std::vector<std::size_t>& which,
                             const average_options& options) {
  selective_average<T> mean(group.net, options);
  for (const std::size_t c : which) {
    const auto update = group.clients[c].update();
    mean.add(update.sub, update.tensors, update.weight);
  }
  return mean;
}

/// What an average writes over the cohort's global tensors, which stay as they are.
template <class T>
std::vector<std::vector<T>> written_by(const selective_average<T>& mean,
                                       const support::cohort<T>& group, average_report& report) {
  support::cohort<T> copy = group;
  report = mean.finish(tensor_views<T>(copy.global_views()));
  return copy.elements();
}

template <class T>
void check_same(const selective_average<T>& a, const selective_average<T>& b,
                const support::cohort<T>& group) {
  average_report of_a;
  average_report of_b;
  const auto from_a = written_by(a, group, of_a);
  const auto from_b = written_by(b, group, of_b);
  support::check_report(of_a, of_b);
  for (std::size_t t = 0; t < from_a.size(); ++t) CHECK(support::same_bits(from_a[t], from_b[t]));
}

/// One element, one client after the other.
template <class T>
T mean_of_element(const std::vector<T>& values) {
  subfed::model net;
  net.tensor("x", {1});
  selective_average<T> mean(net);
  for (const T& x : values) mean.add(submodel(net, {}), {tensor_view<const T>(&x, {1})});
  T global{};
  mean.finish({tensor_view<T>(&global, {1})});
  return global;
}

}  // namespace

TEST_CASE_TEMPLATE("streaming gives the averages that were worked out by hand", T, float, double,
                   half, bfloat16) {
  support::check_examples<T>(streamed);
}

TEST_CASE_TEMPLATE("streaming equals the dense loop for any network, nodes, layouts and weights", T,
                   float, double, half, bfloat16) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    support::check_against_oracle<T>(seed, {}, streamed);
  }
}

TEST_CASE("streaming equals the dense loop under every combination of options") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    support::check_against_oracle<float>(1000 + n, support::options_number(n), streamed);
    support::check_against_oracle<double>(2000 + n, support::options_number(n), streamed);
  }
}

TEST_CASE("streaming equals the dense loop for long rows, kernels and many clients") {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    average_options options;
    if (seed % 8 == 7) options.on_non_finite = non_finite::skip_element;
    if (seed % 8 == 6) options.divide_by = subfed::divisor::cohort;
    support::check_against_oracle<float>(300 + seed, options, streamed,
                                         {support::large_network, 13});
  }
}

TEST_CASE_TEMPLATE("streaming in any order gives the bits of one pass where sums are exact", T,
                   float, double, half, bfloat16) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto options = support::options_number(seed);
    const auto group = options.on_non_finite == non_finite::propagate
                           ? exact_cohort<T>(random, random.between(1, 6))
                           : cohort_with_bad_elements<T>(random, random.between(1, 6));
    support::cohort<T> one_pass = group;
    const auto expected =
        support::at_once(group.net, group.updates(), one_pass.global_views(), options);
    auto updates = group.updates();
    for (int again = 0; again < 3; ++again) {
      random.shuffle(updates);
      support::cohort<T> copy = group;
      support::check_report(streamed(group.net, updates, copy.global_views(), options), expected);
      for (std::size_t t = 0; t < copy.globals.size(); ++t) {
        CHECK(support::same_bits(copy.globals[t].elements(), one_pass.globals[t].elements()));
      }
    }
  }
}

TEST_CASE("float, half and bfloat16 are summed in double and rounded once") {
  CHECK(std::bit_cast<std::uint32_t>(mean_of_element(std::vector<float>(1000, 0.1f))) ==
        0x3DCCCCCDu);
  CHECK(mean_of_element(std::vector<bfloat16>(512, bfloat16(1.0))).bits == 0x3F80);
  CHECK(mean_of_element<bfloat16>({bfloat16(1.0), bfloat16(1.0078125)}).bits == 0x3F80);
  CHECK(mean_of_element<bfloat16>({bfloat16(1.0078125), bfloat16(1.015625)}).bits == 0x3F82);
  CHECK(mean_of_element(std::vector<half>(4096, half(32.0))).bits == 0x5000);
  CHECK(mean_of_element<half>({half(60000.0), half(60000.0), half(24000.0)}).bits == 0x79DC);
  CHECK(mean_of_element(std::vector<half>(4096, half(1.0))).bits == 0x3C00);
}

TEST_CASE("float in any order of calls: 1e8, 1, -1e8 is a third") {
  std::array<float, 3> values{-1e8f, 1.0f, 1e8f};
  std::sort(values.begin(), values.end());
  int orders = 0;
  do {
    CHECK(std::bit_cast<std::uint32_t>(
              mean_of_element(std::vector<float>(values.begin(), values.end()))) == 0x3EAAAAABu);
    ++orders;
  } while (std::next_permutation(values.begin(), values.end()));
  CHECK(orders == 6);
}

TEST_CASE("the same calls in the same order give the same bits, for double too") {
  CHECK(mean_of_element<double>({1e16, 1, -1e16}) == mean_of_element<double>({1e16, 1, -1e16}));
  seeded random(5);
  const auto value = [](seeded& r) { return r.unit() - 0.5; };
  const support::cohort<double> group{random, support::random_network(random), 6, value,
                                      [](seeded& r) { return r.unit(); }};
  const std::vector<std::size_t> all{0, 1, 2, 3, 4, 5};
  check_same(mean_of(group, all, {}), mean_of(group, all, {}), group);
}

TEST_CASE("without any update nothing is written and everything is unheld") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("x", {g});
  std::vector<float> global{5, 6};
  const selective_average<float> mean(net);
  const auto report = mean.finish({tensor_view<float>(global.data(), {2})});
  support::check_report(report, {.unheld = 2});
  CHECK(global == std::vector<float>{5, 6});
}

TEST_CASE("finish leaves the state: more may be added, and it may be called again") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  selective_average<double> mean(net);
  const std::vector<double> a{2, 4};
  const std::vector<double> b{6, 8};
  mean.add(submodel(net, {index_set(3, {0, 1})}), {tensor_view<const double>(a.data(), {2})});
  std::vector<double> global{1, 1, 1};
  mean.finish({tensor_view<double>(global.data(), {3})});
  CHECK(global == std::vector<double>{2, 4, 1});
  mean.add(submodel(net, {index_set(3, {1, 2})}), {tensor_view<const double>(b.data(), {2})});
  for (int again = 0; again < 2; ++again) {
    global = {1, 1, 1};
    mean.finish({tensor_view<double>(global.data(), {3})});
    CHECK(global == std::vector<double>{2, 5, 8});
  }
}

TEST_CASE("an update may be gone after add") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("x", {g});
  selective_average<float> mean(net);
  {
    const std::vector<float> gone{3, 4};
    mean.add(submodel(net, {index_set::full(2)}), {tensor_view<const float>(gone.data(), {2})});
  }
  std::vector<float> global{0, 0};
  mean.finish({tensor_view<float>(global.data(), {2})});
  CHECK(global == std::vector<float>{3, 4});
}

TEST_CASE_TEMPLATE("merging parts of a cohort is adding all of it", T, float, double, half) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    average_options options = support::options_number(seed);
    if (seed % 2 == 0) options.on_non_finite = non_finite::skip_element;
    const auto group = options.on_non_finite == non_finite::propagate
                           ? exact_cohort<T>(random, 6)
                           : cohort_with_bad_elements<T>(random, 6);
    const auto whole = mean_of(group, {0, 1, 2, 3, 4, 5}, options);
    const auto a = mean_of(group, {0, 4}, options);
    const auto b = mean_of(group, {1, 5, 3}, options);
    const auto c = mean_of(group, {2}, options);
    const selective_average<T> zero(group.net, options);

    auto ab = a;
    ab.merge(b);
    auto ba = b;
    ba.merge(a);
    check_same(ab, ba, group);  // commutes
    check_same(ab, mean_of(group, {0, 4, 1, 5, 3}, options), group);

    auto ab_c = ab;
    ab_c.merge(c);
    auto bc = b;
    bc.merge(c);
    auto a_bc = a;
    a_bc.merge(bc);
    check_same(ab_c, a_bc, group);  // associates
    check_same(ab_c, whole, group);

    auto with_zero = whole;
    with_zero.merge(zero);
    check_same(with_zero, whole, group);  // an empty average is zero
    auto from_zero = zero;
    from_zero.merge(whole);
    check_same(from_zero, whole, group);
  }
}

TEST_CASE("merging an average with itself is adding its updates twice") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    average_options options = support::options_number(seed);
    if (seed % 2 == 0) options.on_non_finite = non_finite::skip_element;
    const auto group = options.on_non_finite == non_finite::propagate
                           ? exact_cohort<float>(random, 3)
                           : cohort_with_bad_elements<float>(random, 3);
    auto doubled = mean_of(group, {0, 1, 2}, options);
    doubled.merge(doubled);
    check_same(doubled, mean_of(group, {0, 1, 2, 0, 1, 2}, options), group);
  }
}

TEST_CASE("an element left out by one shard is divided by the holders of all shards") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  const auto full = submodel::full(net);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{1, nan, 3};
  const std::vector<float> b{5, 6, nan};
  const std::vector<float> c{3, 8, nan};
  average_options options;
  options.on_non_finite = non_finite::skip_element;
  selective_average<float> east(net, options);
  selective_average<float> west(net, options);
  east.add(full, {tensor_view<const float>(a.data(), {3})}, 2);
  west.add(full, {tensor_view<const float>(b.data(), {3})}, 2);
  west.add(full, {tensor_view<const float>(c.data(), {3})}, 6);
  east.merge(west);
  std::vector<float> global{0, 0, 0};
  const auto report = east.finish({tensor_view<float>(global.data(), {3})});
  CHECK(global == std::vector<float>{3, 7.5, 3});
  support::check_report(report, {.clients = 3, .skipped_elements = 3, .held = 3});
}

TEST_CASE("holders and values that RapidCheck comes up with are averaged by definition") {
  support::for_all("sum of w x over sum of w, per node", [] {
    const auto clients = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
        rc::gen::tuple(rc::gen::inRange(0, 32), rc::gen::inRange(-50, 50), rc::gen::inRange(0, 5)));
    subfed::model net;
    const auto g = net.group("g", 5);
    net.tensor("x", {g});
    selective_average<double> mean(net);
    double sum[5] = {};
    double weights[5] = {};
    for (const auto& [mask, value, weight] : clients) {
      std::vector<std::int64_t> nodes;
      std::vector<double> values;
      for (int n = 0; n < 5; ++n) {
        if ((mask >> n & 1) == 0) continue;
        nodes.push_back(n);
        values.push_back(value + n);
        sum[n] += weight * (value + n);
        weights[n] += weight;
      }
      mean.add(
          submodel(net, {index_set(5, nodes)}),
          {tensor_view<const double>(values.data(), {static_cast<std::int64_t>(nodes.size())})},
          weight);
    }
    std::vector<double> global{-7, -7, -7, -7, -7};
    mean.finish({tensor_view<double>(global.data(), {5})});
    for (std::size_t n = 0; n < 5; ++n) {
      RC_ASSERT(global[n] == (weights[n] > 0 ? sum[n] / weights[n] : -7));
    }
  });
}

TEST_CASE("the loop of a round: draw, slice, train, add, finish") {
  subfed::model net;
  const auto hidden = net.group("hidden", 8);
  const auto w1 = net.tensor("fc1.weight", {hidden, 4});
  const auto w2 = net.tensor("fc2.weight", {3, hidden});
  std::vector<float> global_1(32, 1);
  std::vector<float> global_2(24, 2);
  const tensor_views<float> globals{tensor_view<float>(global_1.data(), {8, 4}),
                                    tensor_view<float>(global_2.data(), {3, 8})};
  for (unsigned round = 0; round < 5; ++round) {
    selective_average<float> mean(net);
    for (const double capacity : {0.5, 0.25}) {
      const auto sub =
          subfed::draw(net, subfed::rolling{}, {.seed = 7, .round = round, .capacity = capacity});
      std::vector<float> a(static_cast<std::size_t>(sub.extent(hidden) * 4));
      std::vector<float> b(static_cast<std::size_t>(sub.extent(hidden) * 3));
      const tensor_view<float> local_1(a.data(), sub.extents(w1));
      const tensor_view<float> local_2(b.data(), sub.extents(w2));
      subfed::slice(globals[0], sub[w1], local_1);
      subfed::slice(globals[1], sub[w2], local_2);
      for (float& x : a) x += 1;
      for (float& x : b) x += 1;
      mean.add(sub, {local_1, local_2});
    }
    mean.finish(globals);
  }
  // Every round adds 1 to what was held: nodes 0 .. 7 were held in 1, 2, 3, 4, 4, 3, 2, 1 rounds.
  const float held[] = {1, 2, 3, 4, 4, 3, 2, 1};
  for (std::size_t node = 0; node < 8; ++node) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(global_1[node * 4 + i] == 1 + held[node]);
    for (std::size_t i = 0; i < 3; ++i) CHECK(global_2[i * 8 + node] == 2 + held[node]);
  }
}

TEST_CASE("an update that is refused leaves no trace, and the next one counts") {
  support::refusal_setting s;
  average_options options;
  options.on_non_finite = non_finite::refuse;
  options.round = 7;
  selective_average<float> mean(s.net, options);
  const auto first = s.update({0}, 1, 7);
  mean.add(first.sub, first.tensors, first.weight);
  average_report before = mean.report();

  auto bad = s.update({0, 1}, 2, 7);
  std::string expected;
  SUBCASE("a negative weight") {
    bad.weight = -1;
    expected = " is -1, expected a finite number that is not negative";
  }
  SUBCASE("a weight that is no number") {
    bad.weight = std::numeric_limits<double>::quiet_NaN();
    expected = " is not finite, expected a finite number that is not negative";
  }
  SUBCASE("an infinite weight") {
    bad.weight = std::numeric_limits<double>::infinity();
    expected = " is not finite, expected a finite number that is not negative";
  }
  SUBCASE("a submodel of another model") {
    subfed::model other = s.net;
    other.tensor("c", {1});
    bad.sub = submodel(other, {index_set(3, {0, 1})}, {.round = 7, .client = 2});
    expected = "subfed: average: the submodel of client 2 of round 7 is of another model";
  }
  SUBCASE("a tensor too many") {
    bad.tensors = {tensor_view<const float>(s.client_w.data(), {2, 2}),
                   tensor_view<const float>(s.client_b.data(), {2}),
                   tensor_view<const float>(s.client_b.data(), {2})};
    expected = "subfed: average: 3 client tensors are given for a model of 2";
  }
  SUBCASE("a tensor of another shape") {
    bad.tensors = {tensor_view<const float>(s.client_w.data(), {2, 2}),
                   tensor_view<const float>(s.client_b.data(), {1, 2})};
    expected = "subfed: average: the client tensor 'b' has shape (1, 2), expected (2,)";
  }
  SUBCASE("a NaN in its last element") {
    s.client_b[1] = std::numeric_limits<float>::quiet_NaN();
    expected =
        "subfed: average: client 2 of round 7 has a value that is not finite in tensor 'b', at "
        "global element (1,)";
  }
  SUBCASE("an infinity, of a client whose nodes are in another order") {
    bad = s.update({2, 1}, 2, 7);
    s.client_w[1] = -std::numeric_limits<float>::infinity();
    s.client_w[2] = std::numeric_limits<float>::infinity();
    expected =
        "subfed: average: client 2 of round 7 has a value that is not finite in tensor 'w', at "
        "global element (1, 0)";
  }
  SUBCASE("an update of an earlier round") {
    bad = s.update({0, 1}, 2, 6);
    expected = "subfed: average: the update of client 2 of round 6 is not of round 7";
    before.refused_clients = 1;
  }
  SUBCASE("a second update of a client") {
    bad = s.update({0, 1}, 1, 7);
    expected =
        "subfed: average: the update of client 1 of round 7 is the second one of that client";
    before.refused_clients = 1;
  }
  const std::string message = message_of([&] { mean.add(bad.sub, bad.tensors, bad.weight); });
  CHECK_MESSAGE(message.find(expected) != std::string::npos, message);
  support::check_report(mean.report(), before);

  const std::vector<float> w{30, 40, 50, 60};
  const std::vector<float> b{90, 100};
  mean.add(s.holds({0, 2}, 2, 7),
           {tensor_view<const float>(w.data(), {2, 2}), tensor_view<const float>(b.data(), {2})});
  const auto report = mean.finish(s.globals());
  CHECK(s.global_w == std::vector<float>{20, 30, 3, 4, 50, 60});
  CHECK(s.global_b == std::vector<float>{80, 8, 100});
  CHECK(report.clients == 2);
  CHECK(report.held == 6);
  CHECK(report.unheld == 3);
}

TEST_CASE("a weight that is refused changes nothing: the mean of what is added later is right") {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("x", {g});
  selective_average<float> mean(net);
  const std::vector<float> a{1, 2};
  const float b = 8;
  const float c = 7;
  const auto view = [](const float& x) { return tensor_view<const float>(&x, {1}); };
  mean.add(submodel::full(net), {tensor_view<const float>(a.data(), {2})}, 0);
  mean.add(submodel(net, {index_set(2, {1})}), {view(b)}, 2);
  CHECK_THROWS_AS(mean.add(submodel::full(net), {tensor_view<const float>(a.data(), {2})}, -1),
                  subfed::error);
  CHECK_THROWS_AS(mean.add(submodel::full(net), {tensor_view<const float>(a.data(), {2})},
                           std::numeric_limits<double>::quiet_NaN()),
                  subfed::error);
  mean.add(submodel(net, {index_set(2, {0})}), {view(c)}, 1);
  std::vector<float> global{5, 6};
  mean.finish({tensor_view<float>(global.data(), {2})});
  CHECK(global == std::vector<float>{7, 8});
}

TEST_CASE("the check by client and round refuses repeats and late updates, and counts them") {
  subfed::model net;
  net.tensor("x", {1});
  average_options options;
  options.round = 4;
  selective_average<float> mean(net, options);
  const auto add = [&](std::uint64_t client, std::uint64_t round, float value) {
    mean.add(submodel(net, {}, {.round = round, .client = client}),
             {tensor_view<const float>(&value, {1})});
  };
  add(1, 4, 2);
  CHECK_THROWS_AS(add(1, 4, 2), subfed::error);
  add(2, 4, 8);
  CHECK_THROWS_AS(add(3, 3, 100), subfed::error);
  float global = 0;
  const auto report = mean.finish({tensor_view<float>(&global, {1})});
  CHECK(global == 5);
  support::check_report(report, {.clients = 2, .refused_clients = 2, .held = 1});
}

TEST_CASE("without the check, repeats count as often as they come") {
  CHECK(mean_of_element<float>({2, 2, 8}) == 4);
}

TEST_CASE("a client that was left out for a NaN may send another update in the same round") {
  subfed::model net;
  net.tensor("x", {1});
  average_options options;
  options.round = 0;
  options.on_non_finite = non_finite::skip_client;
  selective_average<float> mean(net, options);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  const float good = 3;
  mean.add(submodel(net, {}, {.client = 1}), {tensor_view<const float>(&bad, {1})});
  mean.add(submodel(net, {}, {.client = 1}), {tensor_view<const float>(&good, {1})});
  float global = 0;
  const auto report = mean.finish({tensor_view<float>(&global, {1})});
  CHECK(global == 3);
  support::check_report(report, {.clients = 1, .skipped_clients = 1, .held = 1});
}

TEST_CASE("finish refuses global tensors before it writes to any of them") {
  support::refusal_setting s;
  selective_average<float> mean(s.net);
  const auto update = s.update({0, 2}, 1);
  mean.add(update.sub, update.tensors);
  const tensor_view<float> w(s.global_w.data(), {3, 2});
  const tensor_view<float> b(s.global_b.data(), {3});
  const auto refused = [&](const tensor_views<float>& globals) {
    const std::string message = message_of([&] { mean.finish(globals); });
    CHECK(s.untouched());
    return message;
  };
  CHECK(refused({w}) == "subfed: average: 1 global tensors are given for a model of 2");
  CHECK(refused({w, w}) ==
        "subfed: average: the global tensor 'b' has shape (3, 2), expected (3,)");
  CHECK(refused({w, tensor_view<float>(s.global_b.data(), {3}, {0})}) ==
        "subfed: average: the global tensor 'b' of shape (3,) and strides (0,) is written to, but "
        "has several indices for one element");
  mean.finish({w, b});
  CHECK(s.global_b == std::vector<float>{70, 8, 80});
}

TEST_CASE("averages of different models do not merge, and an option that is no number is refused") {
  support::refusal_setting s;
  subfed::model other = s.net;
  other.tensor("c", {1});
  selective_average<float> mean(s.net);
  const selective_average<float> foreign(other);
  CHECK(message_of([&] { mean.merge(foreign); }) ==
        "subfed: average: the average to merge is of another model");
  average_options options;
  options.step = std::numeric_limits<double>::infinity();
  CHECK(message_of([&] { selective_average<float>(s.net, options); }) ==
        "subfed: average: the step is not finite");
  // A model described a second time in the same words is the same model.
  subfed::model again;
  const auto g = again.group("g", 3);
  again.tensor("w", {g, 2});
  again.tensor("b", {g});
  CHECK_NOTHROW(mean.merge(selective_average<float>(again)));
}

TEST_CASE("averages with other options do not merge") {
  subfed::model net;
  net.tensor("x", {1});
  const selective_average<float> mean(net);
  for (const subfed::average_options& options :
       {subfed::average_options{.divide_by = subfed::divisor::cohort},
        subfed::average_options{.content = subfed::content::deltas},
        subfed::average_options{.step = 0.5},
        subfed::average_options{.on_non_finite = subfed::non_finite::refuse},
        subfed::average_options{.integers = subfed::integer_rule::max},
        subfed::average_options{.round = 3}}) {
    selective_average<float> other(net, options);
    CHECK(message_of([&] { other.merge(mean); }) ==
          "subfed: average: the average to merge has other options");
    CHECK(other.report() == subfed::average_report{});
  }
}

TEST_CASE("under options.round a client counts once, over merges too") {
  subfed::model net;
  net.tensor("x", {1});
  const subfed::average_options once{.round = 4};
  const auto part = [&net](std::uint64_t client) {
    return subfed::submodel(net, {}, {.round = 4, .client = client});
  };
  float two = 2, eight = 8, global = 0;
  const auto view = [](float& x) { return subfed::tensor_view<float>(&x, {1}); };

  selective_average<float> east(net, once), west(net, once);
  east.add(part(1), {view(two)});
  west.add(part(1), {view(eight)});
  CHECK(message_of([&] { east.merge(west); }) ==
        "subfed: average: client 1 is in both of the averages to merge");
  CHECK(message_of([&] { east.merge(east); }) ==
        "subfed: average: client 1 is in both of the averages to merge");
  east.finish({view(global)});
  CHECK(global == 2);  // the refused merges left no trace
}

TEST_CASE("a refused weight is reported with the client that sent it") {
  subfed::model net;
  net.tensor("x", {1});
  float x = 1;
  selective_average<float> mean(net);
  CHECK(message_of([&] {
          mean.add(subfed::submodel(net, {}, {.round = 2, .client = 9}),
                   {subfed::tensor_view<float>(&x, {1})}, -1);
        }) ==
        "subfed: average: the weight of client 9 of round 2 is -1, expected a finite number "
        "that is not negative");
}

namespace {

/// A model of one table, and clients that hold every other row of it, shifted by the client's number.
struct combed {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 64);
  subfed::tensor_id table = net.tensor("table", {rows, 4});

  submodel part(std::int64_t client) const {
    std::vector<std::int64_t> nodes;
    for (std::int64_t n = client % 7; n < 64; n += 2 + client % 3) nodes.push_back(n);
    return submodel(net, {index_set(64, nodes)}, {.client = static_cast<std::uint64_t>(client)});
  }
  std::vector<float> values(std::int64_t client) const {
    std::vector<float> out(static_cast<std::size_t>(part(client).extent(rows) * 4));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(client) + 0.25f * static_cast<float>(i);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("weights are kept densely from when the runs of different submodels would take more") {
  const combed c;  // 64 rows of 4: dense weights are 2048 bytes
  selective_average<float> mean(c.net);
  std::vector<float> sums(256), counts(256);
  std::int64_t bytes_of_runs = 0;
  std::vector<std::int64_t> seen;
  for (std::int64_t client = 0; client < 21; ++client) {
    const submodel sub = c.part(client);
    const std::vector<float> values = c.values(client);
    mean.add(sub, {tensor_view<const float>(values.data(), {sub.extent(c.rows), 4})}, 2);
    std::size_t at = 0;
    for (std::int64_t n = client % 7; n < 64; n += 2 + client % 3) {
      for (std::size_t k = 0; k < 4; ++k, ++at) {
        sums[static_cast<std::size_t>(n) * 4 + k] += 2 * values[at];
        counts[static_cast<std::size_t>(n) * 4 + k] += 2;
      }
    }
    // Each run, of what is held and of what takes part, has three 64-bit numbers.
    bytes_of_runs += 2 * 24 * sub.extent(c.rows);
    CHECK(mean.has_dense_weights() == (bytes_of_runs > 2048));
    std::vector<float> global(256, -1.0f);
    const auto report = mean.finish({tensor_view<float>(global.data(), {64, 4})});
    std::int64_t held = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      CHECK(global[i] == (counts[i] > 0 ? sums[i] / counts[i] : -1.0f));
      held += counts[i] > 0 ? 1 : 0;
    }
    CHECK(report.held == held);
    CHECK(report.unheld == 256 - held);
  }
}

TEST_CASE("clients that are alike never make the weights dense") {
  const combed c;
  selective_average<float> mean(c.net);
  const submodel sub = c.part(3);
  const std::vector<float> values = c.values(3);
  for (int client = 0; client < 1000; ++client) {
    mean.add(sub, {tensor_view<const float>(values.data(), {sub.extent(c.rows), 4})});
  }
  CHECK_FALSE(mean.has_dense_weights());
}

TEST_CASE("dense or not, elements left out are left out, and averages merge") {
  const combed c;
  subfed::average_options options;
  options.on_non_finite = subfed::non_finite::skip_element;
  // An average of clients 0 .. 19 at once, and one merged from two parts, either of which may be
  // dense by itself, or neither.
  const auto add = [&](selective_average<float>& mean, std::int64_t client) {
    std::vector<float> values = c.values(client);
    values[static_cast<std::size_t>(client)] = std::numeric_limits<float>::quiet_NaN();
    mean.add(c.part(client),
             {tensor_view<const float>(values.data(), {c.part(client).extent(c.rows), 4})});
  };
  std::vector<double> sums(256), counts(256);
  for (std::int64_t client = 0; client < 20; ++client) {
    const auto values = c.values(client);
    std::size_t at = 0;
    for (std::int64_t n = client % 7; n < 64; n += 2 + client % 3) {
      for (std::size_t k = 0; k < 4; ++k, ++at) {
        if (at == static_cast<std::size_t>(client)) continue;
        sums[static_cast<std::size_t>(n) * 4 + k] += static_cast<double>(values[at]);
        counts[static_cast<std::size_t>(n) * 4 + k] += 1;
      }
    }
  }
  for (const std::int64_t split : {0, 1, 10, 19, 20}) {
    selective_average<float> first(c.net, options), second(c.net, options);
    for (std::int64_t client = 0; client < split; ++client) add(first, client);
    for (std::int64_t client = split; client < 20; ++client) add(second, client);
    CHECK(first.has_dense_weights() == (split > 0));  // the one tensor has left-out elements
    first.merge(second);
    CHECK(first.has_dense_weights());
    std::vector<float> global(256, -1.0f);
    CHECK(first.finish({tensor_view<float>(global.data(), {64, 4})}).skipped_elements == 20);
    for (std::size_t i = 0; i < 256; ++i) {
      CHECK(global[i] == (counts[i] > 0 ? static_cast<float>(sums[i] / counts[i]) : -1.0f));
    }
  }
}

TEST_CASE("a cleared average is a new one") {
  const combed c;
  selective_average<float> used(c.net);
  for (std::int64_t client = 0; client < 20; ++client) {
    const auto values = c.values(client);
    used.add(c.part(client),
             {tensor_view<const float>(values.data(), {c.part(client).extent(c.rows), 4})});
  }
  CHECK(used.has_dense_weights());
  used.clear();
  CHECK_FALSE(used.has_dense_weights());
  CHECK(used.report() == subfed::average_report{});
  std::vector<float> untouched(256, 3.0f);
  used.finish({tensor_view<float>(untouched.data(), {64, 4})});
  CHECK(untouched == std::vector<float>(256, 3.0f));

  selective_average<float> fresh(c.net);
  const auto values = c.values(5);
  for (selective_average<float>* mean : {&used, &fresh}) {
    mean->add(c.part(5), {tensor_view<const float>(values.data(), {c.part(5).extent(c.rows), 4})},
              3);
  }
  std::vector<float> a(256, 3.0f), b(256, 3.0f);
  CHECK(used.finish({tensor_view<float>(a.data(), {64, 4})}) ==
        fresh.finish({tensor_view<float>(b.data(), {64, 4})}));
  CHECK(a == b);
}

namespace {

/// A table of random halves, which soon makes the weights dense, and a tensor of integers beside it.
template <class I>
struct counted_table {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 64);
  subfed::group_id columns = net.group("columns", 64);
  subfed::tensor_id table = net.tensor("table", {rows, columns});
  subfed::tensor_id counter = net.tensor("counter", std::initializer_list<subfed::dimension>{});
  subfed::tensor_id marks = net.tensor("marks", {rows});
  std::vector<float> client_table = std::vector<float>(32 * 32, 1.0f);
  std::vector<float> global_table = std::vector<float>(64 * 64, 0.0f);

  submodel part(std::uint64_t client) const {
    return subfed::draw(net, subfed::random_subset{},
                        {.seed = 3, .client = client, .capacity = 0.5});
  }
  /// Adds a client whose counter and marks are all `value`.
  void add(selective_average<void>& mean, std::uint64_t client, I value) const {
    std::unique_ptr<I[]> own(new I[32]);
    std::fill_n(own.get(), 32, value);
    mean.add(part(client), {tensor_view<const float>(client_table.data(), {32, 32}),
                            tensor_view<const I>(own.get(), std::initializer_list<std::int64_t>{}),
                            tensor_view<const I>(own.get(), {32})});
  }
};

template <class I>
void check_integers_beside(integer_rule rule, std::uint64_t clients, std::uint64_t shards) {
  INFO("clients ", clients, ", shards ", shards);
  counted_table<I> c;
  const auto value = [](std::uint64_t client) { return static_cast<I>(1 + client % 2); };
  std::vector<selective_average<void>> parts(shards,
                                             selective_average<void>(c.net, {.integers = rule}));
  std::int64_t expected = 0;
  std::vector<std::int64_t> marks(64, -1);
  const auto take = [&](std::int64_t& own, std::int64_t x) {
    own = own < 0 || rule == integer_rule::max ? (std::max)(own, x) : own + x;
  };
  for (std::uint64_t client = 0; client < clients; ++client) {
    c.add(parts[client % shards], client, value(client));
    take(expected, static_cast<std::int64_t>(value(client)));
    for (std::int64_t n = 0; n < 64; ++n) {
      if (c.part(client)[c.rows].contains(n)) {
        take(marks[static_cast<std::size_t>(n)], static_cast<std::int64_t>(value(client)));
      }
    }
  }
  for (std::size_t s = 1; s < shards; ++s) parts[0].merge(parts[s]);
  std::unique_ptr<I[]> global(new I[65]);
  std::fill_n(global.get(), 65, I{0});
  parts[0].finish({tensor_view<float>(c.global_table.data(), {64, 64}),
                   tensor_view<I>(global.get(), std::initializer_list<std::int64_t>{}),
                   tensor_view<I>(global.get() + 1, {64})});
  CHECK(static_cast<std::int64_t>(global[0]) == expected);
  for (std::size_t n = 0; n < 64; ++n) {
    CHECK(static_cast<std::int64_t>(global[n + 1]) == (std::max)(marks[n], std::int64_t{0}));
  }
}

}  // namespace

TEST_CASE("integers follow their rule whether or not the weights beside them are dense") {
  std::int64_t last_count = -1;
  for (const std::uint64_t clients : {1u, 20u, 22u, 60u}) {
    counted_table<std::int64_t> c;
    selective_average<void> mean(c.net, {.integers = integer_rule::max});
    for (std::uint64_t client = 0; client < clients; ++client) {
      c.add(mean, client, static_cast<std::int64_t>(100 + client));
    }
    CHECK(mean.has_dense_weights() == (clients > 21));
    std::int64_t counter = 5;
    std::vector<std::int64_t> marks(64, 5);
    const auto report =
        mean.finish({tensor_view<float>(c.global_table.data(), {64, 64}),
                     tensor_view<std::int64_t>(&counter, std::initializer_list<std::int64_t>{}),
                     tensor_view<std::int64_t>(marks.data(), {64})});
    CHECK(counter == static_cast<std::int64_t>(99 + clients));
    CHECK(report.held + report.unheld == 64 * 64 + 1 + 64);
    CHECK(report.held > last_count);
    last_count = report.held - 1;
  }
}

TEST_CASE_TEMPLATE("integers of every type survive dense weights and merges, under every rule", I,
                   std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t) {
  for (const integer_rule rule : {integer_rule::max, integer_rule::sum}) {
    for (const std::uint64_t shards : {1u, 2u, 30u}) check_integers_beside<I>(rule, 40, shards);
  }
}

TEST_CASE("flags survive dense weights: the largest of booleans is whether any holder has it set") {
  counted_table<bool> c;
  selective_average<void> mean(c.net, {.integers = integer_rule::max});
  for (std::uint64_t client = 0; client < 40; ++client) c.add(mean, client, client == 31);
  REQUIRE(mean.has_dense_weights());
  bool counter = false;
  bool marks[64] = {};
  mean.finish({tensor_view<float>(c.global_table.data(), {64, 64}),
               tensor_view<bool>(&counter, std::initializer_list<std::int64_t>{}),
               tensor_view<bool>(marks, {64})});
  CHECK(counter);
  for (std::int64_t n = 0; n < 64; ++n) CHECK(marks[n] == c.part(31)[c.rows].contains(n));
}

namespace {

double halved(std::uint64_t rounds_passed) { return 1.0 / static_cast<double>(1 + rounds_passed); }
double negative(std::uint64_t) { return -1; }
double no_number(std::uint64_t) { return std::numeric_limits<double>::quiet_NaN(); }

/// One element of one value, and clients that come at any round.
struct one_element {
  subfed::model net;
  subfed::tensor_id x = net.tensor("x", {1});

  submodel of(std::uint64_t client, std::uint64_t round) const {
    return submodel(net, {}, {.round = round, .client = client});
  }
  subfed::update_outcome add(selective_average<float>& mean, std::uint64_t client,
                             std::uint64_t round, float value, double weight = 1) const {
    return mean.add(of(client, round), {tensor_view<const float>(&value, {1})}, weight);
  }
};

float finished(const selective_average<float>& mean, float before = 0) {
  mean.finish({tensor_view<float>(&before, {1})});
  return before;
}

}  // namespace

TEST_CASE("add says what became of the update, and the report lists who was left out") {
  using subfed::fate;
  const one_element e;
  selective_average<float> mean(e.net, {.on_non_finite = non_finite::skip_client,
                                        .round = 7,
                                        .on_late = subfed::late_update::skip,
                                        .on_repeated = subfed::repeated_update::skip});
  const float inf = std::numeric_limits<float>::infinity();
  using outcome = subfed::update_outcome;
  const outcome late{.fate = fate::late, .client = 2, .round = 6};
  const outcome early{.fate = fate::early, .client = 3, .round = 8};
  const outcome bad{.fate = fate::non_finite, .client = 4, .round = 7, .tensor = "x", .element = 0};
  const outcome again{.fate = fate::repeated, .client = 1, .round = 7};
  CHECK(e.add(mean, 1, 7, 2, 3) == outcome{.client = 1, .round = 7, .weight = 3});
  CHECK(e.add(mean, 2, 6, 100) == late);
  CHECK(e.add(mean, 3, 8, 100) == early);
  CHECK(e.add(mean, 4, 7, inf) == bad);
  CHECK(e.add(mean, 1, 7, 100) == again);
  CHECK(e.add(mean, 4, 7, 6, 1));  // a better one of the client whose first was left out
  CHECK_FALSE(e.add(mean, 4, 7, 6, 1));
  CHECK(e.add(mean, 5, 7, 50, 0) == outcome{.client = 5, .round = 7, .weight = 0});
  CHECK(finished(mean) == 3);
  const average_report& report = mean.report();
  CHECK(report.clients == 3);
  CHECK(report.late_clients == 2);
  CHECK(report.repeated_clients == 2);
  CHECK(report.skipped_clients == 1);
  CHECK(report.refused_clients == 0);
  outcome once_more = again;
  once_more.client = 4;
  CHECK(report.left_out == std::vector<outcome>{late, early, bad, again, once_more});
}

TEST_CASE("an update with left-out elements says how many it has, and is taken") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  selective_average<float> mean(net, {.on_non_finite = non_finite::skip_element});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{nan, 2, nan};
  const auto outcome =
      mean.add(submodel::full(net), {tensor_view<const float>(values.data(), {3})});
  CHECK(outcome);
  CHECK(outcome.skipped_elements == 2);
  CHECK(mean.report().left_out.empty());
}

TEST_CASE(
    "late updates are weighed by the rounds that have passed, those of a later round left out") {
  const one_element e;
  selective_average<float> mean(
      e.net, {.round = 7, .on_late = subfed::late_update::weigh, .late_weight = halved});
  CHECK(e.add(mean, 1, 7, 8, 2).weight == 2);
  CHECK(e.add(mean, 2, 6, 2, 2).weight == 1);   // 2 / (1 + 1)
  CHECK(e.add(mean, 3, 4, 4, 4).weight == 1);   // 4 / (1 + 3)
  CHECK(e.add(mean, 1, 6, 10, 2).weight == 1);  // another round: no repetition
  CHECK(e.add(mean, 9, 8, 1000, 1).fate == subfed::fate::early);
  CHECK(message_of([&] { e.add(mean, 3, 4, 4, 4); }) ==
        "subfed: average: the update of client 3 of round 4 is the second one of that client");
  CHECK(finished(mean) == 6.4f);  // (2 8 + 2 + 4 + 10) / 5
  CHECK(mean.report().clients == 4);
  CHECK(mean.report().late_clients == 1);
}

TEST_CASE(
    "options about rounds that do not go together are refused, and late weights that are none") {
  const one_element e;
  const auto made = [&](const average_options& options) {
    return message_of([&] { selective_average<float>(e.net, options); });
  };
  CHECK(made({.round = 7, .on_late = subfed::late_update::weigh}) ==
        "subfed: average: on_late is weigh, but no late_weight is given");
  CHECK(made({.round = 7, .late_weight = halved}) ==
        "subfed: average: a late_weight is given, but on_late is not weigh");
  CHECK(made({.on_late = subfed::late_update::skip}) ==
        "subfed: average: on_late or on_repeated is set, but no round is given");
  CHECK(made({.on_repeated = subfed::repeated_update::skip}) ==
        "subfed: average: on_late or on_repeated is set, but no round is given");
  for (const auto factor : {negative, no_number}) {
    selective_average<float> mean(
        e.net, {.round = 7, .on_late = subfed::late_update::weigh, .late_weight = factor});
    CHECK(message_of([&] {
            e.add(mean, 2, 5, 1, 3);
          }).find("the weight of client 2 of round 5, 3, times ") != std::string::npos);
    CHECK(mean.report() == average_report{});
  }
}

TEST_CASE("a late weight that no double holds is refused, not 0") {
  const one_element e;
  const auto tiny = [](std::uint64_t passed) { return passed == 4 ? 0.0 : 0x1p-600; };
  const average_options options{
      .round = 7, .on_late = subfed::late_update::weigh, .late_weight = tiny};
  selective_average<float> mean(e.net, options);
  CHECK(message_of([&] { e.add(mean, 2, 5, 1, 0x1p-600); }) ==
        "subfed: average: the weight of client 2 of round 5, 2.40991987e-181, times "
        "2.40991987e-181 for 2 rounds passed is too small for a double; 0 leaves its values "
        "out");
  CHECK(message_of([&] { e.add(mean, 2, 5, 1, 0x1.8p-474); }).find("too small") !=
        std::string::npos);  // half of the least double is missing
  CHECK(mean.report() == average_report{});
  CHECK(e.add(mean, 2, 5, 3, 0x1p-474).weight == 0x1p-1074);  // exact
  CHECK(e.add(mean, 3, 5, 5, 0x1.8p-473).weight == 0x1.8p-1073);
  CHECK(e.add(mean, 4, 5, 9, 0).weight == 0);
  CHECK(e.add(mean, 5, 3, 9, 0x1p-600).weight == 0);
  CHECK(finished(mean) == 4.5f);
}

TEST_CASE("the list of those left out ends, the counts do not; merging joins both") {
  const one_element e;
  const average_options options{.round = 7, .on_late = subfed::late_update::skip};
  selective_average<float> first(e.net, options), second(e.net, options);
  for (std::uint64_t c = 0; c < 700; ++c) {
    e.add(first, c, 1, 0);
    e.add(second, 1000 + c, 1, 0);
  }
  first.merge(second);
  CHECK(first.report().late_clients == 1400);
  REQUIRE(first.report().left_out.size() == average_report::most_listed);
  CHECK(first.report().left_out[699].client == 699);
  CHECK(first.report().left_out[700].client == 1000);
}

TEST_CASE("a merged average has seen the clients of both, and counts them by round and client") {
  const one_element e;
  selective_average<float> east(e.net, {.round = 7}), west(e.net, {.round = 7});
  e.add(east, 1, 7, 2);
  e.add(west, 2, 7, 4);
  east.merge(west);
  CHECK(message_of([&] { e.add(east, 2, 7, 4); }) ==
        "subfed: average: the update of client 2 of round 7 is the second one of that client");
  CHECK(finished(east) == 3);
}

TEST_CASE("errors about an update carry its client, and its tensor where they are about one") {
  const one_element e;
  const auto about = [&](auto&& f) {
    try {
      f();
    } catch (const subfed::error& problem) {
      return std::to_string(problem.client().value_or(0)) + " " + problem.tensor();
    }
    return std::string("nothing was thrown");
  };
  selective_average<float> mean(e.net, {.on_non_finite = non_finite::refuse, .round = 7});
  CHECK(about([&] { e.add(mean, 9, 6, 1); }) == "9 ");
  CHECK(about([&] { e.add(mean, 9, 7, 1, -1); }) == "9 ");
  CHECK(about([&] { e.add(mean, 9, 7, std::numeric_limits<float>::infinity()); }) == "9 x");
  const std::vector<float> two{1, 2};
  CHECK(about([&] { mean.add(e.of(9, 7), {tensor_view<const float>(two.data(), {2})}); }) == "9 x");
  CHECK(about([&] { mean.add(e.of(9, 7), {}); }) == "9 ");
}

TEST_CASE("who held what: under policies, weights, restrictions, dense weights and merges") {
  for (std::uint64_t n = 0; n < 40; ++n) {
    INFO("seed ", n);
    seeded random(n);
    const auto options = support::options_number(n);
    support::cohort<float> group = cohort_with_bad_elements<float>(random, 6);
    average_report report;
    const auto expected = group.expected(options, report);
    auto first = mean_of(group, {0, 1, 2}, options);
    first.merge(mean_of(group, {3, 4, 5}, options));
    subfed::held_elements of_cohort;
    const auto updates = group.updates();
    const auto views = group.global_views();
    subfed::average_cohort<float>(group.net, updates, tensor_views<float>(views), of_cohort,
                                  options);
    for (const auto& held : {mean_of(group, {0, 1, 2, 3, 4, 5}, options).held(), first.held()}) {
      CHECK(held == of_cohort);
      CHECK(held.count() == report.held);
      for (std::size_t t = 0; t < expected.size(); ++t) {
        for (std::size_t i = 0; i < expected[t].size(); ++i) {
          CHECK(held.test(subfed::tensor_id(t), static_cast<std::int64_t>(i)) ==
                expected[t][i].held);
        }
      }
    }
  }
}

TEST_CASE("left-out elements cost a tensor its weights once, whatever the number of clients") {
  const combed c;
  subfed::model net;
  const auto rows = net.group("rows", 64);
  net.tensor("first", {rows});
  net.tensor("second", {rows, 4});
  selective_average<float> mean(net, {.on_non_finite = non_finite::skip_element});
  const auto sub = submodel::full(net);
  std::vector<float> first(64, 1), second(256, 2);
  const auto add = [&](double weight) {
    return mean.add(sub,
                    {tensor_view<const float>(first.data(), {64}),
                     tensor_view<const float>(second.data(), {64, 4})},
                    weight);
  };
  add(1);
  std::fill(second.begin() + 1, second.end(), std::numeric_limits<float>::quiet_NaN());
  second[0] = 5;
  for (int i = 0; i < 3; ++i) CHECK(add(1).skipped_elements == 255);
  CHECK_FALSE(mean.has_dense_weights());  // the tensor of which nothing was left out needs none
  std::fill(second.begin(), second.end(), 6.0f);
  first[3] = 6;
  add(1);
  std::vector<float> a(64, 0), b(256, 0);
  const auto report =
      mean.finish({tensor_view<float>(a.data(), {64}), tensor_view<float>(b.data(), {64, 4})});
  CHECK(a[3] == 2);  // (4 1 + 6) / 5
  CHECK(a[4] == 1);
  CHECK(b[0] == 4.6f);  // (2 + 3 5 + 6) / 5
  CHECK(b[1] == 4);     // (2 + 6) / 2
  CHECK(report.skipped_elements == 3 * 255);
}

TEST_CASE(
    "tensors of several parts are averaged right with weights for every element, in any layout") {
  subfed::model net;
  const auto rows = net.group("rows", 700);
  const auto columns = net.group("columns", 500);
  net.tensor("x", {rows, columns, 2});
  selective_average<float> mean(net, {.on_non_finite = non_finite::skip_element});
  std::vector<float> values(700000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1013);
  values[123457] = std::numeric_limits<float>::quiet_NaN();
  mean.add(submodel::full(net), {tensor_view<const float>(values.data(), {700, 500, 2})}, 3);
  CHECK(mean.has_dense_weights());
  // Column-major, so that a step along the first dimension is one element.
  std::vector<float> global(700000, -1.0f);
  mean.finish({tensor_view<float>(global.data(), {700, 500, 2}, {1, 700, 350000})});
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = i / 1000 + i / 2 % 500 * 700 + i % 2 * 350000;
    wrong += global[at] == (i == 123457 ? -1.0f : values[i]) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a sum of unsigned integers over 2^64 is refused") {
  subfed::model net;
  net.tensor("n", std::initializer_list<subfed::dimension>{});
  const std::uint64_t large = std::uint64_t{1} << 63;
  std::uint64_t global = 5;
  const std::initializer_list<std::int64_t> scalar{};
  selective_average<void> mean(net, {.integers = integer_rule::sum});
  for (int i = 0; i < 2; ++i) {
    mean.add(submodel::full(net), {tensor_view<const std::uint64_t>(&large, scalar)});
  }
  CHECK(message_of([&] {
          mean.finish({tensor_view<std::uint64_t>(&global, scalar)});
        }).find("in tensor 'n' does not fit its type") != std::string::npos);
  CHECK(global == 5);
}

namespace {

/// All numbers that an average keeps, with the bits of those that are not a NaN.
template <class T>
std::vector<std::uint64_t> numbers_of(const selective_average<T>& mean) {
  std::vector<std::uint64_t> out;
  const auto put = [&](double x) {
    out.push_back(std::bit_cast<std::uint64_t>(x == x ? x : std::numeric_limits<double>::max()));
  };
  const auto put_all = [&](const auto& numbers) {
    out.push_back(numbers.size());
    for (const auto x : numbers) put(static_cast<double>(x));
  };
  subfed::detail::internals::open(
      mean, [&](const auto&, const auto&, const auto& state, const auto& holders, bool dense,
                const auto& seen, double cohort_weight, const auto&) {
        for (const auto& own : state) {
          put_all(own.sums);
          put_all(own.fixed_sums);
          put_all(own.weights);
          own.integers.for_each_held(
              [&](std::int64_t i) { out.push_back(static_cast<std::uint64_t>(i)); });
          own.counters.for_each_held(
              [&](std::int64_t i) { out.push_back(static_cast<std::uint64_t>(i)); });
          put(own.largest);
          for (const std::int64_t x : {own.range.low, own.range.high, own.range.exponent}) {
            out.push_back(static_cast<std::uint64_t>(x));
          }
          out.push_back(own.format ? 1 + static_cast<std::uint64_t>(own.format->bits) : 0);
        }
        for (const auto& e : holders.entries()) put(e.weight);
        out.push_back(dense ? 1 : 0);
        for (const auto& [round, client] : seen) out.push_back(1000 * round + client);
        put(cohort_weight);
      });
  return out;
}

/// Adding updates in groups of any size, to an average that may have been used before, is adding them
/// one by one.
template <class T, class U>
void check_in_groups(const subfed::model& net, const std::vector<subfed::update<U>>& updates,
                     const average_options& options, seeded& random) {
  selective_average<T> one_by_one(net, options), grouped(net, options);
  std::vector<subfed::update_outcome> expected, outcomes;
  for (const auto& u : updates) {
    expected.push_back(one_by_one.template add<U>(u.sub, u.tensors, u.weight));
  }
  if (random.one_in(3)) {
    grouped.template add<U>(updates);
    grouped.clear();
  }
  const std::span<const subfed::update<U>> all(updates);
  for (std::size_t from = 0; from < all.size();) {
    const auto left = static_cast<std::int64_t>(all.size() - from);
    const auto count = static_cast<std::size_t>(random.between(0, left));
    for (auto& each : grouped.template add<U>(all.subspan(from, count))) outcomes.push_back(each);
    from += count;
  }
  CHECK(outcomes == expected);
  CHECK(grouped.report() == one_by_one.report());
  CHECK(numbers_of(grouped) == numbers_of(one_by_one));
}

/// A number of a size that varies, with all the bits of its type.
template <class T>
T number_of_any_size(seeded& random) {
  const double whole = static_cast<double>(random.between(-1000003, 1000003));
  return T(std::ldexp(whole / 1000003, static_cast<int>(random.between(-9, 9))));
}
double weight_of_any_size(seeded& random) {
  return random.one_in(8) ? 0 : static_cast<double>(random.between(1, 999)) / 500;
}

/// Two tables of several tiles and a vector, and clients of any scheme with elements of a type.
struct wide_world {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 211);
  subfed::group_id columns = net.group("columns", 64);
  subfed::tensor_id table = net.tensor("table", {rows, columns, 3});
  subfed::tensor_id other = net.tensor("other", {columns, rows, 2});
  subfed::tensor_id vector = net.tensor("vector", {columns});
  subfed::tensor_id steps = net.tensor("steps", {columns}, subfed::role::counter);

  submodel part(seeded& random, std::uint64_t client, std::uint64_t round) const {
    const subfed::draw_key who{.seed = 3,
                               .round = round,
                               .client = client,
                               .capacity = 1.0 / static_cast<double>(random.between(1, 4))};
    if (random.one_in(3)) return subfed::draw(net, subfed::random_subset{}, who);
    if (random.one_in(3)) return subfed::draw(net, subfed::prefix{}, who);
    return subfed::draw(net, subfed::rolling{}, who);
  }
};

/// A client's tensors, each of a type drawn from some, or of one.
class typed_tensors {
 public:
  template <class... E>
  void add(seeded& random, const submodel& sub, std::int64_t odd) {
    for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
      const std::int64_t which = random.between(0, static_cast<std::int64_t>(sizeof...(E)) - 1);
      std::int64_t number = 0;
      ((number++ == which ? add_one<E>(random, sub.extents(subfed::tensor_id(t)), odd) : void()),
       ...);
    }
  }
  const std::vector<tensor_view<const void>>& views() const noexcept { return views_; }
  template <class E>
  std::vector<tensor_view<const E>> views_of() const {
    std::vector<tensor_view<const E>> out;
    for (const auto& view : views_) out.push_back(view.template as<E>());
    return out;
  }

 private:
  template <class E>
  void add_one(seeded& random, const std::vector<std::int64_t>& shape, std::int64_t odd) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    const auto values = std::make_shared<std::vector<E>>();
    for (std::int64_t i = 0; i < size; ++i) values->push_back(number_of_any_size<E>(random));
    if (odd != 0 && random.one_in(2)) {
      for (std::size_t i = 5; i < values->size(); i += 97) {
        (*values)[i] = E(std::numeric_limits<double>::quiet_NaN());
      }
    }
    views_.emplace_back(tensor_view<const E>(values->data(), shape));
    memory_.push_back(values);
  }
  std::vector<tensor_view<const void>> views_;
  std::vector<std::shared_ptr<void>> memory_;
};

/// What a group may be given: weights, policies, rounds, fixed-point sums.
average_options options_of_group(std::uint64_t n) {
  average_options out = support::options_number(n);
  if (n % 3 == 1) {
    out.round = 5;
    out.on_late = n % 2 == 0 ? subfed::late_update::skip : subfed::late_update::weigh;
    if (n % 2 != 0) out.late_weight = halved;
    out.on_repeated = subfed::repeated_update::skip;
  }
  if (n % 5 >= 3) {
    const bool clips = n % 5 == 3 && out.on_non_finite != non_finite::propagate;
    out.sums = subfed::fixed_point{.bound = 256, .clients = 64, .total_weight = 256};
    out.sums->on_out_of_bound =
        clips ? subfed::out_of_bound::clip : subfed::out_of_bound::skip_client;
  }
  out.integers = n % 2 == 0 ? integer_rule::sum : integer_rule::max;
  return out;
}

/// Clients of a wide world, some of another round or for the second time; elements of the types E.
template <class T, class U, class... E>
void check_wide_groups(std::uint64_t seed, std::int64_t clients) {
  INFO("seed ", seed);
  seeded random(seed);
  const wide_world world;
  const average_options options = options_of_group(seed);
  std::vector<typed_tensors> sent(static_cast<std::size_t>(clients));
  std::vector<subfed::update<U>> updates;
  for (std::size_t c = 0; c < sent.size(); ++c) {
    const auto client = static_cast<std::uint64_t>(random.between(0, 2 * clients));
    const std::uint64_t round = random.one_in(4) ? 4 : 5;
    const submodel sub = world.part(random, client, round);
    sent[c].template add<E...>(random, sub, random.between(0, 3) / 3);
    if constexpr (std::is_void_v<U>) {
      updates.push_back({sub, sent[c].views(), weight_of_any_size(random)});
    } else {
      updates.push_back({sub, sent[c].template views_of<U>(), weight_of_any_size(random)});
    }
  }
  check_in_groups<T, U>(world.net, updates, options, random);
}

}  // namespace

TEST_CASE_TEMPLATE("a group of updates gives the bits of adding them one by one", T, float, double,
                   half, bfloat16) {
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto value = [](seeded& r) {
      return r.one_in(50) ? T(std::numeric_limits<double>::infinity()) : number_of_any_size<T>(r);
    };
    const auto network =
        seed % 3 == 0 ? support::large_network(random) : support::random_network(random);
    const support::cohort<T> group{random, network, random.between(1, 12), value,
                                   weight_of_any_size};
    check_in_groups<T, T>(group.net, group.updates(), options_of_group(seed), random);
  }
}

TEST_CASE("a group of updates in several tiles gives the bits of adding them one by one") {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    check_wide_groups<float, float, float>(seed, 6);
    check_wide_groups<double, double, double>(100 + seed, 4);
    check_wide_groups<float, half, half>(200 + seed, 5);
    check_wide_groups<void, void, float, half, double, bfloat16>(300 + seed, 6);
  }
  check_wide_groups<float, float, float>(500, 40);  // the weights become dense on the way
  check_wide_groups<float, float, float>(503, 40);
}

TEST_CASE("integers in a group are merged one by one") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    seeded random(seed);
    counted_table<std::int64_t> c;
    average_options options = options_of_group(seed);
    options.sums.reset();
    std::vector<std::vector<std::int64_t>> marks(8, std::vector<std::int64_t>(32));
    std::vector<subfed::update<void>> updates;
    for (std::uint64_t client = 0; client < 8; ++client) {
      for (std::int64_t& mark : marks[client]) mark = random.between(-5, 5);
      updates.push_back({c.part(client),
                         {tensor_view<const float>(c.client_table.data(), {32, 32}),
                          tensor_view<const std::int64_t>(&marks[client][0],
                                                          std::initializer_list<std::int64_t>{}),
                          tensor_view<const std::int64_t>(marks[client].data(), {32})}});
    }
    if (options.round) options.round = 0;
    check_in_groups<void, void>(c.net, updates, options, random);
  }
}

TEST_CASE("products of very different sizes in one group are scaled as one by one") {
  subfed::model net;
  const auto g = net.group("g", 5);
  net.tensor("x", {g});
  seeded random(7);
  std::vector<std::vector<double>> values;
  std::vector<subfed::update<double>> updates;
  for (const int exponent : {0, 900, -3, 1000, 990, 5, 1010}) {
    std::vector<double>& own = values.emplace_back();
    for (int i = 0; i < 5; ++i) own.push_back(std::ldexp(random.unit() - 0.5, exponent));
  }
  for (const auto& own : values) {
    updates.push_back(
        {submodel::full(net), {tensor_view<const double>(own.data(), {5})}, 1 + random.unit()});
  }
  for (int again = 0; again < 8; ++again) {
    check_in_groups<double, double>(net, updates, {}, random);
  }
}

TEST_CASE("a group with an update that is refused leaves the average as it was") {
  const support::refusal_setting s;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto check = [&](const average_options& options, const subfed::update<float>& bad,
                         std::int64_t counted) {
    selective_average<float> mean(s.net, options);
    mean.add(std::vector{s.update({0, 1}, 1), s.update({2}, 2)});
    auto report = mean.report();
    const auto before = numbers_of(mean);
    const std::vector<subfed::update<float>> group{s.update({0}, 3), bad, s.update({1, 2}, 4)};
    CHECK(message_of([&] { mean.add(group); }).find("client 7") != std::string::npos);
    report.refused_clients += counted;
    CHECK(mean.report() == report);
    CHECK(numbers_of(mean) == before);
    CHECK(mean.add(std::span(group).subspan(2)).front());
  };
  check({}, s.update({0}, 7, 0, -1), 0);
  check({.round = 0}, s.update({0}, 7, 1), 1);
  auto odd = s.update({0}, 7);
  odd.tensors = {tensor_view<const float>(&nan, {1, 2}, {0, 0}), s.update({0}, 7).tensors[1]};
  check({.on_non_finite = non_finite::refuse}, odd, 0);
  const subfed::fixed_point narrow{.bound = 100, .clients = 8};
  const float large = 101;
  odd.tensors = {tensor_view<const float>(&large, {1, 2}, {0, 0}), s.update({0}, 7).tensors[1]};
  check({.sums = narrow}, odd, 0);
}

TEST_CASE("an empty group adds nothing") {
  const support::refusal_setting s;
  selective_average<float> mean(s.net);
  CHECK(mean.add(std::span<const subfed::update<float>>{}).empty());
  CHECK(mean.report() == average_report{});
}
