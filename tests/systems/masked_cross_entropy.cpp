// SPDX-License-Identifier: MIT
#include <subfed/systems/masked_cross_entropy.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::absent_logits;
using subfed::index_set;
using subfed::masked_cross_entropy;
using subfed::tensor_view;
using support::message_of;

TEST_CASE("by hand: classes 0 and 2 of three; the third is 0, or is not there") {
  const std::vector<double> logits{1, 50, 2};
  const tensor_view<const double> view(logits.data(), {1, 3});
  const std::vector<std::int64_t> label{2};
  const index_set present(3, {0, 2});
  CHECK(masked_cross_entropy<double>(view, label, present) ==
        doctest::Approx(std::log(std::exp(1) + 1 + std::exp(2)) - 2));
  CHECK(masked_cross_entropy<double>(view, label, present, absent_logits::minus_infinity) ==
        doctest::Approx(std::log(std::exp(1) + std::exp(2)) - 2));
}

TEST_CASE("-inf is the cross entropy over the client's classes alone, and 0 a larger loss") {
  support::seeded random(8);
  for (int trial = 0; trial < 30; ++trial) {
    const std::int64_t classes = random.between(1, 6), samples = random.between(1, 4);
    std::vector<std::int64_t> nodes;
    while (nodes.empty()) nodes = support::random_nodes(random, classes);
    const index_set present(classes, nodes);
    support::strided<float> logits(support::random_layout(random, {samples, classes}));
    logits.fill([&](std::int64_t) { return static_cast<float>(6 * random.unit() - 3); });
    const auto& read = logits;
    std::vector<std::int64_t> labels;
    double small = 0, with_zero = 0;
    for (std::int64_t b = 0; b < samples; ++b) {
      labels.push_back(nodes[static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(nodes.size()) - 1))]);
      long double sum = 0;
      for (const std::int64_t k : nodes) sum += std::exp(static_cast<long double>(logits({b, k})));
      const auto absent =
          static_cast<long double>(classes - static_cast<std::int64_t>(nodes.size()));
      const auto own = static_cast<long double>(logits({b, labels.back()}));
      small += static_cast<double>(std::log(sum) - own) / static_cast<double>(samples);
      with_zero += static_cast<double>(std::log(sum + absent) - own) / static_cast<double>(samples);
    }
    CHECK(masked_cross_entropy<float>(read.view(), labels, present,
                                      absent_logits::minus_infinity) == doctest::Approx(small));
    CHECK(masked_cross_entropy<float>(read.view(), labels, present) == doctest::Approx(with_zero));
  }
}

TEST_CASE("the gradient is the difference quotient, and 0 for classes that are absent") {
  support::seeded random(9);
  for (const auto absent : {absent_logits::zero, absent_logits::minus_infinity}) {
    std::vector<double> logits(8);
    for (double& z : logits) z = 4 * random.unit() - 2;
    const index_set present(4, {3, 0, 1});
    const std::vector<std::int64_t> labels{1, 3};
    std::vector<double> gradient(8, 7.0);
    const tensor_view<const double> view(logits.data(), {2, 4});
    const double loss = masked_cross_entropy<double>(view, labels, present, absent,
                                                     tensor_view<double>(gradient.data(), {2, 4}));
    CHECK(loss == masked_cross_entropy<double>(view, labels, present, absent));
    for (std::size_t i = 0; i < 8; ++i) {
      const double before = logits[i], step = 1e-6;
      logits[i] = before + step;
      const double up = masked_cross_entropy<double>(view, labels, present, absent);
      logits[i] = before - step;
      const double down = masked_cross_entropy<double>(view, labels, present, absent);
      logits[i] = before;
      CHECK(std::fabs(gradient[i] - (up - down) / (2 * step)) < 1e-8);
      if (i % 4 == 2) CHECK(gradient[i] == 0);
    }
  }
}

TEST_CASE("logits of any size give a finite loss") {
  const std::vector<double> logits{1000, -1000, 999, 800};
  const tensor_view<const double> view(logits.data(), {2, 2});
  CHECK(masked_cross_entropy<double>(view, std::vector<std::int64_t>{1, 0}, index_set::full(2)) ==
        doctest::Approx(1000));
  const tensor_view<const double> low(logits.data() + 1, {1, 1});  // alone, and far below 0
  CHECK(masked_cross_entropy<double>(low, std::vector<std::int64_t>{0}, index_set::full(1)) == 0);
}

TEST_CASE("what classes add to the largest logit is not lost beside it") {
  const std::vector<double> logits{1e17, 1e17, 0};
  const tensor_view<const double> view(logits.data(), {1, 3});
  CHECK(masked_cross_entropy<double>(view, std::vector<std::int64_t>{0}, index_set::full(3)) ==
        doctest::Approx(std::log(2.0)));
}

TEST_CASE("half and bfloat16 need no qualified name") {
  const std::vector<double> z{1, 2, 4};
  const auto loss = [&]<class T>(T) {
    std::vector<T> logits(z.begin(), z.end()), gradient(3);
    return masked_cross_entropy<T>(tensor_view<const T>(logits.data(), {1, 3}),
                                   std::vector<std::int64_t>{0}, index_set::full(3),
                                   absent_logits::zero, tensor_view<T>(gradient.data(), {1, 3}));
  };
  CHECK(loss(subfed::half()) == loss(0.0));
  CHECK(loss(subfed::bfloat16()) == loss(0.0));
}

TEST_CASE("labels of absent classes and wrong shapes are refused, and nothing is written") {
  std::vector<double> logits(6, 0.0), gradient(6, 3.0);
  const tensor_view<const double> view(logits.data(), {2, 3});
  const tensor_view<double> out(gradient.data(), {2, 3});
  const std::vector<std::int64_t> labels{0, 2};
  CHECK(
      message_of([&] {
        masked_cross_entropy<double>(view, labels, index_set(3, {0, 1}), absent_logits::zero, out);
      }) ==
      "subfed: masked_cross_entropy: sample 1 has the label 2, which is not among the "
      "client's classes");
  CHECK(message_of([&] {
          masked_cross_entropy<double>(view, labels, index_set(4, {0, 2}));
        }) ==
        "subfed: masked_cross_entropy: the set of present classes has the extent 4, expected 3");
  CHECK(message_of([&] {
          masked_cross_entropy<double>(view, std::vector<std::int64_t>{0}, index_set::full(3));
        }) ==
        "subfed: masked_cross_entropy: logits of shape (2, 3) are given for 1 samples, "
        "expected (samples, classes)");
  CHECK(message_of([&] {
          masked_cross_entropy<double>(view, labels, index_set::full(3), absent_logits::zero,
                                       tensor_view<double>(gradient.data(), {3, 2}));
        }).find("the gradient tensor has shape (3, 2), expected (2, 3)") != std::string::npos);
  CHECK(gradient == std::vector<double>(6, 3.0));
}
