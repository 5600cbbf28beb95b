// SPDX-License-Identifier: MIT
#include <subfed/systems/channel_moments.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::channel_moments;
using subfed::tensor_view;
using support::message_of;

TEST_CASE("two channels by hand") {
  channel_moments m(2);
  const std::vector<float> batch{1, 10, 3, 10, 5, 40};  // (3, 2)
  m.add<float>({batch.data(), {3, 2}});
  CHECK(m.count() == 3);
  CHECK(m.mean() == std::vector<double>{3, 20});
  CHECK(m.variance()[0] == doctest::Approx(8.0 / 3));
  CHECK(m.variance()[1] == doctest::Approx(200));
  CHECK(m.unbiased_variance()[1] == doctest::Approx(300));
}

TEST_CASE("clients that merge have the moments of all data together, in any split and layout") {
  support::seeded random(14);
  for (int trial = 0; trial < 30; ++trial) {
    const std::int64_t channels = random.between(1, 4);
    const double offset = random.one_in(2) ? 1e7 : 0;  // large means must not eat the variance
    std::vector<std::vector<double>> all(static_cast<std::size_t>(channels));
    std::vector<channel_moments> clients(static_cast<std::size_t>(random.between(1, 4)),
                                         channel_moments(channels));
    for (channel_moments& client : clients) {
      for (std::int64_t batches = random.between(0, 3); batches > 0; --batches) {
        support::extents_type extents{random.between(0, 3), channels};
        for (std::int64_t more = random.between(0, 2); more > 0; --more) {
          extents.push_back(random.between(1, 3));
        }
        support::strided<double> batch(support::random_layout(random, extents));
        batch.fill([&](std::int64_t) { return offset + random.unit(); });
        for (const auto& index : support::all_indices(extents)) {
          all[static_cast<std::size_t>(index[1])].push_back(batch(index));
        }
        const auto& read = batch;
        client.add<double>(read.view());
      }
    }
    channel_moments merged(channels);
    for (const channel_moments& client : clients) merged.merge(client);
    CHECK(merged.count() == static_cast<std::int64_t>(all[0].size()));
    for (std::size_t c = 0; c < all.size() && !all[c].empty(); ++c) {
      long double mean = 0, squares = 0;
      for (const double x : all[c]) mean += static_cast<long double>(x);
      mean /= static_cast<long double>(all[c].size());
      for (const double x : all[c]) {
        squares += (static_cast<long double>(x) - mean) * (static_cast<long double>(x) - mean);
      }
      const auto variance = static_cast<double>(squares / static_cast<long double>(all[c].size()));
      CHECK(std::fabs(merged.mean()[c] - static_cast<double>(mean)) < 1e-15 * (1 + offset) * 4);
      CHECK(std::fabs(merged.variance()[c] - variance) < 1e-8);
    }
  }
}

TEST_CASE("other shapes, and an unbiased variance of one value, are refused; nothing is added") {
  channel_moments m(2);
  const std::vector<double> x(6, 1.0);
  CHECK(message_of([&] {
          m.add<double>({x.data(), {2, 3}});
        }) ==
        "subfed: channel_moments: a batch of shape (2, 3) is given for 2 channels, expected "
        "(samples, channels, ..)");
  CHECK(message_of([&] {
          m.add<double>({x.data(), {2}});
        }).find("of shape (2,)") != std::string::npos);
  CHECK(message_of([&] { m.merge(channel_moments(3)); }) ==
        "subfed: channel_moments: moments of 3 channels are merged into those of 2");
  CHECK(message_of([] { channel_moments(-1); }) == "subfed: channel_moments: -1 channels");
  CHECK(m.count() == 0);
  CHECK(m.variance() == std::vector<double>{0, 0});
  m.add<double>({x.data(), {1, 2}});
  CHECK(message_of([&] { m.unbiased_variance(); }) ==
        "subfed: channel_moments: an unbiased variance of 1 values");
}

TEST_CASE("values of any size have their mean; equal ones have no variance") {
  constexpr double largest = (std::numeric_limits<double>::max)();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double x : {1e200, -1.7e308, largest, -largest, 1e-320}) {
    for (const std::int64_t n : {1, 2, 3, 7, 1000}) {
      const std::vector<double> batch(static_cast<std::size_t>(n), x);
      channel_moments m(1);
      m.add<double>({batch.data(), {n, 1}});
      CHECK(m.mean() == std::vector<double>{x});
      CHECK(m.variance() == std::vector<double>{0});
      m.merge(channel_moments(m));
      CHECK(m.mean() == std::vector<double>{x});
      CHECK(m.variance() == std::vector<double>{0});
    }
  }
  channel_moments apart(2);
  const std::vector<double> both{largest, 1, -largest, 3};
  apart.add<double>({both.data(), {2, 2}});
  CHECK(apart.mean() == std::vector<double>{0, 2});
  CHECK(apart.variance() == std::vector<double>{infinity, 1});
  channel_moments one(1), other(1);
  one.add<double>({both.data(), {1, 1}});
  other.add<double>({both.data() + 2, {1, 1}});
  one.merge(other);
  CHECK(one.mean() == std::vector<double>{0});
  CHECK(one.variance() == std::vector<double>{infinity});
}
