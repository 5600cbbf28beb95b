// SPDX-License-Identifier: MIT
#include <subfed/average/detail/counter_merge.hpp>

#include <subfed/subfed.hpp>

#include <support/checks.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace counters {

using subfed::average_options;
using subfed::average_report;
using subfed::content;
using subfed::half;
using subfed::integer_rule;
using subfed::non_finite;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;

constexpr std::initializer_list<std::int64_t> scalar{};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A table that makes weights dense, a number of steps, and one for each row.
struct network {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 8);
  subfed::tensor_id weights = net.tensor("weights", {rows, 8});
  subfed::tensor_id steps =
      net.tensor("steps", std::initializer_list<subfed::dimension>{}, subfed::role::counter);
  subfed::tensor_id marks = net.tensor("marks", {rows}, subfed::role::counter);
};

/// What a client sends, of floating type F. The marks lie backwards.
template <class F>
struct sent {
  sent(const network& n, std::uint64_t client, double steps_are, double weighs = 1)
      : sub(subfed::draw(n.net, subfed::random_subset{},
                         {.seed = 5, .client = client, .capacity = 0.5})),
        steps{subfed::scalar_traits<F>::store(steps_are)},
        weight(weighs) {
    for (int i = 0; i < 4; ++i) marks[i] = subfed::scalar_traits<F>::store(steps_are + i);
  }
  template <class T>
  subfed::update<T> update() const {
    return {sub,
            {tensor_view<const F>(values.data(), {4, 8}), tensor_view<const F>(steps, scalar),
             tensor_view<const F>(marks + 3, {4}, {-1})},
            weight};
  }
  subfed::submodel sub;
  F steps[1];
  F marks[4];
  std::vector<F> values = std::vector<F>(32, subfed::scalar_traits<F>::store(1));
  double weight;
};

enum class way { at_once, one_by_one, shards };
constexpr way ways[] = {way::at_once, way::one_by_one, way::shards};

template <class T>
average_report averaged(way how, const subfed::model& net,
                        const std::vector<subfed::update<T>>& updates,
                        const tensor_views<T>& globals, const average_options& options,
                        subfed::held_elements& held) {
  if (how == way::at_once) {
    return subfed::average_cohort<T>(net, updates, globals, held, options);
  }
  const std::size_t shards = how == way::shards ? 3 : 1;
  std::vector<subfed::selective_average<T>> parts(shards,
                                                  subfed::selective_average<T>(net, options));
  for (std::size_t u = 0; u < updates.size(); ++u) {
    parts[u % shards].add(updates[u].sub, updates[u].tensors, updates[u].weight);
  }
  for (std::size_t s = 1; s < shards; ++s) parts[0].merge(parts[s]);
  held = parts[0].held();
  return parts[0].finish(globals);
}

/// T: F or void. Against a loop.
template <class T, class F>
void check_rule(way how, integer_rule rule, content what, std::uint64_t clients) {
  const network n;
  std::vector<sent<F>> sends;
  for (std::uint64_t c = 0; c < clients; ++c) {
    sends.emplace_back(n, c, static_cast<double>(3 + c * 7 % 11), c % 5 == 4 ? 0.0 : 0.25);
  }
  std::vector<double> expected(9, 40.0);
  std::vector<double> merged(9, -1);
  const auto take = [&](std::size_t i, double x) {
    merged[i] = merged[i] < 0               ? x
                : rule == integer_rule::max ? (std::max)(merged[i], x)
                                            : merged[i] + x;
    if (rule != integer_rule::keep) {
      expected[i] = merged[i] + (what == content::deltas ? 40.0 : 0.0);
    }
  };
  for (const auto& s : sends) {
    if (s.weight == 0) continue;
    take(0, subfed::scalar_traits<F>::load(s.steps[0]));
    for (std::int64_t i = 0; i < 4; ++i) {
      take(static_cast<std::size_t>(s.sub[n.rows][i]) + 1,
           subfed::scalar_traits<F>::load(s.marks[3 - i]));
    }
  }
  std::vector<subfed::update<T>> updates;
  for (const auto& s : sends) updates.push_back(s.template update<T>());
  std::vector<F> weights(64, subfed::scalar_traits<F>::store(10));
  std::vector<F> globals(9, subfed::scalar_traits<F>::store(40));
  subfed::held_elements held;
  const auto report = averaged<T>(
      how, n.net, updates,
      {tensor_view<F>(weights.data(), {8, 8}), tensor_view<F>(globals.data(), scalar),
       tensor_view<F>(globals.data() + 1, {8})},
      {.divide_by = subfed::divisor::cohort, .content = what, .step = 0.5, .integers = rule}, held);
  INFO("form ", static_cast<int>(how), ", rule ", static_cast<int>(rule), ", clients ", clients);
  std::int64_t written = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(subfed::scalar_traits<F>::load(globals[i]) == expected[i]);
    const bool is_held = rule != integer_rule::keep && merged[i] >= 0;
    written += is_held ? 1 : 0;
    const auto at = static_cast<std::int64_t>(i);
    CHECK(held.test(i == 0 ? n.steps : n.marks, i == 0 ? 0 : at - 1) == is_held);
  }
  CHECK(report.kept == (rule == integer_rule::keep ? 9 : 0));
  CHECK(report.held == held.count(n.weights) + written);
  CHECK(report.held + report.unheld + report.kept == 73);
  CHECK(report.overflowed == 0);
}

