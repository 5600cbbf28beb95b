// SPDX-License-Identifier: MIT
/// What one client alone holds is copied, and has the bits of a mean.
#include <subfed/average/detail/copy_mean.hpp>

#include <doctest/doctest.h>

#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/philox.hpp>
#include <subfed/schemes.hpp>
#include <support/instructions.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

using subfed::bfloat16;
using subfed::half;

namespace {

/// Elsewhere nothing is copied as a mean.
const doctest::skip keeps_nans(!subfed::detail::keeps_nans);

namespace copy_mean_tests {

/// Numbers of all sizes; every eighth is denormal or 0, some are not finite.
template <class T>
T any_element(subfed::random_stream& random) {
  std::uint64_t bits = random.next_u64();
  if (random.below(8) == 0) bits &= 0x807F807F807F807Fu;
  if (random.below(16) == 0) bits |= 0x7F807F807F807F80u;
  T out;
  std::memcpy(static_cast<void*>(&out), &bits, sizeof(T));
  return out;
}

/// A mean as it is defined: every product, sum and quotient rounded by itself.
template <class T>
T mean_of(T x, double weight) {
  volatile double product = weight * subfed::scalar_traits<T>::load(x);
  volatile double sum = -0.0 + product;
  volatile double mean = sum / weight;
  return subfed::scalar_traits<T>::store(mean);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace copy_mean_tests

}  // namespace

TEST_CASE_TEMPLATE("the mean over one holder is its element, whatever the weight" * keeps_nans, T,
                   float, half, bfloat16) {
  namespace c = copy_mean_tests;
  subfed::random_stream random(1, 0, 0, "copy_mean");
  for (std::int64_t length = 0; length < 90; ++length) {
    for (int trial = 0; trial < 20; ++trial) {
      // Weights of all sizes that are taken for ordinary.
      const double digits = 1 + random.next_unit();
      const double weight =
          trial == 0 ? 1 : std::ldexp(digits, static_cast<int>(random.below(838)) - 419);
      const std::size_t shift = random.below(4);
      const auto n = static_cast<std::size_t>(length);
      std::vector<T> from, out;
      for (std::size_t i = 0; i < n + 4; ++i) from.push_back(c::any_element<T>(random));
      for (std::size_t i = 0; i < n + 5; ++i) out.push_back(c::any_element<T>(random));
      const std::vector<T> before = out;
      subfed::detail::copy_mean(from.data() + shift, out.data() + 1, length);
      bool all = c::same_bits(out[0], before[0]);
      for (std::size_t i = 0; i < n; ++i) {
        all = all && c::same_bits(out[i + 1], c::mean_of(from[i + shift], weight));
      }
      for (std::size_t i = n + 1; i < out.size(); ++i) {
        all = all && c::same_bits(out[i], before[i]);
      }
      CHECK(all);
    }
  }
}

TEST_CASE_TEMPLATE("each number of 16 bits is its mean" * keeps_nans, T, half, bfloat16) {
  namespace c = copy_mean_tests;
  std::vector<T> all(1 << 16), out(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  subfed::detail::copy_mean(all.data(), out.data(), 1 << 16);
  bool same = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const double weight : {1.0, 3.0, 0.3}) same = same && out[i] == c::mean_of(all[i], weight);
  }
  CHECK(same);
}

TEST_CASE_TEMPLATE("small parts of a model have the bits of the plain loop", T, float, double, half,
                   bfloat16) {
  namespace c = copy_mean_tests;
  using namespace subfed;
  using traits = scalar_traits<T>;
  subfed::random_stream random(2, 0, 0, "copy_mean");
  model net;
  const group_id rows = net.group("rows", 40);
  const group_id columns = net.group("columns", 192);
  net.tensor("kernels", {rows, columns, 3, 3});
  net.tensor("matrix", {rows, columns});
  net.tensor("bias", {columns});
  const std::size_t kernel_size[] = {9, 1};
  for (int trial = 0; trial < 8; ++trial) {
    const bool ones = trial % 2 == 0;
    // Of doubles of all sizes, sums and products of the plain loop leave their range.
    const bool finite = trial % 4 < 2 || std::is_same_v<T, double>;
    std::vector<std::vector<std::vector<T>>> data;
    std::vector<update<T>> updates;
    for (std::uint64_t client = 0; client < 6; ++client) {
      const draw_key key{5, static_cast<std::uint64_t>(trial), client,
                         client % 3 == 0 ? 0.25 : 0.06};
      rolling window;
      window.client_phase = 17;
      const submodel sub = client == 5 ? draw(net, window, key) : draw(net, random_subset{}, key);
      auto& own = data.emplace_back();
      std::vector<tensor_view<const T>> views;
      for (std::size_t t = 0; t < 3; ++t) {
        const auto extents = sub.extents(tensor_id(t));
        std::int64_t size = 1;
        for (const std::int64_t e : extents) size *= e;
        auto& elements = own.emplace_back();
        for (std::int64_t i = 0; i < size; ++i) {
          T x = c::any_element<T>(random);
          if (finite) x = traits::store(random.below(9) == 0 ? -0.0 : random.next_unit() - 0.5);
          elements.push_back(x);
        }
        views.emplace_back(elements.data(), std::span<const std::int64_t>(extents));
      }
      updates.push_back({sub, views, ones ? 1.0 : 0.3 + static_cast<double>(client)});
    }
    // The plain loop.
    std::vector<std::vector<T>> expected;
    std::int64_t held = 0;
    for (std::size_t t = 0; t < 3; ++t) {
      const std::size_t size = t == 0 ? 40 * 192 * 9 : t == 1 ? 40 * 192 : 192;
      std::vector<double> sums(size, -0.0), weights(size, 0);
      for (std::size_t u = 0; u < updates.size(); ++u) {
        const index_set one_row = index_set::full(1);
        const index_set& own_rows = t == 2 ? one_row : updates[u].sub[rows];
        const std::size_t unit = t == 2 ? 1 : kernel_size[t];
        std::size_t next = 0;
        for (const std::int64_t row : own_rows) {
          for (const std::int64_t column : updates[u].sub[columns]) {
            for (std::size_t k = 0; k < unit; ++k, ++next) {
              const std::size_t at = static_cast<std::size_t>(row * 192 + column) * unit + k;
              volatile double product = updates[u].weight * traits::load(data[u][t][next]);
              volatile double sum = sums[at] + product;
              sums[at] = sum;
              weights[at] += updates[u].weight;
            }
          }
        }
        REQUIRE(next == data[u][t].size());
      }
      auto& means = expected.emplace_back();
      for (std::size_t i = 0; i < size; ++i) {
        volatile double mean = sums[i] / weights[i];
        means.push_back(weights[i] > 0 ? traits::store(mean) : traits::store(7));
        held += weights[i] > 0 ? 1 : 0;
      }
    }
    support::with_all_instructions([&] {
      std::vector<std::vector<T>> globals;
      std::vector<tensor_view<T>> views;
      for (std::size_t t = 0; t < 3; ++t)
        globals.emplace_back(expected[t].size(), traits::store(7));
      for (std::size_t t = 0; t < 3; ++t) {
        views.emplace_back(globals[t].data(),
                           std::span<const std::int64_t>(net.tensors()[t].extents));
      }
      const average_report report = average_cohort<T>(net, updates, views);
      CHECK(report.held == held);
      bool same = true;
      for (std::size_t t = 0; t < 3; ++t) {
        for (std::size_t i = 0; i < globals[t].size(); ++i) {
          const double x = traits::load(globals[t][i]), y = traits::load(expected[t][i]);
          // The bits of a NaN from several holders depend on the order of the operands.
          same = same &&
                 (c::same_bits(globals[t][i], expected[t][i]) || (std::isnan(x) && std::isnan(y)));
        }
      }
      CHECK(same);
    });
  }
}
