// SPDX-License-Identifier: MIT
#include <subfed/subfed.hpp>

#include <support/checks.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using subfed::half;
using subfed::integer_rule;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;

namespace {

static_assert(std::is_constructible_v<tensor_view<void>, tensor_view<float>>);
static_assert(std::is_constructible_v<tensor_view<const void>, tensor_view<float>>);
static_assert(std::is_constructible_v<tensor_view<const void>, tensor_view<const float>>);
static_assert(std::is_constructible_v<tensor_view<const void>, tensor_view<void>>);
static_assert(!std::is_constructible_v<tensor_view<void>, tensor_view<const float>>);
static_assert(!std::is_constructible_v<tensor_view<void>, tensor_view<const void>>);
static_assert(std::is_copy_constructible_v<tensor_view<void>>);

/// A network of mixed types, with room for its tensors: a weight in float, a bias in half, a running
/// mean in double, a step counter.
struct mixed {
  subfed::model net;
  subfed::group_id hidden = net.group("hidden", 4);
  std::vector<float> weight;
  std::vector<half> bias;
  std::vector<double> mean;
  std::int64_t steps = 0;

  mixed() {
    net.tensor("weight", {hidden, 2});
    net.tensor("bias", {hidden});
    net.tensor("running_mean", {hidden});
    net.tensor("num_batches_tracked", std::initializer_list<subfed::dimension>{});
  }
  explicit mixed(std::int64_t nodes, double fill, std::int64_t tracked) : mixed() {
    const auto n = static_cast<std::size_t>(nodes);
    weight.assign(2 * n, static_cast<float>(fill));
    bias.assign(n, half(fill));
    mean.assign(n, fill);
    steps = tracked;
  }
  template <class Void>
  tensor_views<Void> views() {
    const auto n = static_cast<std::int64_t>(mean.size());
    return {tensor_view<float>(weight.data(), {n, 2}), tensor_view<half>(bias.data(), {n}),
            tensor_view<double>(mean.data(), {n}),
            tensor_view<std::int64_t>(&steps, std::initializer_list<std::int64_t>{})};
  }
};

/// Both forms of the average.
template <class Check>
void with_both_forms(Check&& check) {
  check([](const subfed::model& net, const std::vector<subfed::update<void>>& updates,
           const tensor_views<void>& globals, const subfed::average_options& options) {
    subfed::selective_average<void> mean(net, options);
    for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
    return mean.finish(globals);
  });
  check([](const subfed::model& net, const std::vector<subfed::update<void>>& updates,
           const tensor_views<void>& globals, const subfed::average_options& options) {
    return subfed::average_cohort<void>(net, updates, globals, options);
  });
  check([](const subfed::model& net, const std::vector<subfed::update<void>>& updates,
           const tensor_views<void>& globals, const subfed::average_options& options) {
    subfed::selective_average<void> all(net, options);  // an average for each client, merged
    for (const auto& u : updates) {
      subfed::selective_average<void> one(net, options);
      one.add(u.sub, u.tensors, u.weight);
      all.merge(one);
    }
    return all.finish(globals);
  });
}

}  // namespace

TEST_CASE("an untyped view remembers shape, strides and type") {
  std::array<float, 6> data{0, 1, 2, 3, 4, 5};
  const tensor_view<float> typed(data.data(), {2, 3}, {1, 2});
  const tensor_view<void> view(typed);
  CHECK(view.rank() == 2);
  CHECK(view.extent(1) == 3);
  CHECK(view.stride(1) == 2);
  CHECK(view.size() == 6);
  CHECK(view.element_name() == "float");
  CHECK(view.as<float>()(1, 2) == 5);
  view.as<float>()(1, 2) = 7;
  CHECK(data[5] == 7);
  CHECK(tensor_view<const void>(view).as<float>()(1, 2) == 7);
  CHECK(view.visit([](const auto& v) { return sizeof(v(0, 0)); }) == 4);
  CHECK(message_of([&] { view.as<double>(); }) ==
        "subfed: the tensor of shape (2, 3) has elements of type float, expected double");
}

