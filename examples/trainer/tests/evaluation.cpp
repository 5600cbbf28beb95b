// SPDX-License-Identifier: MIT
#include "evaluation.hpp"

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

DOCTEST_TEST_CASE("clients without a test image are not in the mean") {
  const auto mean_of = [](const std::vector<double>& local) {
    return trainer::judge(four_answers(), local).local_accuracy;
  };
  DOCTEST_CHECK(mean_of({0.5, not_a_number, 1}) == 0.75);
  DOCTEST_CHECK(mean_of({not_a_number}) == 0);
  DOCTEST_CHECK(trainer::judge(four_answers(), {}).accuracy == 0.5);
}
