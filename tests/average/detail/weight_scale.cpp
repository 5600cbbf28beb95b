// SPDX-License-Identifier: MIT
/// Finite in, finite out: weights and values of any size.
#include <subfed/average/detail/weight_scale.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <support/average_properties.hpp>
#include <support/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::average_options;
using subfed::half;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::update;
using support::message_of;
using support::seeded;

namespace {

enum class form { one_pass, streamed, merged };
constexpr form forms[] = {form::one_pass, form::streamed, form::merged};

/// Two clients that hold nodes 0, 1 and 1, 2 of three: who is alone, and the mean of both.
template <class T>
std::array<T, 3> pair_mean(form by, const double (&w)[2], const double (&x)[2],
                           const average_options& options = {}, T old = T(0)) {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  const std::vector<T> a(2, T(x[0])), b(2, T(x[1]));
  const submodel first(net, {index_set(3, {0, 1})}, {.client = 0});
  const submodel second(net, {index_set(3, {1, 2})}, {.client = 1});
  const std::vector<update<T>> updates{{first, {tensor_view<const T>(a.data(), {2})}, w[0]},
                                       {second, {tensor_view<const T>(b.data(), {2})}, w[1]}};
  std::array<T, 3> global{old, old, old};
  const tensor_views<T> globals{tensor_view<T>(global.data(), {3})};
  if (by == form::one_pass) {
    subfed::average_cohort<T>(net, updates, globals, options);
    return global;
  }
  subfed::selective_average<T> mean(net, options), other(net, options);
  mean.add(first, updates[0].tensors, w[0]);
  (by == form::merged ? other : mean).add(second, updates[1].tensors, w[1]);
  if (by == form::merged) mean.merge(other);
  mean.finish(globals);
  return global;
}

struct given {
  double w[2];
  double x[2];
  double mean;
};

/// Numbers whose exponents are anywhere in a range.
double anywhere(seeded& random, int least, int most) {
  return std::ldexp(1 + random.unit(), static_cast<int>(random.between(least, most)));
}

}  // namespace

TEST_CASE("doubles of any size, with weights of any size, have a finite mean") {
  for (const given& of :
       {given{{1e300, 1e300}, {1e10, 1e10}, 1e10}, given{{1e308, 5e307}, {2, 4}, 8.0 / 3},
        given{{5e-324, 5e-324}, {0.3, 0.4}, 0.35}, given{{1e-310, 1e-310}, {0.3, 0.5}, 0.4},
        given{{1, 1}, {1.7e308, 1.7e308}, 1.7e308}, given{{1, 1}, {1.7e308, -1.7e308}, 0},
        given{{0.1, 0.7}, {1.7e308, 1.7e308}, 1.7e308},
        given{{1.5, 2.75}, {1e-320, 1e-320}, 1e-320}, given{{1, 1}, {1e-320, 3e-320}, 2e-320},
        given{{1e-100, 1e-100}, {1e-300, 3e-300}, 2e-300},
        given{{1e-100, 1e100}, {1e-200, 3e-300}, 3e-300},
        given{{1e200, 1e200}, {1e250, 1e250}, 1e250}}) {
    for (const form by : forms) {
      INFO("form ", static_cast<int>(by), ", weights ", of.w[0], " ", of.w[1], ", values ", of.x[0],
           " ", of.x[1]);
      const auto found = pair_mean<double>(by, of.w, of.x);
      CHECK(std::fabs(found[0] - of.x[0]) <= 4e-16 * std::fabs(of.x[0]));
      CHECK(std::fabs(found[1] - of.mean) <= 4e-16 * std::fabs(of.mean));
      CHECK(std::fabs(found[2] - of.x[1]) <= 4e-16 * std::fabs(of.x[1]));
    }
  }
  // The largest double stays itself, though rounding would take the mean over it.
  const double most = std::numeric_limits<double>::max();
  for (const form by : forms) {
    const auto found = pair_mean<double>(by, {0.1, 0.7}, {most, most});
    for (const double x : found) CHECK(std::isfinite(x));
  }
}