TEST_CASE("every element type is seen as itself") {
  const auto check = []<class E>(const std::string& name) {
    E x{};
    const tensor_view<void> view(tensor_view<E>(&x, {1}));
    CHECK(view.element_name() == name);
    CHECK(view.visit([]<class F>(const tensor_view<F>&) { return std::is_same_v<E, F>; }));
  };
  check.operator()<float>("float");
  check.operator()<double>("double");
  check.operator()<half>("half");
  check.operator()<subfed::bfloat16>("bfloat16");
  check.operator()<std::int8_t>("int8");
  check.operator()<std::int16_t>("int16");
  check.operator()<std::int32_t>("int32");
  check.operator()<std::int64_t>("int64");
  check.operator()<std::uint8_t>("uint8");
  check.operator()<std::uint16_t>("uint16");
  check.operator()<std::uint32_t>("uint32");
  check.operator()<std::uint64_t>("uint64");
  check.operator()<bool>("bool");
}

TEST_CASE("one call slices and scatters a model of mixed types") {
  mixed global(4, 1.5, 9007199254740993);
  global.mean = {10, 11, 12, 13};
  const subfed::submodel part(global.net, {subfed::index_set(4, {3, 0})});
  mixed local(2, 0, 0);
  subfed::slice<void>(global.views<const void>(), part, local.views<void>());
  CHECK(local.mean == std::vector<double>{13, 10});
  CHECK(local.weight == std::vector<float>(4, 1.5f));
  CHECK(local.bias == std::vector<half>(2, half(1.5)));
  CHECK(local.steps == 9007199254740993);  // a path through double gives ..992

  local.mean = {-3, -1};
  local.steps = 5;
  subfed::scatter<void>(local.views<const void>(), part, global.views<void>());
  CHECK(global.mean == std::vector<double>{-1, 11, 12, -3});
  CHECK(global.steps == 5);
  subfed::scatter_add<void>(local.views<const void>(), part, global.views<void>());
  CHECK(global.mean == std::vector<double>{-2, 11, 12, -6});
  CHECK(global.bias == std::vector<half>{half(3.0), half(1.5), half(1.5), half(3.0)});
  CHECK(global.steps == 10);
}

TEST_CASE("one call averages a model of mixed types, and integers follow their rule") {
  struct row {
    integer_rule rule;
    std::int64_t steps, kept;
  };
  with_both_forms([](const auto& average) {
    for (const row& expected : {row{integer_rule::keep, 7, 1}, row{integer_rule::max, 13, 0},
                                row{integer_rule::sum, 23, 0}}) {
      mixed global(4, 9, 7);
      mixed a(2, 1, 10);
      mixed b(2, 2, 13);
      const subfed::submodel sub_a(global.net, {subfed::index_set(4, {0, 1})});
      const subfed::submodel sub_b(global.net, {subfed::index_set(4, {1, 2})});
      const auto report =
          average(global.net, {{sub_a, a.views<const void>()}, {sub_b, b.views<const void>()}},
                  global.views<void>(), {.integers = expected.rule});
      CHECK(global.mean == std::vector<double>{1, 1.5, 2, 9});
      CHECK(global.bias == std::vector<half>{half(1.0), half(1.5), half(2.0), half(9.0)});
      CHECK(global.weight == std::vector<float>{1, 1, 1.5, 1.5, 2, 2, 9, 9});
      CHECK(global.steps == expected.steps);
      CHECK(report.kept == expected.kept);
      CHECK(report.held == 12 + (1 - expected.kept));
      CHECK(report.unheld == 4);
    }
  });
}

TEST_CASE("integers keep all their bits, and clients of weight 0 do not count") {
  with_both_forms([](const auto& average) {
    mixed global(4, 9, 7);
    mixed a(4, 1, 9007199254740993);
    mixed b(4, 1, 5);
    mixed unweighted(4, 1, std::numeric_limits<std::int64_t>::max());
    const auto full = subfed::submodel::full(global.net);
    average(global.net,
            {{full, a.views<const void>()},
             {full, b.views<const void>()},
             {full, unweighted.views<const void>(), 0}},
            global.views<void>(), {.integers = integer_rule::max});
    CHECK(global.steps == 9007199254740993);

    a.steps = std::numeric_limits<std::int64_t>::min();
    b.steps = -1;
    average(global.net, {{full, a.views<const void>()}, {full, b.views<const void>()}},
            global.views<void>(), {.integers = integer_rule::max});
    CHECK(global.steps == -1);
    b.steps = std::numeric_limits<std::int64_t>::max();
    average(global.net, {{full, a.views<const void>()}, {full, b.views<const void>()}},
            global.views<void>(), {.integers = integer_rule::sum});
    CHECK(global.steps == -1);
    b.steps = 0;
    average(global.net, {{full, a.views<const void>()}, {full, b.views<const void>()}},
            global.views<void>(), {.integers = integer_rule::sum});
    CHECK(global.steps == std::numeric_limits<std::int64_t>::min());
  });
}

