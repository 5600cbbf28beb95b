// SPDX-License-Identifier: MIT
#include <subfed/average/detail/dense_average.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

using subfed::tensor_view;
using subfed::detail::average_terms;
using subfed::detail::dense_average;

TEST_CASE("parts of a dense average are its slabs, in any layout") {
  const std::array<double, 15> sums{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
  std::array<double, 15> weights{};
  weights.fill(2);
  weights[4] = 0;
  weights[13] = 0;
  average_terms terms;
  terms.sums = sums.data();
  terms.weights = weights.data();
  const std::array<std::array<std::int64_t, 2>, 3> layouts{{{3, 1}, {1, 5}, {-3, 1}}};
  for (const auto& strides : layouts) {
    std::vector<float> memory(15, -1);
    const std::int64_t start = strides[0] < 0 ? 12 : 0;
    const tensor_view<float> global(memory.data() + start, {5, 3}, {strides[0], strides[1]});
    std::int64_t held = 0;
    for (const std::array<std::int64_t, 2> part : {std::array<std::int64_t, 2>{2, 5}, {0, 2}}) {
      held += dense_average(global, terms, part[0], part[1]).held;
    }
    CHECK(held == 13);
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        const std::int64_t n = 3 * i + j;
        const float expected = n == 4 || n == 13 ? -1 : static_cast<float>(n + 1);
        CHECK(global.data_handle()[i * strides[0] + j * strides[1]] == expected);
      }
    }
  }
}

TEST_CASE("weights of a dense average may be scaled, and its results too large") {
  const double huge = 1.5e308;
  const std::array<double, 2> sums{huge, huge};
  const std::array<double, 2> weights{0.5, 1};
  average_terms terms;
  terms.sums = sums.data();
  terms.weights = weights.data();
  terms.weights_exponent = 1;
  std::array<float, 2> narrow{1, 2};
  const auto report = dense_average(tensor_view<float>(narrow.data(), {2}), terms, 0, 2);
  CHECK(report.held == 2);
  CHECK(report.overflowed == 2);
  CHECK(report.first_overflow == 0);
  std::array<double, 2> wide{1, 2};
  CHECK(dense_average(tensor_view<double>(wide.data(), {2}), terms, 0, 2).overflowed == 0);
  CHECK(wide == std::array<double, 2>{1.5e308, 0.75e308});
}

TEST_CASE("an old value that does not enter hides no result that is too large") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const double huge = 1e300;
  const double weight = 1;
  average_terms terms;
  terms.options.divide_by = subfed::divisor::cohort;
  terms.cohort_weight = 1;
  terms.sums = &huge;
  terms.weights = &weight;
  float element = -infinite;
  CHECK(dense_average(tensor_view<float>(&element, {1}), terms, 0, 1).overflowed == 1);
  CHECK(element == infinite);
}