template <class T, class F>
void check_rules() {
  for (const way how : ways) {
    for (const integer_rule rule : {integer_rule::keep, integer_rule::max, integer_rule::sum}) {
      for (const content what : {content::parameters, content::deltas}) {
        for (const std::uint64_t clients : {0u, 1u, 3u, 12u}) {
          check_rule<T, F>(how, rule, what, clients);
        }
      }
    }
  }
}

/// One counter of one number, and what clients send of it.
template <class G, class F>
average_report one(way how, G& global, const std::vector<F>& sends, const average_options& options,
                   std::int64_t& held_count) {
  subfed::model net;
  const auto steps =
      net.tensor("steps", std::initializer_list<subfed::dimension>{}, subfed::role::counter);
  std::vector<subfed::update<void>> updates;
  for (const F& x : sends) {
    updates.push_back({subfed::submodel::full(net), {tensor_view<const F>(&x, scalar)}});
  }
  subfed::held_elements held;
  const auto report =
      averaged<void>(how, net, updates, {tensor_view<G>(&global, scalar)}, options, held);
  held_count = held.count(steps);
  return report;
}

}  // namespace counters

}  // namespace

TEST_CASE("a counter in floating point follows the rule for integers, by its role") {
  using namespace counters;
  for (const way how : ways) {
    std::int64_t held = 0;
    const auto is = [&](integer_rule rule, content what) {
      float global = 7;
      one(how, global, std::vector<float>{10, 13}, {.content = what, .integers = rule}, held);
      return global;
    };
    CHECK(is(integer_rule::keep, content::parameters) == 7);
    CHECK(held == 0);
    CHECK(is(integer_rule::max, content::parameters) == 13);
    CHECK(is(integer_rule::sum, content::parameters) == 23);
    CHECK(held == 1);
    CHECK(is(integer_rule::keep, content::deltas) == 7);
    CHECK(is(integer_rule::max, content::deltas) == 20);
    CHECK(is(integer_rule::sum, content::deltas) == 30);
  }
}

TEST_CASE("counters of every floating type follow the rule, beside dense weights and in shards") {
  using namespace counters;
  check_rules<float, float>();
  check_rules<half, half>();
  check_rules<void, double>();
  check_rules<void, subfed::bfloat16>();
  const network n;
  subfed::selective_average<float> dense(n.net);
  for (std::uint64_t c = 0; c < 12; ++c) {
    const sent<float> s(n, c, 1);
    dense.add(s.sub, s.update<float>().tensors);
  }
  CHECK(dense.has_dense_weights());
}

TEST_CASE("counters of different floating types are merged in double and rounded once") {
  using namespace counters;
  // 2^24 + 1 + 1: each sum rounded to float would stay 2^24.
  subfed::model net;
  net.tensor("steps", std::initializer_list<subfed::dimension>{}, subfed::role::counter);
  const auto full = subfed::submodel::full(net);
  const float large = 16777216;
  const half small(1.0);
  const double wide = 1;
  const std::vector<subfed::update<void>> updates{
      {full, {tensor_view<const float>(&large, scalar)}},
      {full, {tensor_view<const half>(&small, scalar)}},
      {full, {tensor_view<const double>(&wide, scalar)}}};
  for (const way how : ways) {
    float global = 0;
    subfed::held_elements held;
    averaged<void>(how, net, updates, {tensor_view<float>(&global, scalar)},
                   {.integers = integer_rule::sum}, held);
    CHECK(global == 16777218);
  }
  float global = 0;
  const std::vector<subfed::update<half>> halves{{full, {tensor_view<const half>(&small, scalar)}}};
  subfed::average_cohort<float>(net, std::span(halves), {tensor_view<float>(&global, scalar)},
                                {.integers = integer_rule::sum});
  CHECK(global == 1);
}

