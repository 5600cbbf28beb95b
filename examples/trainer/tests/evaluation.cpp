// SPDX-License-Identifier: MIT
#include "evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Four images of the labels 0, 1, 1, 2; the model says 3, 1, 0, 2.
trainer::answers four_answers() {
  return {at::tensor({1.f, 0.f, 0.f, 2.f,  //
                      0.f, 3.f, 0.f, 1.f,  //
                      4.f, 1.f, 0.f, 0.f,  //
                      0.f, 0.f, 5.f, 0.f})
              .view({4, 4}),
          at::tensor({std::int64_t{0}, std::int64_t{1}, std::int64_t{1}, std::int64_t{2}})};
}

}  // namespace

DOCTEST_TEST_CASE("a client's accuracy is over images of its labels, among its labels") {
  std::vector<trainer::client> clients(4);
  clients[0].labels = {0, 1};  // 3 does not count for the first image: two of three are right
  clients[1].labels = {1, 2};  // without 0 the third image is right too
  clients[2].labels = {0, 1, 2, 3};
  clients[3].labels = {3};  // no test image
  const std::vector<double> local = trainer::local_accuracies(four_answers(), clients);
  DOCTEST_REQUIRE(local.size() == 4);
  DOCTEST_CHECK(local[0] == doctest::Approx(2.0 / 3));
  DOCTEST_CHECK(local[1] == 1);
  DOCTEST_CHECK(local[2] == 0.5);
  DOCTEST_CHECK(std::isnan(local[3]));
}

DOCTEST_TEST_CASE(
    "accuracies of clients are those of LibTorch's operators, ties and NaN included") {
  torch::manual_seed(1);
  trainer::answers given;
  given.logits = at::randint(0, 4, {300, 5}).to(at::kFloat);  // often two are the largest
  for (const float special : {static_cast<float>(not_a_number), INFINITY, -INFINITY}) {
    given.logits.masked_fill_(at::rand({300, 5}).lt(0.1), special);
  }
  given.targets = at::randint(0, 5, {300}, at::kLong);
  given.each = 3;
  std::vector<trainer::client> clients(3);
  clients[0].labels = {1, 4};
  clients[1].labels = {0, 2, 3};
  clients[1].tests = {7, 99, 0, 7};
  clients[2].tests = {3, 50};
  const std::vector<double> local = trainer::local_accuracies(given, clients);
  const auto among = [&](const trainer::client& c, const at::Tensor& rows) {
    at::Tensor visible = given.logits.index_select(0, rows);
    for (std::int64_t k = 0; k < 5; ++k) {
      const bool lacks =
          !c.labels.empty() && std::find(c.labels.begin(), c.labels.end(), k) == c.labels.end();
      if (lacks) visible.select(1, k).fill_(-INFINITY);
    }
    const at::Tensor right = visible.argmax(1).eq(given.targets.index_select(0, rows));
    return right.to(at::kDouble).mean().item<double>();
  };
  const at::Tensor own = at::logical_or(given.targets.eq(1), given.targets.eq(4));
  DOCTEST_CHECK(local[0] == among(clients[0], own.nonzero().squeeze(1)));
  DOCTEST_CHECK(
      local[1] ==
      among(clients[1], at::tensor({21, 22, 23, 297, 298, 299, 0, 1, 2, 21, 22, 23}, at::kLong)));
  DOCTEST_CHECK(local[2] == among(clients[2], at::tensor({9, 10, 11, 150, 151, 152}, at::kLong)));
}

DOCTEST_TEST_CASE("of equal logits the first counts") {
  std::vector<trainer::client> clients(1);
  clients[0].labels = {1, 2};
  const trainer::answers given{at::ones({3, 3}), at::tensor({1, 1, 2}, at::kLong)};
  DOCTEST_CHECK(trainer::local_accuracies(given, clients)[0] == 2.0 / 3);
}

DOCTEST_TEST_CASE("clients without a test image are not in the mean") {
  const auto mean_of = [](const std::vector<double>& local) {
    return trainer::judge(four_answers(), local).local_accuracy;
  };
  DOCTEST_CHECK(mean_of({0.5, not_a_number, 1}) == 0.75);
  DOCTEST_CHECK(mean_of({not_a_number}) == 0);
  DOCTEST_CHECK(trainer::judge(four_answers(), {}).accuracy == 0.5);
}
