// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/capacity.hpp>
#include <support/checks.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

using subfed::capacity;
using subfed::rounding;
using support::message_of;

namespace {

struct golden_row {
  capacity share;
  std::int64_t extent;
  std::int64_t floor;
  std::int64_t ceil;
  std::int64_t nearest;
};
constexpr golden_row golden[] = {
#include <golden/capacity.inc>
};

/// numerator / denominator of extent in whole numbers.
std::int64_t exact(std::int64_t numerator, std::int64_t denominator, std::int64_t extent,
                   rounding mode) {
  const std::int64_t product = numerator * extent;
  if (mode == rounding::floor) return product / denominator;
  if (mode == rounding::ceil) return (product + denominator - 1) / denominator;
  return (2 * product + denominator) / (2 * denominator);
}

constexpr rounding modes[] = {rounding::floor, rounding::ceil, rounding::nearest};

}  // namespace

TEST_CASE("a sixteenth and a quarter of small layers") {
  const std::vector<std::int64_t> extents{1, 3, 10, 16, 64, 100};
  const auto of_all = [&](const capacity& share, rounding mode) {
    std::vector<std::int64_t> out;
    for (const std::int64_t extent : extents) out.push_back(share.of(extent, mode));
    return out;
  };
  using counts = std::vector<std::int64_t>;
  for (const capacity& sixteenth : {capacity(1.0 / 16), capacity::ratio(1, 16)}) {
    CHECK(of_all(sixteenth, rounding::ceil) == counts{1, 1, 1, 1, 4, 7});
    CHECK(of_all(sixteenth, rounding::floor) == counts{1, 1, 1, 1, 4, 6});
  }
  for (const capacity& quarter : {capacity(0.25), capacity(0.25f), capacity::ratio(1, 4)}) {
    CHECK(of_all(quarter, rounding::ceil) == counts{1, 1, 3, 4, 16, 25});
    CHECK(of_all(quarter, rounding::floor) == counts{1, 1, 2, 4, 16, 25});
  }
}

TEST_CASE("decimals that are no binary fractions neither add nor lose a node") {
  struct trap {
    std::int64_t extent;
    double beta;
    std::int64_t kept;
  };
  for (const trap& t : {trap{100, 0.07, 7}, trap{50, 0.14, 7}, trap{100, 0.55, 55},
                        trap{100, 0.29, 29}, trap{100, 0.57, 57}}) {
    for (const rounding mode : modes) {
      CAPTURE(t.beta);
      CHECK(capacity(t.beta).of(t.extent, mode) == t.kept);
      CHECK(capacity(static_cast<float>(t.beta)).of(t.extent, mode) == t.kept);
    }
  }
}

TEST_CASE("the nodes kept are those of exact arithmetic, golden values") {
  for (const golden_row& row : golden) {
    CAPTURE(row.share.value());
    CAPTURE(row.extent);
    CHECK(row.share.of(row.extent, rounding::floor, 0) == row.floor);
    CHECK(row.share.of(row.extent, rounding::ceil, 0) == row.ceil);
    CHECK(row.share.of(row.extent, rounding::nearest, 0) == row.nearest);
  }
}

TEST_CASE("a ratio, the double and the float nearest to it keep the same nodes") {
  support::for_all("of()", [] {
    const auto denominator = *rc::gen::inRange<std::int64_t>(1, 1000);
    const auto numerator = *rc::gen::inRange<std::int64_t>(1, denominator + 1);
    const auto extent = *rc::gen::inRange<std::int64_t>(0, 1000);
    const auto minimum = *rc::gen::inRange<std::int64_t>(0, 4);
    const double beta = static_cast<double>(numerator) / static_cast<double>(denominator);
    for (const rounding mode : modes) {
      std::int64_t kept = exact(numerator, denominator, extent, mode);
      kept = kept < minimum ? minimum : kept;
      kept = kept > extent ? extent : kept;
      RC_ASSERT(capacity::ratio(numerator, denominator).of(extent, mode, minimum) == kept);
      RC_ASSERT(capacity(beta).of(extent, mode, minimum) == kept);
      RC_ASSERT(capacity(static_cast<float>(beta)).of(extent, mode, minimum) == kept);
    }
  });
}