TEST_CASE_TEMPLATE("narrower types with weights of any size, too", T, float, half) {
  for (const given& of :
       {given{{1e300, 1e300}, {1e4, 1e4}, 1e4}, given{{1e308, 5e307}, {1, 4}, 2},
        given{{5e-324, 5e-324}, {1, 2}, 1.5}, given{{1e-310, 1e-310}, {0.25, 0.5}, 0.375},
        given{{1, 1e-310}, {1, 1}, 1}, given{{1e-310, 1}, {3, 5}, 5},
        given{{1e-320, 1e-300}, {2, 7}, 7}, given{{1e150, 1e140}, {2, 7}, 2}}) {
    for (const form by : forms) {
      INFO("form ", static_cast<int>(by), ", weights ", of.w[0], " ", of.w[1]);
      const auto found = pair_mean<T>(by, of.w, of.x);
      CHECK(static_cast<double>(found[0]) == of.x[0]);
      CHECK(static_cast<double>(found[1]) == of.mean);
      CHECK(static_cast<double>(found[2]) == of.x[1]);
    }
  }
}

TEST_CASE("weights too far apart for one sum of doubles: exact at once, refused by name streamed") {
  CHECK(pair_mean<double>(form::one_pass, {1e300, 1e-320}, {1e300, 1e-300}) ==
        std::array<double, 3>{1e300, 1e300, 1e-300});
  CHECK(pair_mean<float>(form::one_pass, {1e308, 1e-320}, {3, 5}) == std::array<float, 3>{3, 3, 5});
  CHECK(message_of([] {
          pair_mean<float>(form::streamed, {1e308, 1e-320}, {3, 5});
        }) ==
        "subfed: average: client 1 of round 0 has a weight, 9.99988867e-321, whose product with "
        "the values of tensor 'x' is too far from the other products to be added to them");
  CHECK(message_of([] {
          pair_mean<double>(form::streamed, {1e300, 1}, {1e300, 1e-300});
        }) ==
        "subfed: average: client 1 of round 0 has a weight, 1, whose product with the values of "
        "tensor 'x', at global element (1,), is too far from the other products to be added to "
        "them");
  CHECK(message_of([] {
          pair_mean<double>(form::merged, {1e300, 1}, {1e300, 1e-300});
        }) ==
        "subfed: average: the products of weights and values of tensor 'x' are too far apart in "
        "the averages to merge to be added");
}

TEST_CASE("a refused update leaves the sums as they were") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  const std::vector<double> large{1e300, 1}, small{1, 1e-300};
  subfed::selective_average<double> mean(net);
  mean.add(full, {tensor_view<const double>(large.data(), {2})}, 1e300);
  CHECK_THROWS_AS(mean.add(full, {tensor_view<const double>(small.data(), {2})}, 1e-20),
                  subfed::error);
  CHECK(mean.report().clients == 1);
  std::vector<double> global(2);
  mean.finish({tensor_view<double>(global.data(), {2})});
  CHECK(global == large);
  mean.clear();
  mean.add(full, {tensor_view<const double>(small.data(), {2})}, 1e-20);
  mean.finish({tensor_view<double>(global.data(), {2})});
  CHECK(global == small);
}

TEST_CASE("options do what they say with numbers of any size") {
  average_options cohort;
  cohort.divide_by = subfed::divisor::cohort;
  average_options deltas;
  deltas.content = subfed::content::deltas;
  deltas.step = 0.5;
  average_options half_way;
  half_way.step = 0.5;
  for (const form by : forms) {
    INFO("form ", static_cast<int>(by));
    const double huge = 0x1p1000;
    CHECK(pair_mean<double>(by, {huge, huge}, {1e10, 3e10}, cohort, 5e10) ==
          std::array<double, 3>{3e10, 2e10, 4e10});
    CHECK(pair_mean<double>(by, {1, 1}, {1.5e308, 1.5e308}, cohort, 1.5e308) ==
          std::array<double, 3>{1.5e308, 1.5e308, 1.5e308});
    // Who does not hold the tiny element leaves it as it was.
    const auto kept = pair_mean<double>(by, {1e-100, 1e-100}, {0, 0}, cohort, 1e-300);
    CHECK(kept[0] == 5e-301);
    CHECK(kept[1] == 0);
    CHECK(pair_mean<double>(by, {1e308, 1e307}, {1e300, 1e300}, deltas, 1e300) ==
          std::array<double, 3>{1.5e300, 1.5e300, 1.5e300});
    CHECK(pair_mean<double>(by, {1, 1}, {1.5e308, 1.5e308}, half_way, -1.5e308) ==
          std::array<double, 3>{0, 0, 0});
    CHECK(pair_mean<float>(by, {1e300, 1e300}, {1, 3}, cohort, 5.0f) ==
          std::array<float, 3>{3, 2, 4});
    CHECK(pair_mean<float>(by, {1e-310, 1e-310}, {1, 3}, deltas, 5.0f) ==
          std::array<float, 3>{5.5f, 6, 6.5f});
  }
}

