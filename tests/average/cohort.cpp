// SPDX-License-Identifier: MIT
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/capacity.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>

#include <support/average_properties.hpp>
#include <support/executors.hpp>
#include <support/far_memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

using subfed::average_cohort;
using subfed::average_options;
using subfed::average_report;
using subfed::bfloat16;
using subfed::half;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::update;
using support::message_of;
using support::seeded;

namespace {

const auto at_once = [](const auto& net, const auto& updates, const auto& globals,
                        const average_options& options) {
  return support::at_once(net, updates, globals, options);
};

/// The average of clients that all hold the one element of a model, numbered as they come unless
/// numbers are given.
template <class T>
T mean_of(const std::vector<T>& values, const std::vector<std::uint64_t>& clients = {}) {
  subfed::model net;
  net.tensor("x", {1});
  std::vector<update<T>> updates;
  for (std::size_t i = 0; i < values.size(); ++i) {
    updates.push_back({submodel(net, {}, {.client = clients.empty() ? i : clients[i]}),
                       {tensor_view<const T>(&values[i], {1})},
                       1});
  }
  T global{};
  average_cohort<T>(net, updates, {tensor_view<T>(&global, {1})});
  return global;
}

}  // namespace

TEST_CASE_TEMPLATE("one pass gives the averages that were worked out by hand", T, float, double,
                   half, bfloat16) {
  support::check_examples<T>(at_once);
}

TEST_CASE_TEMPLATE("one pass equals the dense loop for any network, nodes, layouts and weights", T,
                   float, double, half, bfloat16) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    support::check_against_oracle<T>(seed, {}, at_once);
  }
}

TEST_CASE("one pass equals the dense loop under every combination of options") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    support::check_against_oracle<float>(1000 + n, support::options_number(n), at_once);
    support::check_against_oracle<double>(2000 + n, support::options_number(n), at_once);
  }
}

TEST_CASE_TEMPLATE("one pass equals the dense loop for long rows, kernels and many clients", T,
                   float, double, half) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    average_options options;
    if (seed % 8 == 7) options.on_non_finite = subfed::non_finite::skip_element;
    if (seed % 8 == 6) options.divide_by = subfed::divisor::cohort;
    support::check_against_oracle<T>(300 + seed, options, at_once, {support::large_network, 13});
  }
}

TEST_CASE("half types are summed wider and rounded once, to nearest even") {
  const auto b = [](double x) { return bfloat16(x); };
  const auto h = [](double x) { return half(x); };
  CHECK(mean_of(std::vector<bfloat16>(512, b(1))).bits == 0x3F80);
  CHECK(mean_of<bfloat16>({b(1), b(1.0078125)}).bits == 0x3F80);
  CHECK(mean_of<bfloat16>({b(1.0078125), b(1.015625)}).bits == 0x3F82);
  CHECK(mean_of(std::vector<half>(4096, h(32))).bits == 0x5000);
  CHECK(mean_of<half>({h(60000), h(60000), h(24000)}).bits == 0x79DC);
  CHECK(mean_of(std::vector<half>(4096, h(1))).bits == 0x3C00);
}

TEST_CASE("float is summed in double: no stall, no cancellation") {
  CHECK(std::bit_cast<std::uint32_t>(mean_of(std::vector<float>(1000, 0.1f))) == 0x3DCCCCCDu);
  CHECK(mean_of<float>({3e38f, 3e38f, 3e38f}) == 3e38f);
  CHECK(mean_of<float>({16777216.0f, 1.0f, 1.0f}) == 5592406.0f);
}

TEST_CASE("the order of arrival does not show in the bits, for float and for double") {
  std::array<std::uint64_t, 3> order{0, 1, 2};
  const std::array<float, 3> singles{1e8f, 1.0f, -1e8f};
  const std::array<double, 3> doubles{1e16, 1.0, -1e16};
  std::vector<double> found;
  do {
    std::vector<float> f;
    std::vector<double> d;
    for (const std::uint64_t c : order) {
      f.push_back(singles[c]);
      d.push_back(doubles[c]);
    }
    const std::vector<std::uint64_t> clients(order.begin(), order.end());
    CHECK(std::bit_cast<std::uint32_t>(mean_of(f, clients)) == 0x3EAAAAABu);
    found.push_back(mean_of(d, clients));
  } while (std::next_permutation(order.begin(), order.end()));
  REQUIRE(found.size() == 6);
  for (const double x : found) CHECK(x == found[0]);
}

TEST_CASE_TEMPLATE("clients in any order give the same bits, for any numbers and weights", T, float,
                   double, half) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto value = [](seeded& r) {
      return T((r.unit() - 0.5) * std::ldexp(1.0, static_cast<int>(r.between(-10, 10))));
    };
    const auto weight = [](seeded& r) { return r.unit() + 0.01; };
    support::cohort<T> group{random, support::random_network(random), 6, value, weight};
    auto updates = group.updates();
    const auto options = support::options_number(seed);
    const auto before = group.elements();
    const average_report report = at_once(group.net, updates, group.global_views(), options);
    const auto expected = group.elements();
    for (int again = 0; again < 4; ++again) {
      random.shuffle(updates);
      for (std::size_t t = 0; t < group.globals.size(); ++t) {
        group.globals[t].fill(
            [&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
      }
      support::check_report(at_once(group.net, updates, group.global_views(), options), report);
      for (std::size_t t = 0; t < expected.size(); ++t) {
        CHECK(support::same_bits(group.globals[t].elements(), expected[t]));
      }
    }
  }
}