TEST_CASE("halves round up, written as a decimal too") {
  CHECK(capacity(0.5).of(5, rounding::nearest) == 3);
  CHECK(capacity(0.29).of(50, rounding::nearest) == 15);  // 14.499999999999998 in double
  CHECK(capacity(0.07).of(50, rounding::nearest) == 4);
  CHECK(capacity(0.29f).of(50, rounding::nearest) == 15);
  CHECK(capacity::ratio(29, 100).of(50, rounding::nearest) == 15);
  CHECK(capacity(0.28).of(50, rounding::nearest) == 14);
  CHECK(capacity(0.289).of(50, rounding::nearest) == 14);
}

TEST_CASE("the rounding error of a product is not forgiven twice") {
  CHECK(capacity(0.0700001).of(100, rounding::ceil) == 8);
  CHECK(capacity(0.0699999).of(100, rounding::floor) == 6);
  CHECK(capacity(0.07 + 1e-14).of(100, rounding::ceil) == 8);
  CHECK(capacity(static_cast<double>(0.07f)).of(100, rounding::ceil) == 8);  // a double: exact
  CHECK(capacity(1e-300).of(3, rounding::ceil, 0) == 1);
  CHECK(capacity(1e-300).of(3, rounding::floor, 0) == 0);
}

TEST_CASE("at least the minimum is kept, and never more than there are") {
  CHECK(capacity(0.01).of(10) == 1);
  CHECK(capacity(0.01).of(10, rounding::floor, 0) == 0);
  CHECK(capacity(0.01).of(10, rounding::floor, 4) == 4);
  CHECK(capacity(0.5).of(10, rounding::floor, 4) == 5);
  CHECK(capacity(0.01).of(3, rounding::floor, 4) == 3);
  CHECK(capacity(0.5).of(0) == 0);
  CHECK(capacity(1.0).of(0, rounding::ceil, 5) == 0);
}

TEST_CASE("capacity 1 keeps every node of a group of any size") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t extent :
       {std::int64_t{1}, std::int64_t{100}, (std::int64_t{1} << 53) + 1, most - 1, most}) {
    for (const rounding mode : modes) {
      CHECK(capacity(1.0).of(extent, mode) == extent);
      CHECK(capacity(1.0f).of(extent, mode) == extent);
      CHECK(capacity(1).of(extent, mode) == extent);
      CHECK(capacity::ratio(1, 1).of(extent, mode) == extent);
      CHECK(capacity::ratio(2147483647, 2147483647).of(extent, mode) == extent);
    }
  }
  CHECK(capacity::ratio(2147483646, 2147483647).of(most, rounding::floor) ==
        most / 2147483647 * 2147483646 + most % 2147483647 * 2147483646 / 2147483647);
  CHECK(capacity(0.5).of(std::int64_t{1} << 62) == std::int64_t{1} << 61);
}

TEST_CASE("more capacity never keeps fewer nodes") {
  support::for_all("of() grows", [] {
    const auto a = *rc::gen::inRange(1, 10001);
    const auto b = *rc::gen::inRange(a, 10001);
    const auto extent = *rc::gen::inRange<std::int64_t>(0, 5000);
    for (const rounding mode : modes) {
      const std::int64_t fewer = capacity(a / 10000.0).of(extent, mode);
      RC_ASSERT(fewer <= capacity(b / 10000.0).of(extent, mode));
      RC_ASSERT(fewer <= capacity(a / 10000.0).of(extent + 1, mode));
    }
  });
}

TEST_CASE("what is left of a share without a part forgives the part's rounding error as well") {
  CHECK(capacity(1.0).without(0.93).of(100) == 7);  // 1 - 0.93 is 0.06999999999999995
  CHECK(capacity(0.5).without(0.9).of(100) == 5);
  CHECK(capacity(0.29f).without(0.5).of(200) == 29);
  CHECK(capacity::ratio(1, 3).without(0.25).of(100) == 25);
  CHECK(capacity::ratio(1, 3).without(0) == capacity::ratio(1, 3));
  CHECK(capacity(0.5).without(0.5).value() == 0.25);
  CHECK(message_of([] { capacity(0.5).without(1); }) == "subfed: capacity: 0 is outside (0, 1]");
  CHECK(message_of([] { capacity(0.5).without(-0.5); }) ==
        "subfed: capacity: the part -0.5 is outside [0, 1)");
  CHECK(message_of([] { capacity(0.5).without(1.5); }) ==
        "subfed: capacity: the part 1.5 is outside [0, 1)");
  CHECK(message_of([] { capacity(0.5).without(std::nan("")); }) ==
        "subfed: capacity: the part NaN is outside [0, 1)");
}