TEST_CASE_TEMPLATE("random weights and values of any size equal the dense loop", T, float, double) {
  // long double has more bits and a wider range.
  static_assert(std::numeric_limits<long double>::max_exponent > 2048);
  constexpr bool is_double = sizeof(T) == 8;
  const int span = is_double ? 480 : 120;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const int centre = static_cast<int>(random.between(-500, 500));
    const auto value = [&](seeded& r) {
      if (r.one_in(8)) return T(0);
      const double x = anywhere(r, -span, span);
      return static_cast<T>(r.one_in(3) ? -x : x);
    };
    const auto weight = [&](seeded& r) { return anywhere(r, centre - 150, centre + 150); };
    support::cohort<T> group{
        random, seed % 4 == 0 ? support::large_network(random) : support::random_network(random),
        random.between(1, 6), value, weight};
    average_options options;
    if (seed % 3 == 1) options.divide_by = subfed::divisor::cohort;
    subfed::average_report report;
    const auto expected = group.expected(options, report);
    const auto before = group.elements();
    const auto updates = group.updates();
    for (const form by : {form::one_pass, form::streamed}) {
      const auto found = by == form::one_pass
                             ? support::at_once(group.net, updates, group.global_views(), options)
                             : support::streamed(group.net, updates, group.global_views(), options);
      support::check_report(found, report);
      const auto after = group.elements();
      for (std::size_t t = 0; t < expected.size(); ++t) {
        for (std::size_t i = 0; i < expected[t].size(); ++i) {
          const auto want = static_cast<double>(expected[t][i].value);
          const auto got = static_cast<double>(after[t][i]);
          // Terms of both signs may cancel: relative to the largest of them.
          const double largest = std::ldexp(2, span);
          if (std::fabs(got - want) <= largest * 1e-6 && std::isfinite(got)) continue;
          FAIL("tensor " << t << ", element " << i << ": " << got << ", expected " << want);
        }
      }
      for (std::size_t t = 0; t < before.size(); ++t) {
        group.globals[t].fill(
            [&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
      }
    }
  }
}

TEST_CASE("long rows, kernels and strides of doubles are mended where a sum was too large") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const auto value = [](seeded& r) { return r.one_in(3) ? 1.7e308 : 1.0; };
    support::cohort<double> group{random, support::large_network(random), random.between(2, 9),
                                  value, [](seeded& r) { return r.one_in(2) ? 1.0 : 0.75; }};
    subfed::average_report report;
    const auto expected = group.expected({}, report);
    support::check_report(support::at_once(group.net, group.updates(), group.global_views()),
                          report);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      const auto after = group.elements()[t];
      for (std::size_t i = 0; i < after.size(); ++i) {
        const auto want = static_cast<double>(expected[t][i].value);
        if (std::fabs(after[i] - want) <= 1e-14 * std::fabs(want)) continue;
        FAIL("tensor " << t << ", element " << i << ": " << after[i] << ", expected " << want);
      }
    }
  }
}

TEST_CASE("a NaN of a double stays one beside large numbers, and an infinity of one sign too") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const form by : forms) {
    CHECK(std::isnan(pair_mean<double>(by, {1, 1}, {nan, 1.7e308})[1]));
    CHECK(pair_mean<double>(by, {1, 1}, {inf, -1.7e308})[1] == inf);
    CHECK(pair_mean<double>(by, {1, 1}, {-inf, 1.7e308})[0] == -inf);
    CHECK(std::isnan(pair_mean<double>(by, {1, 1}, {inf, -inf})[1]));
  }
}