TEST_CASE("how the parts of an average are run does not show in the bits, nor in the report") {
  // 3 x 300000 elements are several parts.
  subfed::model net;
  const auto rows = net.group("rows", 300);
  const auto columns = net.group("columns", 1000);
  net.tensor("x", {3, rows, columns});
  net.tensor("y", {columns});
  std::vector<std::vector<float>> tensors;
  std::vector<update<float>> updates;
  seeded random(1);
  for (std::uint64_t c = 0; c < 4; ++c) {
    const submodel sub(net,
                       {index_set::window(300, random.between(0, 299), random.between(1, 300)),
                        index_set::window(1000, random.between(0, 999), random.between(1, 1000))},
                       {.client = c});
    std::vector<tensor_view<const float>> views;
    for (std::size_t t = 0; t < 2; ++t) {
      const auto shape = sub.extents(subfed::tensor_id(t));
      tensors.emplace_back(static_cast<std::size_t>(support::elements_of(shape)));
      for (float& x : tensors.back()) x = static_cast<float>(random.unit());
      views.emplace_back(tensors.back().data(), shape);
    }
    updates.push_back({sub, tensor_views<const float>(views), random.unit() + 0.1});
  }

  subfed::selective_average<float> mean(net);
  for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);

  std::vector<std::vector<float>> by_cohort;
  std::vector<std::vector<float>> by_stream;
  std::vector<average_report> reports;
  const auto run = [&](auto&& executor) {
    std::vector<float> x(900000, -1);
    std::vector<float> y(1000, -1);
    const tensor_views<float> globals{tensor_view<float>(x.data(), {3, 300, 1000}),
                                      tensor_view<float>(y.data(), {1000})};
    reports.push_back(average_cohort<float>(net, updates, globals, {}, executor));
    by_cohort.push_back(x);
    by_cohort.back().insert(by_cohort.back().end(), y.begin(), y.end());
    std::fill(x.begin(), x.end(), -1.0f);
    std::fill(y.begin(), y.end(), -1.0f);
    reports.push_back(mean.finish(globals, executor));
    by_stream.push_back(x);
    by_stream.back().insert(by_stream.back().end(), y.begin(), y.end());
  };
  struct counting_backwards {
    std::int64_t* parts;
    void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& f) const {
      *parts = n;
      support::backwards{}.parallel_for(n, f);
    }
  };
  std::int64_t parts = 0;
  run(subfed::serial{});
  run(counting_backwards{&parts});
  run(support::three_threads{});
  CHECK(parts > 2);
  CHECK(reports[0].held > 0);
  for (const auto& r : reports) support::check_report(r, reports[0]);
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(support::same_bits(by_cohort[i], by_cohort[0]));
    CHECK(support::same_bits(by_stream[i], by_stream[0]));
  }

  // And they are the bits of the definition: long runs that few clients hold.
  std::vector<double> sums(by_cohort[0].size());
  std::vector<double> weights(sums.size());
  for (const auto& u : updates) {
    const auto add = [&](std::size_t to, float value) {
      const volatile double product = u.weight * value;  // not fused with the sum
      sums[to] += product;
      weights[to] += u.weight;
    };
    const index_set& held_rows = u.sub[rows];
    const index_set& held_columns = u.sub[columns];
    std::size_t from = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      for (const std::int64_t r : held_rows) {
        for (const std::int64_t c : held_columns) {
          add((k * 300 + static_cast<std::size_t>(r)) * 1000 + static_cast<std::size_t>(c),
              u.tensors[0].data_handle()[from++]);
        }
      }
    }
    from = 0;
    for (const std::int64_t c : held_columns) {
      add(900000 + static_cast<std::size_t>(c), u.tensors[1].data_handle()[from++]);
    }
  }
  std::vector<float> expected(sums.size(), -1);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (weights[i] > 0) expected[i] = static_cast<float>(sums[i] / weights[i]);
  }
  CHECK(support::same_bits(by_cohort[0], expected));
  CHECK(support::same_bits(by_stream[0], expected));
}

TEST_CASE("the layout of any tensor does not show in the bits") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto value = [](seeded& r) { return static_cast<float>(r.unit() - 0.5); };
    const auto weight = [](seeded& r) { return r.unit() + 0.01; };
    support::cohort<float> group{random, support::random_network(random), 5, value, weight};
    const auto before = group.elements();
    at_once(group.net, group.updates(), group.global_views(), {});
    const auto expected = group.elements();

    std::vector<support::strided<float>> globals;
    for (std::size_t t = 0; t < before.size(); ++t) {
      globals.emplace_back(support::random_layout(random, group.globals[t].extents()));
      globals.back().fill([&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
      for (auto& c : group.clients) {
        const auto own = c.tensors[t].elements();
        support::strided<float> other(support::random_layout(random, c.tensors[t].extents()));
        other.fill([&](std::int64_t n) { return own[static_cast<std::size_t>(n)]; });
        c.tensors[t] = other;
      }
    }
    std::vector<tensor_view<float>> views;
    for (auto& g : globals) views.push_back(g.view());
    at_once(group.net, group.updates(), views, {});
    for (std::size_t t = 0; t < expected.size(); ++t) {
      CHECK(support::same_bits(globals[t].elements(), expected[t]));
      CHECK(globals[t].rest_untouched());
    }
  }
}

