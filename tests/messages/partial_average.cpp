// SPDX-License-Identifier: MIT
#include <subfed/messages/partial_average.hpp>

#include <doctest/doctest.h>
#include <subfed/executor.hpp>
#include <support/average_properties.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::average_options;
using subfed::average_report;
using subfed::fixed_point;
using subfed::half;
using subfed::index_set;
using subfed::read_partial_average;
using subfed::selective_average;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::write_partial_average;
using support::message_of;
using support::seeded;

namespace {

template <class T>
T partial_value(seeded& random) {
  const auto exponent = static_cast<int>(random.between(-12, 1));
  return T(std::ldexp(static_cast<double>(random.between(-1003, 1003)) / 1003, exponent));
}
double partial_weight(seeded& random) {
  return random.one_in(6) ? 0 : static_cast<double>(random.between(1, 99)) / 50;
}

void seal(std::vector<std::byte>& all) {
  const std::uint64_t sum = subfed::detail::checksum_around(all, 24);
  for (std::size_t i = 0; i < 8; ++i) all[24 + i] = static_cast<std::byte>(sum >> (8 * i) & 0xFF);
}

/// One group of 4, w (4, 2); an average with two clients.
struct partial_setting {
  subfed::model net;
  subfed::group_id g = net.group("g", 4);
  subfed::tensor_id w = net.tensor("w", {g, 2});
  average_options options{.sums = fixed_point{.bound = 4, .clients = 4}};
  std::vector<float> x{1, 2, 3, 4, -1, -2, -3, -4};

  selective_average<float> mean() const {
    selective_average<float> out(net, options);
    for (const std::int64_t first : {0, 1}) {
      const submodel sub(net, {index_set(4, {first, first + 1})},
                         {.client = static_cast<std::uint64_t>(first)});
      out.add(sub, {tensor_view<const float>(x.data(), {2, 2})}, 1);
    }
    return out;
  }
  std::string refusal(const std::vector<std::byte>& all) const {
    return message_of([&] { read_partial_average<float>(net, options, all); });
  }
};

}  // namespace

TEST_CASE_TEMPLATE("what was added here and merged there has the bits of merging here", T, float,
                   double, half) {
  for (std::uint64_t n = 0; n < 120; ++n) {
    INFO("number ", n);
    seeded random(n);
    average_options options = support::options_number(n);
    if (n % 2 == 0) options.sums = fixed_point{.bound = 4, .clients = 12, .total_weight = 24};
    if (n % 3 == 0) options.round = 0;
    const bool odd = options.on_non_finite != subfed::non_finite::propagate;
    const support::cohort<T> group{random, support::random_network(random), 8,
                                   [&](seeded& r) {
                                     return odd && r.one_in(30)
                                                ? T(std::numeric_limits<double>::infinity())
                                                : partial_value<T>(r);
                                   },
                                   partial_weight};
    const auto updates = group.updates();
    selective_average<T> a(group.net, options), b(group.net, options);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      (i < 4 ? a : b).add(updates[i].sub, updates[i].tensors, updates[i].weight);
    }
    const auto bytes = write_partial_average(b);
    const auto arrived = read_partial_average<T>(group.net, options, bytes);
    CHECK(write_partial_average(arrived) == bytes);
    CHECK(arrived.report() == b.report());
    CHECK(arrived.held() == b.held());
    selective_average<T> here = a, there = a;
    here.merge(b);
    there.merge(arrived);
    support::cohort<T> one = group, two = group;
    support::check_report(there.finish(tensor_views<T>(two.global_views())),
                          here.finish(tensor_views<T>(one.global_views())));
    for (std::size_t t = 0; t < one.globals.size(); ++t) {
      CHECK(support::same_bits(one.globals[t].elements(), two.globals[t].elements()));
    }
    if (options.round && here.report().clients > 4) {
      CHECK(message_of([&] { there.merge(arrived); }).find("is in both") != std::string::npos);
    }
  }
}