TEST_CASE("values of a counter that are not finite follow their policy, unless the server's stay") {
  using namespace counters;
  for (const way how : ways) {
    const auto is = [&](const std::vector<float>& sends, const average_options& options,
                        average_report& report, std::int64_t& held) {
      float global = 7;
      report = one(how, global, sends, options, held);
      return global;
    };
    average_report report;
    std::int64_t held = 0;
    const std::vector<float> sends{3, not_a_number, 5, infinity};

    average_options options{.integers = integer_rule::max};
    CHECK(std::isnan(is(sends, options, report, held)));
    CHECK(report.overflowed == 0);
    CHECK(is({3, infinity, 5}, options, report, held) == infinity);
    CHECK(report.overflowed == 0);
    options.integers = integer_rule::sum;
    CHECK(std::isnan(is(sends, options, report, held)));

    for (const integer_rule rule : {integer_rule::max, integer_rule::sum}) {
      options = {.on_non_finite = non_finite::skip_element, .integers = rule};
      CHECK(is(sends, options, report, held) == (rule == integer_rule::max ? 5 : 8));
      CHECK(report.skipped_elements == 2);
      CHECK(held == 1);
      CHECK(is({not_a_number}, options, report, held) == 7);
      CHECK(report.skipped_elements == 1);
      CHECK(report.unheld == 1);
      CHECK(held == 0);
      options.on_non_finite = non_finite::skip_client;
      CHECK(is(sends, options, report, held) == (rule == integer_rule::max ? 5 : 8));
      CHECK(report.skipped_clients == 2);
      options.on_non_finite = non_finite::refuse;
      CHECK(message_of([&] { is(sends, options, report, held); }) ==
            "subfed: average: client 0 of round 0 has a value that is not finite in tensor "
            "'steps', at global element ()");
    }

    for (const auto policy : {non_finite::propagate, non_finite::refuse, non_finite::skip_client,
                              non_finite::skip_element}) {
      options = {.on_non_finite = policy, .integers = integer_rule::keep};
      CHECK(is(sends, options, report, held) == 7);
      CHECK(report.clients == 4);
      CHECK(report.kept == 1);
      CHECK(report.skipped_elements == 0);
      CHECK(held == 0);
    }
  }
}

TEST_CASE("the largest of -0 and 0 is 0, whoever sends it") {
  using namespace counters;
  for (const way how : ways) {
    for (const auto& sends : {std::vector<double>{-0.0, 0.0}, std::vector<double>{0.0, -0.0}}) {
      double global = -1;
      std::int64_t held = 0;
      one(how, global, sends, {.integers = integer_rule::max}, held);
      CHECK(std::bit_cast<std::uint64_t>(global) == 0);
      one(how, global, std::vector<double>{-3, -2.5}, {.integers = integer_rule::max}, held);
      CHECK(global == -2.5);
    }
  }
}

TEST_CASE("a counter that is too large for its type is counted, or refused") {
  using namespace counters;
  for (const way how : ways) {
    for (const content what : {content::parameters, content::deltas}) {
      half global(40000.0);
      std::int64_t held = 0;
      const std::vector<double> sends{30000, 40000};
      auto report = one(how, global, sends, {.content = what, .integers = integer_rule::sum}, held);
      CHECK(report.overflowed == 1);
      CHECK_FALSE(subfed::scalar_traits<half>::is_finite(global));
      global = half(40000.0);
      CHECK(message_of([&] {
              one(how, global, sends,
                  {.content = what,
                   .on_non_finite = non_finite::refuse,
                   .integers = integer_rule::sum},
                  held);
            }) ==
            "subfed: average: the average of tensor 'steps' at global element () is too large for "
            "the tensor's type");
      CHECK(global == half(40000.0));
    }
  }
}