TEST_CASE("whoever holds an element alone gives it its value, whatever the weight") {
  // Clients with one window each that do not meet; weights without a short binary fraction.
  support::for_all("x w / w is within one rounding of x", [] {
    const auto weight = *rc::gen::suchThat(rc::gen::arbitrary<double>(),
                                           [](double w) { return w > 1e-100 && w < 1e100; });
    const auto x = *rc::gen::map(rc::gen::inRange(-1000000, 1000000),
                                 [](int n) { return static_cast<float>(n) / 977; });
    subfed::model net;
    const auto g = net.group("g", 2);
    net.tensor("x", {g});
    const float other = 1;
    float global[2] = {5, 6};
    const std::vector<update<float>> updates{{submodel(net, {index_set(2, {1})}, {.client = 0}),
                                              {tensor_view<const float>(&x, {1})},
                                              weight},
                                             {submodel(net, {index_set(2, {0})}, {.client = 1}),
                                              {tensor_view<const float>(&other, {1})},
                                              0.1}};
    average_cohort<float>(net, updates, {tensor_view<float>(global, {2})});
    RC_ASSERT(global[1] == x);
    RC_ASSERT(global[0] == 1.0f);
  });
}

TEST_CASE("elements that nobody holds keep their bits: NaN payloads, -0, denormal numbers") {
  subfed::model net;
  const auto g = net.group("g", 6);
  net.tensor("x", {g});
  const std::vector<std::uint32_t> odd{0x7FC12345u, 0xFFA00001u, 0x80000000u,
                                       0x00000001u, 0x7F800000u, 0x3F800000u};
  const float value = 2;
  for (const auto divide_by : {subfed::divisor::holders, subfed::divisor::cohort}) {
    for (const double weight : {0.0, 1.0}) {
      // As bytes: 32-bit x86 returns floats in registers that quiet NaNs.
      std::vector<float> global(odd.size());
      std::memcpy(global.data(), odd.data(), odd.size() * sizeof(float));
      const std::vector<update<float>> updates{
          {submodel(net, {index_set(6, {5})}), {tensor_view<const float>(&value, {1})}, weight}};
      average_options options;
      options.divide_by = divide_by;
      const auto report =
          average_cohort<float>(net, updates, {tensor_view<float>(global.data(), {6})}, options);
      support::check_report(
          report, {.clients = 1, .held = weight > 0 ? 1 : 0, .unheld = weight > 0 ? 5 : 6});
      CHECK(std::memcmp(global.data(), odd.data(), 5 * sizeof(float)) == 0);
      CHECK(global[5] == (weight > 0 ? 2.0f : 1.0f));
    }
  }
}