TEST_CASE("a capacity is made from any number that a caller has at hand") {
  static_assert(std::is_convertible_v<double, capacity> && std::is_convertible_v<float, capacity> &&
                std::is_convertible_v<int, capacity> &&
                std::is_convertible_v<std::uint64_t, capacity>);
  static_assert(!std::is_default_constructible_v<capacity>);
  constexpr capacity half = 0.5;
  static_assert(half.value() == 0.5 && half.of(9) == 4 && half.of(9, rounding::ceil) == 5);
  static_assert(capacity::ratio(1, 2).of(9, rounding::nearest) == 5);
  CHECK(half == capacity(0.5));
  CHECK(half != capacity(0.25));
  CHECK(capacity::ratio(1, 4).value() == 0.25);
  CHECK(capacity::ratio(1, 4) == capacity::ratio(1, 4));
  CHECK(capacity::ratio(1, 4) != capacity::ratio(1, 2));
}

TEST_CASE("what is no share of a model is refused") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(message_of([] { capacity(0.0); }) == "subfed: capacity: 0 is outside (0, 1]");
  CHECK(message_of([] { capacity(-0.0); }) == "subfed: capacity: -0 is outside (0, 1]");
  CHECK(message_of([] { capacity(-1.0); }) == "subfed: capacity: -1 is outside (0, 1]");
  CHECK(message_of([] { capacity(1.5); }) == "subfed: capacity: 1.5 is outside (0, 1]");
  CHECK(message_of([] { capacity(1.5f); }) == "subfed: capacity: 1.5 is outside (0, 1]");
  CHECK(message_of([] { capacity{std::nan("")}; }) == "subfed: capacity: NaN is outside (0, 1]");
  CHECK(message_of([] { capacity{-std::nan("")}; }) == "subfed: capacity: NaN is outside (0, 1]");
  CHECK(message_of([&] { capacity{infinity}; }) == "subfed: capacity: inf is outside (0, 1]");
  CHECK(message_of([&] { capacity{-infinity}; }) == "subfed: capacity: -inf is outside (0, 1]");
  CHECK(message_of([] { capacity(0); }) == "subfed: capacity: 0 is outside (0, 1]");
  CHECK(message_of([] { capacity(2u); }) == "subfed: capacity: 2 is outside (0, 1]");
  CHECK(message_of([] { capacity{std::nextafter(1.0, 2.0)}; }) != "nothing was thrown");
  CHECK(message_of([] { capacity{std::numeric_limits<double>::denorm_min()}; }) ==
        "nothing was thrown");
}

TEST_CASE("a ratio outside (0, 1] or too fine is refused") {
  CHECK(message_of([] { capacity::ratio(0, 3); }) ==
        "subfed: capacity: the ratio 0/3 is outside (0, 1]");
  CHECK(message_of([] { capacity::ratio(4, 3); }) ==
        "subfed: capacity: the ratio 4/3 is outside (0, 1]");
  CHECK(message_of([] { capacity::ratio(-1, -3); }) ==
        "subfed: capacity: the ratio -1/-3 is outside (0, 1]");
  CHECK(message_of([] { capacity::ratio(1, 0); }) ==
        "subfed: capacity: the ratio 1/0 is outside (0, 1]");
  CHECK(message_of([] { capacity::ratio(1, 2147483648); }) ==
        "subfed: capacity: the denominator of the ratio 1/2147483648 is over 2147483647");
}

TEST_CASE("a negative extent or minimum is refused") {
  CHECK(message_of([] { capacity(0.5).of(-1); }) ==
        "subfed: capacity: extent -1 and minimum 1 must not be negative");
  CHECK(message_of([] { capacity(0.5).of(4, rounding::ceil, -2); }) ==
        "subfed: capacity: extent 4 and minimum -2 must not be negative");
}