TEST_CASE("integers, counters, mixed types, and weights for every element travel") {
  subfed::model net;
  const auto g = net.group("g", 200);
  net.tensor("w", {g});
  net.tensor("n", {g}, subfed::role::counter);
  net.tensor("c", {1}, subfed::role::counter);
  net.tensor("own", {g}, subfed::role::local);
  for (const auto rule :
       {subfed::integer_rule::keep, subfed::integer_rule::max, subfed::integer_rule::sum}) {
    average_options options{.integers = rule};
    options.sums = fixed_point{.bound = 1, .clients = 40};
    selective_average<void> all(net, options), some(net, options);
    seeded random(3);
    for (std::uint64_t c = 0; c < 30; ++c) {
      const submodel sub(net, {index_set(200, support::random_nodes(random, 200))}, {.client = c});
      const std::int64_t n = sub.extent(g);
      std::vector<float> w(static_cast<std::size_t>(n), 0.25f);
      const std::vector<std::int32_t> counts(static_cast<std::size_t>(n), -3);
      const double steps = 7.5;
      const tensor_views<const void> tensors{tensor_view<const float>(w.data(), {n}),
                                             tensor_view<const std::int32_t>(counts.data(), {n}),
                                             tensor_view<const double>(&steps, {1}),
                                             tensor_view<const float>(nullptr, {0})};
      all.add(sub, tensors);
      if (c % 2 == 0) some.add(sub, tensors);
    }
    CHECK(all.has_dense_weights());
    for (const selective_average<void>* mean : {&all, &some}) {
      const auto bytes = write_partial_average(*mean);
      const auto arrived = read_partial_average<void>(net, options, bytes);
      CHECK(arrived.has_dense_weights() == mean->has_dense_weights());
      CHECK(write_partial_average(arrived) == bytes);
      std::vector<float> w(200, 9), w2(200, 9), own(200, 1);
      std::vector<std::int32_t> n(200, 1), n2(200, 1);
      double c = 2, c2 = 2;
      mean->finish({tensor_view<float>(w.data(), {200}), tensor_view<std::int32_t>(n.data(), {200}),
                    tensor_view<double>(&c, {1}), tensor_view<float>(own.data(), {200})});
      arrived.finish({tensor_view<float>(w2.data(), {200}),
                      tensor_view<std::int32_t>(n2.data(), {200}), tensor_view<double>(&c2, {1}),
                      tensor_view<float>(own.data(), {200})});
      CHECK(w == w2);
      CHECK(n == n2);
      CHECK(c == c2);
      CHECK((c == 2) == (rule == subfed::integer_rule::keep));
      CHECK(
          message_of([&] { read_partial_average<float>(net, options, bytes); }) ==
          "subfed: partial average: it is of an average of mixed types, expected one of one type");
    }
  }
}

TEST_CASE("a submodel of which some nodes take part travels as those") {
  partial_setting s;
  selective_average<float> mean(s.net, s.options);
  const submodel sub(s.net, {index_set(4, {3, 1})});
  mean.add(sub.restricted(s.g, index_set(4, {1, 2})),
           {tensor_view<const float>(s.x.data(), {2, 2})}, 1);
  const auto arrived = read_partial_average<float>(s.net, s.options, write_partial_average(mean));
  std::vector<float> global(8, 9);
  arrived.finish({tensor_view<float>(global.data(), {4, 2})});
  CHECK(global == std::vector<float>{9, 9, 3, 4, 9, 9, 9, 9});
}

TEST_CASE("another model, version, options or size, and any changed byte, are refused") {
  const partial_setting s;
  const auto all = write_partial_average(s.mean());
  CHECK(s.refusal(all) == "nothing was thrown");
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto changed = all;
    changed[i] ^= std::byte{1};
    CHECK_MESSAGE(s.refusal(changed) != "nothing was thrown", "byte " << i);
    changed = all;
    changed.resize(i);
    CHECK(s.refusal(changed) != "nothing was thrown");
  }
  for (std::size_t size = 16; size < 32; ++size) {  // a message that says how short it is
    auto cut_off = all;
    cut_off.resize(size);
    cut_off[8] = static_cast<std::byte>(size);
    cut_off[9] = std::byte{0};
    CHECK(s.refusal(cut_off).find("it ends after ") != std::string::npos);
  }
  auto newer = all;
  newer[3] = std::byte{9};
  CHECK(s.refusal(newer) == "subfed: partial average: version 9, and this is for version 1");
  average_options other = s.options;
  other.sums->bound = 8;
  CHECK(message_of([&] { read_partial_average<float>(s.net, other, all); }) ==
        "subfed: partial average: it was made with other options");
  subfed::model renamed;
  renamed.tensor("w", {renamed.group("h", 4), 2});
  CHECK(message_of([&] {
          read_partial_average<float>(renamed, s.options, all);
        }).find("the model's fingerprint is ") != std::string::npos);
}

TEST_CASE("a sum that the weights and the bound exclude is refused, so merging cannot overflow") {
  const partial_setting s;
  auto all = write_partial_average(s.mean());
  all[all.size() - 8 * 8 - 1] = std::byte{0x7F};  // the last sum, in front of eight weights
  seal(all);
  CHECK(s.refusal(all).find("tensor 'w': a sum of ") != std::string::npos);
}

TEST_CASE("an average of nothing travels") {
  const partial_setting s;
  const selective_average<float> empty(s.net, s.options);
  const auto bytes = write_partial_average(empty);
  const auto arrived = read_partial_average<float>(s.net, s.options, bytes);
  std::vector<float> global(8, 9);
  CHECK(arrived.finish({tensor_view<float>(global.data(), {4, 2})}).held == 0);
  CHECK(global == std::vector<float>(8, 9));
}