TEST_CASE("[Cheng, Alg. 1] is one scatter_add per client and one division by their number") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    support::cohort<double> group{random, support::random_network(random), random.between(1, 6),
                                  support::small_integer<double>, [](seeded&) { return 1.0; }};
    average_options options;
    options.divide_by = subfed::divisor::cohort;
    options.content = subfed::content::deltas;
    options.step = 0.75;
    std::vector<std::vector<double>> expected = group.elements();
    std::vector<std::vector<char>> held;
    for (const auto& tensor : expected) held.emplace_back(tensor.size(), 0);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      std::vector<double> sum(expected[t].size(), 0);
      for (const auto& c : group.clients) {
        subfed::scatter_add(c.tensors[t].view(), c.sub[subfed::tensor_id(t)],
                            tensor_view<double>(sum.data(), group.globals[t].extents()));
      }
      const auto m = static_cast<double>(group.clients.size());
      for (std::size_t i = 0; i < sum.size(); ++i) expected[t][i] += options.step / m * sum[i];
    }
    at_once(group.net, group.updates(), group.global_views(), options);
    const auto found = group.elements();
    for (std::size_t t = 0; t < expected.size(); ++t) {
      for (std::size_t i = 0; i < expected[t].size(); ++i) {
        CHECK(found[t][i] == doctest::Approx(expected[t][i]).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("deltas and parameters are two ways to say the same") {
  for (std::uint64_t n = 0; n < 20; ++n) {
    INFO("seed ", n);
    seeded random(n);
    support::cohort<double> group{random, support::random_network(random), random.between(1, 5),
                                  support::small_integer<double>, support::dyadic_weight};
    average_options options = support::options_number(n % 2);
    options.step = n % 3 == 0 ? 0.5 : 1;
    const auto before = group.elements();
    at_once(group.net, group.updates(), group.global_views(), options);
    const auto expected = group.elements();

    for (std::size_t t = 0; t < before.size(); ++t) {
      group.globals[t].fill([&](std::int64_t i) { return before[t][static_cast<std::size_t>(i)]; });
      for (auto& c : group.clients) {
        // Every element apart: a source with stride 0 cannot hold differences.
        const auto own = c.tensors[t].elements();
        const auto numbers = oracle::global_numbers(group.plan, group.plan.tensors[t], c.holds);
        support::strided<double> deltas(support::random_layout(random, c.tensors[t].extents()));
        deltas.fill([&](std::int64_t l) {
          const auto i = static_cast<std::size_t>(l);
          return numbers[i] < 0 ? own[i] : own[i] - before[t][static_cast<std::size_t>(numbers[i])];
        });
        c.tensors[t] = deltas;
      }
    }
    options.content = subfed::content::deltas;
    at_once(group.net, group.updates(), group.global_views(), options);
    const auto found = group.elements();
    for (std::size_t t = 0; t < expected.size(); ++t) {
      for (std::size_t i = 0; i < expected[t].size(); ++i) {
        CHECK(found[t][i] == doctest::Approx(expected[t][i]).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("an update that differs changes exactly the elements that the client holds") {
  subfed::model net;
  const auto out = net.group("out", 512);
  const auto in = net.group("in", 512);
  net.tensor("conv.weight", {out, in, 3, 3});
  const auto sub = submodel(net, {index_set::prefix(512, 256), index_set::prefix(512, 256)});
  std::vector<float> global(512 * 512 * 9, 1);
  const std::vector<float> local(256 * 256 * 9, 2);
  const std::vector<update<float>> updates{
      {sub, {tensor_view<const float>(local.data(), {256, 256, 3, 3})}, 1}};
  const auto report =
      average_cohort<float>(net, updates, {tensor_view<float>(global.data(), {512, 512, 3, 3})});
  CHECK(std::count(global.begin(), global.end(), 2.0f) == 589824);
  CHECK(std::count(global.begin(), global.end(), 1.0f) == 512 * 512 * 9 - 589824);
  CHECK(report.held == 589824);
}

TEST_CASE("capacities down to one node: the rest of the model stays") {
  subfed::model net;
  const auto a = net.group("a", 10);
  const auto b = net.group("b", 3);
  net.tensor("x", {a, b});
  const auto sub = subfed::draw(net, subfed::rolling{}, {.round = 12, .capacity = 0.001});
  REQUIRE(sub.size() == 1);
  std::vector<float> global(30, 1);
  const float value = 4;
  const std::vector<update<float>> updates{{sub, {tensor_view<const float>(&value, {1, 1})}, 3}};
  average_cohort<float>(net, updates, {tensor_view<float>(global.data(), {10, 3})});
  for (std::size_t i = 0; i < 30; ++i) CHECK(global[i] == (i == 2 * 3 + 0 ? 4 : 1));
}

TEST_CASE("data need no alignment beyond that of its type") {
  alignas(32) float buffer[16] = {};
  alignas(32) double wide[16] = {};
  subfed::model net;
  const auto g = net.group("g", 8);
  net.tensor("x", {g});
  const auto full = submodel::full(net);
  std::iota(buffer + 1, buffer + 9, 1.0f);
  std::iota(wide + 1, wide + 9, 1.0);
  alignas(32) float global[16] = {};
  alignas(32) double wide_global[16] = {};
  const std::vector<update<float>> updates{{full, {tensor_view<const float>(buffer + 1, {8})}, 1}};
  const std::vector<update<double>> wide_updates{
      {full, {tensor_view<const double>(wide + 1, {8})}, 1}};
  average_cohort<float>(net, updates, {tensor_view<float>(global + 3, {8})});
  average_cohort<double>(net, wide_updates, {tensor_view<double>(wide_global + 3, {8})});
  for (int i = 0; i < 8; ++i) {
    CHECK(global[3 + i] == static_cast<float>(i + 1));
    CHECK(wide_global[3 + i] == i + 1);
  }
}

TEST_CASE("offsets have 64 bits: a tensor of more than 2^32 elements") {
  constexpr std::int64_t n = 70000;
  const support::far_memory memory(static_cast<std::uint64_t>(n * n) * sizeof(float));
  if (memory.data() == nullptr) return;
  float* const global = reinterpret_cast<float*>(memory.data());
  subfed::model net;
  const auto rows = net.group("rows", n);
  const auto columns = net.group("columns", n);
  net.tensor("x", {rows, columns});
  CHECK(net.size() == n * n);
  const float first[4] = {1, 2, 3, 4};
  const float second[1] = {10};
  const std::vector<update<float>> updates{
      {submodel(net, {index_set(n, {0, n - 1}), index_set(n, {1, n - 2})}, {.client = 0}),
       {tensor_view<const float>(first, {2, 2})},
       1},
      {submodel(net, {index_set(n, {n - 1}), index_set(n, {n - 2})}, {.client = 1}),
       {tensor_view<const float>(second, {1, 1})},
       1}};
  const auto report = average_cohort<float>(net, updates, {tensor_view<float>(global, {n, n})});
  CHECK(global[1] == 1);
  CHECK(global[n - 2] == 2);
  CHECK(global[(n - 1) * n + 1] == 3);
  CHECK(global[(n - 1) * n + n - 2] == 7);
  CHECK(global[((n - 1) * n + n - 2) % (std::int64_t{1} << 32)] == 0);
  support::check_report(report, {.clients = 2, .held = 4, .unheld = n * n - 4});

  // The same as a client's tensor: global and local change places.
  subfed::model small;
  small.tensor("y", {2, 2});
  const tensor_view<const float> corners(global + 1, {2, 2}, {(n - 1) * n, n - 3});
  float out[4] = {};
  const std::vector<update<float>> one{{submodel::full(small), {corners}, 1}};
  average_cohort<float>(small, one, {tensor_view<float>(out, {2, 2})});
  CHECK(out[0] == 1);
  CHECK(out[1] == 2);
  CHECK(out[2] == 3);
  CHECK(out[3] == 7);
}

TEST_CASE("a cohort that is refused leaves every element as it was and says why") {
  support::refusal_setting s;
  std::vector<update<float>> updates{s.update({0, 1}, 3, 7), s.update({1, 2}, 5, 7)};
  average_options options;
  const auto refused = [&] {
    const std::string message =
        message_of([&] { average_cohort<float>(s.net, updates, s.globals(), options); });
    CHECK(s.untouched());
    return message;
  };

  SUBCASE("a negative weight") {
    updates[1].weight = -1;
    CHECK(refused().find(" is -1, expected a finite number that is not negative") !=
          std::string::npos);
  }
  SUBCASE("a weight that is no number, or infinite") {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()}) {
      updates[1].weight = bad;
      CHECK(refused().find(" is not finite, expected a finite number") != std::string::npos);
    }
  }
  SUBCASE("a submodel of another model") {
    subfed::model other;
    other.group("g", 3);
    updates[1].sub = submodel(other, {index_set(3, {1, 2})}, {.round = 7, .client = 5});
    CHECK(refused() == "subfed: average: the submodel of client 5 of round 7 is of another model");
  }
  SUBCASE("a tensor too few") {
    updates[1].tensors = {tensor_view<const float>(s.client_w.data(), {2, 2})};
    CHECK(refused() == "subfed: average: 1 client tensors are given for a model of 2");
  }
  SUBCASE("a client's tensor of another shape") {
    updates[1].tensors = {tensor_view<const float>(s.client_w.data(), {2, 2}),
                          tensor_view<const float>(s.client_b.data(), {3})};
    CHECK(refused() == "subfed: average: the client tensor 'b' has shape (3,), expected (2,)");
  }
  SUBCASE("a value that is not finite") {
    options.on_non_finite = subfed::non_finite::refuse;
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      std::vector<float> w{1, 2, 3, bad};
      updates[1].tensors = {tensor_view<const float>(w.data(), {2, 2}),
                            tensor_view<const float>(s.client_b.data(), {2})};
      CHECK(refused() ==
            "subfed: average: client 5 of round 7 has a value that is not finite in tensor 'w', at "
            "global element (2, 1)");
    }
  }
  SUBCASE("an update of another round") {
    options.round = 8;
    CHECK(refused() == "subfed: average: the update of client 3 of round 7 is not of round 8");
  }
  SUBCASE("a second update of a client") {
    options.round = 7;
    updates.push_back(s.update({0}, 3, 7));
    CHECK(refused() ==
          "subfed: average: the update of client 3 of round 7 is the second one of that client");
  }
  SUBCASE("a step that is not finite") {
    options.step = std::numeric_limits<double>::quiet_NaN();
    CHECK(refused() == "subfed: average: the step is not finite");
  }

  // What was refused leaves nothing behind.
  updates = {s.update({0, 1}, 3, 7), s.update({1, 2}, 5, 7)};
  average_cohort<float>(s.net, updates, s.globals());
  CHECK(s.global_b == std::vector<float>{70, 75, 80});
}

TEST_CASE("global tensors that are refused are not written to") {
  support::refusal_setting s;
  const std::vector<update<float>> updates{s.update({0, 1}, 3), s.update({1, 2}, 5)};
  const tensor_view<float> w(s.global_w.data(), {3, 2});
  const tensor_view<float> b(s.global_b.data(), {3});
  const auto refused = [&](const tensor_views<float>& globals) {
    const std::string message = message_of([&] { average_cohort<float>(s.net, updates, globals); });
    CHECK(s.untouched());
    return message;
  };
  CHECK(refused({w}) == "subfed: average: 1 global tensors are given for a model of 2");
  CHECK(refused({w, w}) ==
        "subfed: average: the global tensor 'b' has shape (3, 2), expected (3,)");
  CHECK(refused({w, tensor_view<float>(s.global_b.data(), {3}, {0})}) ==
        "subfed: average: the global tensor 'b' of shape (3,) and strides (0,) is written to, but "
        "has several indices for one element");
  CHECK(refused({tensor_view<float>(s.global_w.data(), {3, 2}, {1, 1}), b})
            .find("has several indices for one element") != std::string::npos);

  // A client's tensor in the memory of the global one.
  std::vector<update<float>> own = updates;
  own[1].tensors = {tensor_view<const float>(s.client_w.data(), {2, 2}),
                    tensor_view<const float>(s.global_b.data() + 1, {2})};
  CHECK(message_of([&] {
          average_cohort<float>(s.net, own, {w, b});
        }) == "subfed: average: the global and the local tensor 'b' overlap in memory");
  CHECK(s.untouched());
}

TEST_CASE("a client's tensor may be broadcast, and a global tensor of one element have stride 0") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g, 1});
  const float value = 5;
  std::vector<float> global{1, 2, 3};
  const std::vector<update<float>> updates{{submodel(net, {index_set(3, {2, 0})}),
                                            {tensor_view<const float>(&value, {2, 1}, {0, 0})},
                                            1}};
  average_cohort<float>(net, updates, {tensor_view<float>(global.data(), {3, 1}, {1, 0})});
  CHECK(global == std::vector<float>{5, 2, 5});
}

TEST_CASE("a round that is asked for lets the right updates through") {
  support::refusal_setting s;
  const std::vector<update<float>> updates{s.update({0, 1}, 3, 7), s.update({1, 2}, 5, 7)};
  average_options options;
  options.round = 7;
  support::check_report(average_cohort<float>(s.net, updates, s.globals(), options),
                        {.clients = 2, .held = 9});
  CHECK(s.global_b == std::vector<float>{70, 75, 80});
}

TEST_CASE("without a round, repeats are the caller's business: all of them count") {
  subfed::model net;
  net.tensor("x", {1});
  const float two = 2;
  const float eight = 8;
  float global = 0;
  const std::vector<update<float>> updates{
      {submodel(net, {}, {.client = 1}), {tensor_view<const float>(&two, {1})}, 1},
      {submodel(net, {}, {.client = 1}), {tensor_view<const float>(&two, {1})}, 1},
      {submodel(net, {}, {.client = 2}), {tensor_view<const float>(&eight, {1})}, 1}};
  average_cohort<float>(net, updates, {tensor_view<float>(&global, {1})});
  CHECK(global == 4);
}

TEST_CASE_TEMPLATE("random channels of convolutions, few and many clients, equal the plain loop", T,
                   float, double, half) {
  // 3 x 3 kernels of random input channels are summed node by node for up to 64 clients; with more of
  // them, and for other kernels, through the tile.
  for (const auto& [kernel, clients, weighted] :
       {std::tuple{3, 10, false}, std::tuple{3, 10, true}, std::tuple{3, 64, false},
        std::tuple{3, 70, false}, std::tuple{2, 9, true}}) {
    subfed::model net;
    const auto out_channels = net.group("out", 11);
    const auto in_channels = net.group("in", 60);
    const auto tensor = net.tensor("weight", {out_channels, in_channels, kernel, kernel});
    const std::int64_t area = std::int64_t{kernel} * kernel;
    const auto elements = static_cast<std::size_t>(11 * 60 * area);
    std::vector<double> sums(elements), weights(elements);
    std::vector<std::vector<T>> data;
    std::vector<update<T>> updates;
    for (std::int64_t c = 0; c < clients; ++c) {
      const submodel sub = draw(net, subfed::random_subset{},
                                {.seed = 5,
                                 .client = static_cast<std::uint64_t>(c),
                                 .capacity = 1.0 / double(1 + c % 4)});
      const double weight = weighted ? 0.5 + static_cast<double>(c) : 1;
      const auto shape = sub.extents(tensor);
      data.emplace_back();
      for (std::int64_t p = 0; p < shape[0]; ++p) {
        for (std::int64_t q = 0; q < shape[1]; ++q) {
          for (std::int64_t k = 0; k < area; ++k) {
            const T x =
                subfed::scalar_traits<T>::store(0.37 * double((c * 31 + p * 7 + q * 3 + k) % 101));
            data.back().push_back(x);
            const auto at = static_cast<std::size_t>(
                (sub[out_channels][p] * 60 + sub[in_channels][q]) * area + k);
            volatile double product = weight * subfed::scalar_traits<T>::load(x);  // never fused
            sums[at] += product;
            weights[at] += weight;
          }
        }
      }
      updates.push_back({sub, {tensor_view<const T>(data.back().data(), shape)}, weight});
    }
    const T old = subfed::scalar_traits<T>::store(-7);
    std::vector<T> global(elements, old);
    const auto report =
        average_cohort<T>(net, updates, {tensor_view<T>(global.data(), {11, 60, kernel, kernel})});
    std::int64_t held = 0;
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      const T expected =
          weights[i] > 0 ? subfed::scalar_traits<T>::store(sums[i] / weights[i]) : old;
      wrong += std::memcmp(&global[i], &expected, sizeof(T)) == 0 ? 0 : 1;
      held += weights[i] > 0 ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(report.held == held);
  }
}

namespace {

/// A weight, a running variance and a head that stays with each client.
struct model_with_roles {
  subfed::model net;
  subfed::group_id g = net.group("g", 3);
  subfed::tensor_id weight = net.tensor("w", {g});
  subfed::tensor_id variance = net.tensor("var", {g}, subfed::role::statistic);
  subfed::tensor_id own = net.tensor("own", {g, 2}, subfed::role::local);
};

/// Two clients by either form of the average; what stands at the place of the head is `there`.
template <class T>
average_report average_by(bool one_pass, const model_with_roles& m,
                          const tensor_view<const T>& there, const tensor_views<T>& globals,
                          const average_options& options) {
  const float ones[3] = {1, 1, 1}, threes[3] = {3, 3, 3}, low[3] = {0.1f, 0.1f, 0.1f};
  const tensor_view<const float> one(ones, {3}), three(threes, {3}), small(low, {3});
  const std::vector<subfed::update<T>> updates{
      {submodel(m.net, {index_set::full(3)}, {.client = 1}), {one, small, there}},
      {submodel(m.net, {index_set::full(3)}, {.client = 2}), {three, small, there}}};
  if (one_pass) return subfed::average_cohort<T>(m.net, updates, globals, options);
  subfed::selective_average<T> first(m.net, options), second(m.net, options);
  first.add(updates[0].sub, updates[0].tensors);
  second.add(updates[1].sub, updates[1].tensors);
  first.merge(second);
  return first.finish(globals);
}

template <class T>
void check_roles(const tensor_view<const T>& there) {
  const model_with_roles m;
  for (const bool one_pass : {true, false}) {
    for (const auto policy : {subfed::non_finite::propagate, subfed::non_finite::refuse,
                              subfed::non_finite::skip_client, subfed::non_finite::skip_element}) {
      float w[3] = {0, 0, 0}, variance[3] = {1, 1, 1};
      float own[6] = {5, -0.0f, std::numeric_limits<float>::quiet_NaN(), 5, 5, 5};
      float before[6];
      std::memcpy(before, own, sizeof own);
      const average_report report =
          average_by<T>(one_pass, m, there,
                        {tensor_view<float>(w, {3}), tensor_view<float>(variance, {3}),
                         tensor_view<float>(own, {3, 2})},
                        {.step = 2, .on_non_finite = policy});
      CHECK(report.clients == 2);
      CHECK(report.held == 6);
      CHECK(report.unheld == 0);
      CHECK(report.kept == 6);
      CHECK(report.skipped_elements == 0);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(w[i] == 4);            // 0 + 2 (2 - 0)
        CHECK(variance[i] == 0.1f);  // not 1 + 2 (0.1 - 1)
      }
      CHECK(std::memcmp(own, before, sizeof own) == 0);
    }
  }
}

}  // namespace

TEST_CASE(
    "local tensors keep the server's bits, whatever an update has there; statistics take no step") {
  float poison[6];
  std::fill_n(poison, 6, std::numeric_limits<float>::infinity());
  check_roles<float>(tensor_view<const float>(poison, {3, 2}));
  check_roles<float>(tensor_view<const float>(poison, {5}));
  check_roles<float>(tensor_view<const float>(nullptr, {0}));
  check_roles<void>(tensor_view<const float>(poison, {3, 2}));
  check_roles<void>(tensor_view<const float>(nullptr, {0}));
  const std::int64_t integers[2] = {1, 2};
  check_roles<void>(tensor_view<const std::int64_t>(integers, {2}));
}

TEST_CASE("an update's view of a local tensor may be the server's own memory") {
  const model_with_roles m;
  float w[3] = {}, variance[3] = {}, own[6] = {1, 2, 3, 4, 5, 6};
  for (const bool one_pass : {true, false}) {
    average_by<float>(one_pass, m, tensor_view<const float>(own, {3, 2}),
                      {tensor_view<float>(w, {3}), tensor_view<float>(variance, {3}),
                       tensor_view<float>(own, {3, 2})},
                      {});
    CHECK(own[5] == 6);
    CHECK(variance[0] == 0.1f);
  }
}

TEST_CASE("deltas of a statistic are added without a step") {
  const model_with_roles m;
  for (const bool one_pass : {true, false}) {
    float w[3] = {}, variance[3] = {1, 1, 1}, own[6] = {};
    average_by<float>(one_pass, m, tensor_view<const float>(nullptr, {0}),
                      {tensor_view<float>(w, {3}), tensor_view<float>(variance, {3}),
                       tensor_view<float>(own, {3, 2})},
                      {.content = subfed::content::deltas, .step = 3});
    CHECK(w[0] == 6);
    CHECK(variance[0] == 1.1f);
  }
}

TEST_CASE("without updates, or with none that is taken, everything keeps its bits") {
  support::refusal_setting s;
  support::check_report(average_cohort<float>(s.net, {}, s.globals()), {.unheld = 9});
  CHECK(s.untouched());
  const std::vector<update<float>> late{s.update({0, 1}, 3, 6)};
  const average_options options{.round = 7, .on_late = subfed::late_update::skip};
  support::check_report(average_cohort<float>(s.net, late, s.globals(), options),
                        {.late_clients = 1, .unheld = 9});
  CHECK(s.untouched());
}

TEST_CASE("a late and a repeated update are left out of a cohort by policy, and listed") {
  using subfed::fate;
  support::refusal_setting s;
  const std::vector<update<float>> updates{s.update({0, 1}, 5, 7), s.update({1, 2}, 3, 6),
                                           s.update({1, 2}, 4, 8), s.update({0, 1}, 5, 7, 2)};
  const average_options options{.round = 7,
                                .on_late = subfed::late_update::skip,
                                .on_repeated = subfed::repeated_update::skip};
  const auto report = average_cohort<float>(s.net, updates, s.globals(), options);
  CHECK(report.clients == 1);
  CHECK(report.late_clients == 2);
  CHECK(report.repeated_clients == 1);
  CHECK(report.left_out ==
        std::vector<subfed::update_outcome>{{.fate = fate::late, .client = 3, .round = 6},
                                            {.fate = fate::early, .client = 4, .round = 8},
                                            {.fate = fate::repeated, .client = 5, .round = 7}});
  CHECK(s.global_b == std::vector<float>{70, 80, 9});
}

TEST_CASE("a cohort of one late client is refused, and the error says who it is") {
  support::refusal_setting s;
  const std::vector<update<float>> updates{s.update({0, 1}, 3, 6)};
  try {
    average_cohort<float>(s.net, updates, s.globals(), {.round = 7});
    FAIL("not refused");
  } catch (const subfed::error& e) {
    CHECK(e.client() == 3u);
  }
  CHECK(s.untouched());
}

TEST_CASE("a late update of a cohort is weighed by the rounds passed") {
  support::refusal_setting s;
  const std::vector<update<float>> updates{s.update({0, 1}, 3, 7, 3), s.update({1, 2}, 5, 4, 4)};
  const auto by_rounds = [](std::uint64_t passed) { return 1.0 / static_cast<double>(1 + passed); };
  average_cohort<float>(
      s.net, updates, s.globals(),
      {.round = 7, .on_late = subfed::late_update::weigh, .late_weight = by_rounds});
  CHECK(s.global_b == std::vector<float>{70, 77.5f, 80});  // (3 80 + 1 70) / 4
}

TEST_CASE_TEMPLATE("clients without numbers of their own: the order of arrival does not show", T,
                   float, double) {
  // With these values every order of addition gives other bits, if it shows.
  const std::vector<T> values{T(1e30), T(1), T(-1e30)};
  std::array<std::size_t, 3> order{0, 1, 2};
  std::vector<T> found;
  do {
    found.push_back(mean_of<T>({values[order[0]], values[order[1]], values[order[2]]}, {0, 0, 0}));
  } while (std::next_permutation(order.begin(), order.end()));
  REQUIRE(found.size() == 6);
  for (const T x : found) CHECK(support::same_bits(std::vector<T>{x}, std::vector<T>{found[0]}));
}

TEST_CASE("without numbers ties are broken by weight, nodes and content of any layout") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto value = [](seeded& r) { return (r.unit() - 0.5) * std::ldexp(1.0, 40); };
    const auto weight = [](seeded& r) { return r.one_in(2) ? 1.0 : 0.3; };
    support::cohort<double> group{random, support::random_network(random), 6, value, weight};
    std::vector<update<double>> updates;
    for (auto& c : group.clients) {
      c.sub = support::submodel_of(group.net, c.holds);  // all are client 0
      updates.push_back(c.update());
    }
    // Two with the same nodes and weight, and other values.
    updates[1] = updates[0];
    std::vector<support::strided<double>> others;
    for (const auto& t : group.clients[0].tensors) {
      others.emplace_back(support::random_layout(random, t.extents()));
      others.back().fill([&](std::int64_t) { return value(random); });
    }
    std::vector<tensor_view<const double>> views;
    for (const auto& t : others) views.push_back(t.view());
    updates[1].tensors = tensor_views<const double>(views);
    const auto before = group.elements();
    std::vector<std::vector<double>> expected;
    for (int again = 0; again < 5; ++again) {
      for (std::size_t t = 0; t < group.globals.size(); ++t) {
        group.globals[t].fill(
            [&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
      }
      at_once(group.net, updates, group.global_views(), {});
      if (again == 0) expected = group.elements();
      for (std::size_t t = 0; t < expected.size(); ++t) {
        CHECK(support::same_bits(group.globals[t].elements(), expected[t]));
      }
      random.shuffle(updates);
    }
  }
}

TEST_CASE_TEMPLATE("a client without an element of a tensor may have a view of nothing", T, float,
                   half, double) {
  subfed::model net;
  const auto rows = net.group("rows", 4), columns = net.group("columns", 64);
  net.tensor("w", {rows, columns});
  net.tensor("b", {columns});
  std::vector<std::int64_t> odd;
  for (std::int64_t n = 1; n < 64; n += 2) odd.push_back(n);
  const submodel some(net, {index_set::full(4), index_set(64, odd)}, {.client = 1});
  const submodel none(net, {index_set::full(4), index_set(64, {})}, {.client = 2});
  std::vector<T> w(4 * 32), global(4 * 64 + 64, T(1.0f)), others(4 * 64 + 64, T(1.0f));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = T(static_cast<float>(i));
  const tensor_view<const T> of_some[] = {{w.data(), {4, 32}}, {w.data(), {32}}};
  const tensor_view<const T> of_none[] = {{nullptr, {4, 0}}, {nullptr, {0}}};
  const tensor_view<T> globals[] = {{global.data(), {4, 64}}, {global.data() + 4 * 64, {64}}};
  const update<T> first{some, of_some, 1}, second{some, of_some, 2}, nothing{none, of_none, 3};
  const auto bits_of = [&] {
    std::vector<T> out = global;
    std::fill(global.begin(), global.end(), T(1.0f));
    return out;
  };
  const std::vector<update<T>> holders{first, second}, all{first, nothing, second};
  average_cohort<T>(net, holders, globals);
  const std::vector<T> expected = bits_of();
  CHECK(expected[1] == T(0.0f));
  CHECK(expected[3] == T(1.0f));
  const average_report report = average_cohort<T>(net, all, globals);
  CHECK(bits_of() == expected);
  CHECK(report.clients == 3);
  CHECK(report.held == 4 * 32 + 32);
  average_cohort<T>(net, all, globals, {.sums = subfed::fixed_point{.bound = 128, .clients = 6}});
  CHECK(bits_of() == expected);

  // Alone it changes nothing, and with divisor::cohort it leaves elements as they were, with any weight.
  const average_report alone =
      average_cohort<T>(net, std::vector<update<T>>{nothing}, globals, {.step = 0.5});
  CHECK(alone.held == 0);
  CHECK(alone.unheld == 4 * 64 + 64);
  const std::vector<update<T>> far{{some, of_some, 1e-300}, {none, of_none, 1e300}};
  average_cohort<T>(net, far, globals, {.divide_by = subfed::divisor::cohort});
  CHECK(bits_of() == others);
}