TEST_CASE_TEMPLATE("minus zero: a holder's own stays, a sum is as IEEE has it", T, float, double,
                   half) {
  const auto sign = [](T x) { return std::signbit(static_cast<double>(x)); };
  for (const form by : forms) {
    for (const double w : {1.0, 3.0, 0.7}) {
      const auto both = pair_mean<T>(by, {w, w}, {-0.0, -0.0});
      for (const T x : both) CHECK(sign(x));
      const auto one = pair_mean<T>(by, {w, 1}, {-0.0, 0.0});
      CHECK(sign(one[0]));
      CHECK_FALSE(sign(one[1]));
      CHECK_FALSE(sign(one[2]));
    }
  }
}

TEST_CASE("minus zero of a holder stays in long rows, kernels and many clients, and with options") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    support::cohort<float> group{random, support::large_network(random), random.between(1, 13),
                                 [](seeded&) { return -0.0f; }, support::dyadic_weight};
    average_options options;
    if (seed % 2 == 1) options.divide_by = subfed::divisor::cohort;
    if (seed % 3 == 2) options.on_non_finite = subfed::non_finite::skip_element;
    for (const form by : {form::one_pass, form::streamed}) {
      if (by == form::one_pass) {
        support::at_once(group.net, group.updates(), group.global_views(), options);
      } else {
        support::streamed(group.net, group.updates(), group.global_views(), options);
      }
      for (const auto& t : group.elements()) {
        for (const float x : t) REQUIRE(std::signbit(x));
      }
    }
  }
}

TEST_CASE("the range of exponents leaves out zeros and what is not finite") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const std::int64_t stride = random.between(1, 3);
    const std::int64_t length = random.between(0, 40);
    std::vector<double> values(static_cast<std::size_t>(length * stride + 1), nan);
    std::int64_t low = 5000;
    std::int64_t high = -5000;
    for (std::int64_t i = 0; i < length; ++i) {
      double x = random.one_in(4) ? 0.0 : anywhere(random, -1070, 1023);
      if (x != 0) {
        low = std::min(low, static_cast<std::int64_t>(std::ilogb(x)));
        high = std::max(high, static_cast<std::int64_t>(std::ilogb(x)));
      }
      if (random.one_in(9)) x = random.one_in(2) ? inf : nan;
      if (!std::isfinite(x)) {
        // What it stood for does not count.
        low = 5000;
        high = -5000;
        values[static_cast<std::size_t>(i * stride)] = x;
        for (std::int64_t j = 0; j < i; ++j) {
          const double y = values[static_cast<std::size_t>(j * stride)];
          if (y == 0 || !std::isfinite(y)) continue;
          low = std::min(low, static_cast<std::int64_t>(std::ilogb(y)));
          high = std::max(high, static_cast<std::int64_t>(std::ilogb(y)));
        }
        continue;
      }
      values[static_cast<std::size_t>(i * stride)] = random.one_in(2) ? -x : x;
    }
    subfed::detail::exponent_range range;
    range.take(values.data(), stride, length);
    CHECK(range.empty() == (high < low));
    if (range.empty()) continue;
    CHECK(range.low() == low);
    CHECK(range.high() == high);
  }
}

TEST_CASE("a cleared average starts from nothing again, however large it is") {
  constexpr std::int64_t size = (std::int64_t{1} << 17) + 3;
  subfed::model net;
  net.tensor("x", {size});
  const auto full = submodel::full(net);
  std::vector<float> values(static_cast<std::size_t>(size), 5);
  const tensor_view<const float> update(values.data(), {size});
  subfed::selective_average<float> mean(net);
  mean.add(full, {update}, 1e-310);
  mean.clear();
  std::fill(values.begin(), values.end(), -0.0f);
  mean.add(full, {update}, 1e300);
  std::vector<float> global(static_cast<std::size_t>(size), 1);
  mean.finish({tensor_view<float>(global.data(), {size})});
  CHECK(std::all_of(global.begin(), global.end(), [](float x) { return std::signbit(x); }));
}
