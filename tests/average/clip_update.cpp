// SPDX-License-Identifier: MIT
#include <subfed/average/clip_update.hpp>

#include <oracle.hpp>
#include <support/average_properties.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::clip_update;
using subfed::half;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

namespace {

template <class T>
std::vector<tensor_view<T>> writable(support::client<T>& c) {
  std::vector<tensor_view<T>> out;
  for (auto& t : c.tensors) out.push_back(t.view());
  return out;
}

}  // namespace

TEST_CASE("an update of norm 5 under a bound of 1, worked out by hand") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  net.tensor("mean", {g}, subfed::role::statistic);
  const submodel sub(net, {index_set(3, {2, 0})}, {.client = 4});
  const std::vector<float> sent{1, 2}, statistic{0, 0};
  std::vector<float> w{4, 6}, mean{100, 200};
  const tensor_views<const float> before{tensor_view<const float>(sent.data(), {2}),
                                         tensor_view<const float>(statistic.data(), {2})};
  const tensor_views<float> update{tensor_view<float>(w.data(), {2}),
                                   tensor_view<float>(mean.data(), {2})};
  auto did = clip_update(sub, before, 10, update);
  CHECK(did == subfed::clipped_update{.norm = 5, .factor = 1});
  CHECK(w == std::vector<float>{4, 6});
  did = clip_update(sub, before, 1, update);
  CHECK(did == subfed::clipped_update{.norm = 5, .factor = 0.2});
  CHECK(w == std::vector<float>{1.6f, 2.8f});
  CHECK(mean == std::vector<float>{100, 200});

  // Only nodes that take part count and are changed.
  w = {4, 6};
  did = clip_update(sub.restricted(g, index_set(3, {0})), before, 2, update);
  CHECK(did == subfed::clipped_update{.norm = 4, .factor = 0.5});
  CHECK(w == std::vector<float>{4, 4});
}

TEST_CASE_TEMPLATE("clipping equals the dumb loop, for any views", T, float, double, half) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    support::cohort<T> group{random, support::random_network(random), 1, support::small_integer<T>,
                             [](seeded&) { return 1.0; }};
    support::client<T>& sent = group.clients[0];
    support::client<T> changed = sent;
    for (auto& t : changed.tensors) {
      t.fill([&](std::int64_t) { return support::small_integer<T>(random); });
    }
    long double squares = 0;
    std::vector<std::vector<bool>> counts;
    for (std::size_t t = 0; t < sent.tensors.size(); ++t) {
      const auto numbers = oracle::global_numbers(group.plan, group.plan.tensors[t], sent.holds);
      const auto a = sent.tensors[t].elements(), b = changed.tensors[t].elements();
      counts.emplace_back();
      for (std::size_t l = 0; l < a.size(); ++l) {
        counts.back().push_back(numbers[l] >= 0);
        const long double d = oracle::value_of(b[l]) - oracle::value_of(a[l]);
        if (numbers[l] >= 0) squares += d * d;
      }
    }
    const auto norm = static_cast<double>(std::sqrt(squares));
    const double bound = 3;
    auto after = changed;
    // Some layouts have one address for several elements; they may only be read.
    bool unique = true;
    for (auto& t : after.tensors) unique = unique && t.view().is_unique();
    if (!unique) continue;
    const auto did = clip_update<T>(sent.sub, tensor_views<const T>(sent.views()), bound,
                                    tensor_views<T>(writable(after)));
    CHECK(did.norm == doctest::Approx(norm).epsilon(1e-15));
    CHECK(did.factor == (did.norm <= bound ? 1 : bound / did.norm));
    for (std::size_t t = 0; t < sent.tensors.size(); ++t) {
      const auto a = sent.tensors[t].elements(), b = changed.tensors[t].elements();
      const auto c = after.tensors[t].elements();
      for (std::size_t l = 0; l < a.size(); ++l) {
        T expected = b[l];
        if (counts[t][l] && did.factor < 1) {
          const auto x = static_cast<double>(oracle::value_of(a[l]));
          volatile double moved = did.factor * (static_cast<double>(oracle::value_of(b[l])) - x);
          expected = subfed::scalar_traits<T>::store(x + moved);
        }
        CHECK(support::same_value(c[l], expected));
      }
      CHECK(after.tensors[t].rest_untouched());
    }
  }
}

TEST_CASE("norms of very large and very small doubles") {
  subfed::model net;
  net.tensor("w", {2});
  const submodel sub(net, {});
  for (const double size : {1e300, 1e-300, 1.0}) {
    const std::vector<double> sent{0, 0};
    std::vector<double> w{3 * size, 4 * size};
    const auto did = clip_update<double>(sub, {tensor_view<const double>(sent.data(), {2})}, size,
                                         {tensor_view<double>(w.data(), {2})});
    CHECK(did.norm == doctest::Approx(5 * size).epsilon(1e-15));
    CHECK(w[0] == doctest::Approx(0.6 * size).epsilon(1e-15));
  }
}

TEST_CASE("an update whose norm is beyond the largest double is moved to the bound all the same") {
  subfed::model net;
  net.tensor("w", {2});
  const submodel sub(net, {});
  for (const double bound : {1e308, 1.0}) {
    const std::vector<double> sent{0, 0};
    std::vector<double> w{1.5e308, -1.5e308};
    const auto did = clip_update<double>(sub, {tensor_view<const double>(sent.data(), {2})}, bound,
                                         {tensor_view<double>(w.data(), {2})});
    CHECK(did.norm == std::numeric_limits<double>::infinity());
    CHECK(did.factor == doctest::Approx(bound / 1.5e308 / std::sqrt(2.0)).epsilon(1e-12));
    CHECK(w[0] == doctest::Approx(bound / std::sqrt(2.0)).epsilon(1e-12));
    CHECK(w[1] == -w[0]);
  }
}

TEST_CASE("what cannot be clipped is refused, and nothing is written") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  const submodel sub(net, {index_set(3, {2, 0})}, {.round = 7, .client = 4});
  const std::vector<float> sent{1, 2};
  std::vector<float> w{100, std::numeric_limits<float>::infinity()};
  const tensor_views<const float> before{tensor_view<const float>(sent.data(), {2})};
  const auto refused = [&](double bound) {
    return message_of(
        [&] { clip_update<float>(sub, before, bound, {tensor_view<float>(w.data(), {2})}); });
  };
  CHECK(refused(1) ==
        "subfed: clip_update: client 4 of round 7 has a difference that is not finite in tensor "
        "'w', at "
        "global element (0,)");
  CHECK(w[0] == 100);
  CHECK(refused(0) == "subfed: clip_update: the bound is 0, expected a finite number over 0");
  CHECK(refused(std::nan("")).find("the bound is NaN") != std::string::npos);
  CHECK(
      message_of([&] { clip_update<float>(sub, {}, 1, {}); }).starts_with("subfed: clip_update: "));
}