TEST_CASE("a sum of integers that does not fit is refused, and nothing is written") {
  with_both_forms([](const auto& average) {
    mixed global(4, 9, 7);
    mixed a(4, 1, std::numeric_limits<std::int64_t>::max());
    mixed b(4, 2, 1);
    const auto full = subfed::submodel::full(global.net);
    CHECK(message_of([&] {
            average(global.net, {{full, a.views<const void>()}, {full, b.views<const void>()}},
                    global.views<void>(), {.integers = integer_rule::sum});
          }) ==
          "subfed: average: a sum in tensor 'num_batches_tracked' does not fit its type, whose "
          "largest value is 9223372036854775807");
    CHECK(global.mean == std::vector<double>(4, 9));
    CHECK(global.steps == 7);
  });
}

TEST_CASE("integers in the place of numbers are refused by the tensor's name") {
  mixed global(4, 9, 7);
  mixed local(4, 1, 1);
  const auto full = subfed::submodel::full(global.net);
  std::vector<std::int32_t> wrong(4, 1);
  const tensor_views<const void> views{
      tensor_view<float>(local.weight.data(), {4, 2}), tensor_view<half>(local.bias.data(), {4}),
      tensor_view<std::int32_t>(wrong.data(), {4}),
      tensor_view<std::int64_t>(&local.steps, std::initializer_list<std::int64_t>{})};
  CHECK(message_of([&] { subfed::scatter<void>(views, full, global.views<void>()); }) ==
        "subfed: scatter: the local tensor 'running_mean' has elements of type int32, expected "
        "double as in the global one");
  CHECK(message_of([&] {
          subfed::average_cohort<void>(global.net, std::vector<subfed::update<void>>{{full, views}},
                                       global.views<void>());
        }) ==
        "subfed: average: the local tensor 'running_mean' has elements of type int32, expected "
        "double as in the global one");
  subfed::selective_average<void> mean(global.net);
  mean.add(full, local.views<const void>());
  CHECK(message_of([&] { mean.add(full, views); }) ==
        "subfed: average: tensor 'running_mean' has elements of type int32, expected double as in "
        "earlier updates");
  CHECK(mean.report().clients == 1);
  CHECK(global.weight == std::vector<float>(8, 9));
  mean.finish(global.views<void>());
  CHECK(global.weight == std::vector<float>(8, 1));
}

TEST_CASE("non-finite values are found in tensors of every floating-point type") {
  mixed global(4, 9, 7);
  mixed local(4, 1, 1);
  local.bias[2] = half(std::numeric_limits<double>::infinity());
  const auto full = subfed::submodel::full(global.net);
  CHECK(message_of([&] {
          subfed::average_cohort<void>(
              global.net, std::vector<subfed::update<void>>{{full, local.views<const void>()}},
              global.views<void>(), {.on_non_finite = subfed::non_finite::refuse});
        }) ==
        "subfed: average: client 0 of round 0 has a value that is not finite in tensor 'bias', "
        "at global element (2,)");
}

TEST_CASE("a sum of integers that fits is right in any order, also where partial sums do not fit") {
  subfed::model net;
  net.tensor("n", std::initializer_list<subfed::dimension>{});
  const auto full = subfed::submodel::full(net);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  // 3 (2^63 - 1) - 3 2^63 + 7 = 4; the three large ones alone are over 2^64.
  std::vector<std::int64_t> values{most, most, most, least, least, least, 7};
  std::sort(values.begin(), values.end());
  const subfed::average_options summed{.integers = integer_rule::sum};
  do {
    std::vector<subfed::update<void>> updates;
    for (std::int64_t& v : values) {
      updates.push_back(
          {full, {tensor_view<std::int64_t>(&v, std::initializer_list<std::int64_t>{})}});
    }
    std::int64_t global = 0;
    const tensor_views<void> globals{
        tensor_view<std::int64_t>(&global, std::initializer_list<std::int64_t>{})};
    subfed::average_cohort<void>(net, updates, globals, summed);
    REQUIRE(global == 4);
  } while (std::next_permutation(values.begin(), values.end()));
}
