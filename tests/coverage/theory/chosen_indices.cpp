// SPDX-License-Identifier: MIT
#include <subfed/coverage/theory/chosen_indices.hpp>

#include <support/checks.hpp>
#include <support/close.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using subfed::rounds_until_chosen;
using support::message_of;
using support::relative_error;

namespace {

struct golden_row {
  std::int64_t indices;
  std::int64_t times;
  double mean;
  double variance;
};
constexpr golden_row golden[] = {
#include <golden/theory_chosen.inc>
};

/// Mean rounds until each of the indices was chosen `times` times, from how often each was so far:
/// one step at a time.
double by_steps(std::vector<std::int64_t> counts, std::int64_t times) {
  std::vector<double> after;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == times) continue;
    ++counts[i];
    after.push_back(by_steps(counts, times));
    --counts[i];
  }
  if (after.empty()) return 0;
  double sum = static_cast<double>(counts.size());
  for (const double each : after) sum += each;
  return sum / static_cast<double>(after.size());
}

}  // namespace

TEST_CASE("two submodels take 3 rounds until both were chosen, 5.5 until both were twice") {
  CHECK(rounds_until_chosen(2).mean == doctest::Approx(3));
  CHECK(rounds_until_chosen(2).variance == doctest::Approx(2));
  CHECK(rounds_until_chosen(2, 2).mean == doctest::Approx(5.5));
  CHECK(rounds_until_chosen(1).mean == 1);
  CHECK(rounds_until_chosen(1).variance == 0);
  CHECK(rounds_until_chosen(1, 7).mean == 7);
  CHECK(rounds_until_chosen(1, 7).variance == 0);
}

TEST_CASE("rounds until chosen agree with exact sums and long decimals") {
  for (const golden_row& row : golden) {
    INFO("I = ", row.indices, ", m = ", row.times);
    const auto found = rounds_until_chosen(row.indices, row.times);
    CHECK(relative_error(found.mean, row.mean) < 1e-12);
    CHECK(relative_error(found.variance, row.variance) < 1e-10);
  }
}

TEST_CASE("rounds until chosen agree with the process taken step by step") {
  for (std::size_t indices = 1; indices <= 4; ++indices) {
    for (std::int64_t times = 1; times <= 3; ++times) {
      INFO("I = ", indices, ", m = ", times);
      const double expected = by_steps(std::vector<std::int64_t>(indices, 0), times);
      const auto found = rounds_until_chosen(static_cast<std::int64_t>(indices), times);
      CHECK(relative_error(found.mean, expected) < 1e-13);
    }
  }
}

TEST_CASE("Lemma 1's series takes over from its sum without a step") {
  for (std::int64_t n = 60; n < 80; ++n) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = n; i > 0; --i) {
      sum += 1 / static_cast<double>(i);
      squares += 1 / static_cast<double>(i * i);
    }
    const auto I = static_cast<double>(n);
    CHECK(relative_error(rounds_until_chosen(n).mean, I * sum) < 1e-15);
    CHECK(relative_error(rounds_until_chosen(n).variance, I * I * squares - I * sum) < 1e-15 * I);
  }
}

TEST_CASE("more indices and more times take more rounds, in turn never more than at random") {
  for (std::int64_t indices = 1; indices <= 1000; indices = indices * 3 / 2 + 1) {
    double before = 0;
    for (std::int64_t times = 1; times <= 50; ++times) {
      const double mean = rounds_until_chosen(indices, times).mean;
      CHECK(mean > before);
      CHECK(mean >= static_cast<double>(subfed::rounds_until_chosen_in_turn(indices, times)));
      if (indices > 1) CHECK(mean > rounds_until_chosen(indices - 1, times).mean);
      before = mean;
    }
  }
}

TEST_CASE("the asymptotic forms: worked values, and the mean goes to them") {
  CHECK(subfed::rounds_until_chosen_newman_shepp(1000, 1) ==
        doctest::Approx(1000 * std::log(1000.0)));
  CHECK(subfed::rounds_until_chosen_newman_shepp(1000, 3) ==
        doctest::Approx(1000 * (std::log(1000.0) + 2 * std::log(std::log(1000.0)))));
  CHECK(subfed::rounds_until_chosen_erdos_renyi(1000, 4) ==
        doctest::Approx(1000 * (std::log(1000.0) + 3 * std::log(std::log(1000.0)) +
                                0.5772156649015329 - std::log(6.0))));
  // I (log I + gamma) + 1/2 - ..
  CHECK(rounds_until_chosen(1000000).mean - subfed::rounds_until_chosen_erdos_renyi(1000000, 1) ==
        doctest::Approx(0.5).epsilon(1e-4));
  for (const std::int64_t times : {2, 3, 5, 10}) {
    double before = 1;
    for (const double indices : {1e3, 1e5, 1e7, 1e9, 1e12, 1e15}) {
      const auto I = static_cast<std::int64_t>(indices);
      const double error = relative_error(subfed::rounds_until_chosen_erdos_renyi(I, times),
                                          rounds_until_chosen(I, times).mean);
      CHECK(error < before);
      before = error;
    }
  }
  // The figures in the doc comments.
  const auto off = [](double form, std::int64_t indices, std::int64_t times) {
    return std::lround(100 * (form / rounds_until_chosen(indices, times).mean - 1));
  };
  CHECK(off(subfed::rounds_until_chosen_newman_shepp(1000, 1), 1000, 1) == -8);
  CHECK(off(subfed::rounds_until_chosen_newman_shepp(1000, 2), 1000, 2) == -10);
  CHECK(off(subfed::rounds_until_chosen_newman_shepp(1000, 10), 1000, 10) == 3);
  CHECK(off(subfed::rounds_until_chosen_erdos_renyi(1000, 2), 1000, 2) == -5);
  CHECK(off(subfed::rounds_until_chosen_erdos_renyi(100000, 2), 100000, 2) == -2);
}

TEST_CASE("numbers of indices and times out of range are refused") {
  CHECK(message_of([] { rounds_until_chosen(0); }) ==
        "subfed: rounds_until_chosen: 0 indices, expected 1 to 2^53");
  CHECK(message_of([] { rounds_until_chosen((std::int64_t{1} << 53) + 1); }) ==
        "subfed: rounds_until_chosen: 9007199254740993 indices, expected 1 to 2^53");
  CHECK(message_of([] { rounds_until_chosen(3, 0); }) ==
        "subfed: rounds_until_chosen: chosen 0 times, expected 1 to 1000000");
  CHECK(message_of([] { rounds_until_chosen(3, 1000001); }) ==
        "subfed: rounds_until_chosen: chosen 1000001 times, expected 1 to 1000000");
  CHECK(message_of([] { subfed::rounds_until_chosen_newman_shepp(1, 1); }) ==
        "subfed: rounds_until_chosen_newman_shepp: 1 indices, expected 2 to 2^53");
  CHECK(message_of([] { subfed::rounds_until_chosen_erdos_renyi(1, 1); }) ==
        "subfed: rounds_until_chosen_erdos_renyi: 1 indices, expected 2 to 2^53");
  CHECK(message_of([] { subfed::rounds_until_chosen_in_turn(0); }) ==
        "subfed: rounds_until_chosen_in_turn: 0 indices, expected 1 to 2^53");
  CHECK(message_of([] { subfed::rounds_until_chosen_in_turn(std::int64_t{1} << 53, 1024); }) ==
        "subfed: rounds_until_chosen_in_turn: 1024 times 9007199254740992 is over 2^63 - 1");
  CHECK(subfed::rounds_until_chosen_in_turn(64, 50) == 3200);
}
