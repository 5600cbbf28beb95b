// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/schemes/prefix.hpp>
#include <support/checks.hpp>
#include <support/spelled.hpp>

#include <cstdint>
#include <string_view>

using subfed::draw_request;
using subfed::index_set;
using subfed::prefix;
using subfed::rounding;

namespace {

struct golden_row {
  rounding round_to;
  std::int64_t minimum;
  draw_request where;
  std::string_view nodes;
};
constexpr golden_row golden[] = {
#include <golden/prefix.inc>
};

}  // namespace

TEST_CASE("the first nodes, as many as the capacity keeps") {
  CHECK(prefix{}({.extent = 10, .capacity = 0.25}) == index_set(10, {0, 1}));
  CHECK(prefix::paper()({.extent = 10, .capacity = 0.25}) == index_set(10, {0, 1}));
  CHECK(prefix::released()({.extent = 10, .capacity = 0.25}) == index_set(10, {0, 1, 2}));
  CHECK(prefix::ordered()({.extent = 10, .capacity = 0.25}) == index_set(10, {0, 1, 2}));
  CHECK(prefix{}({.extent = 10}) == index_set::full(10));
  CHECK(prefix{}({.extent = 0, .capacity = 0.5}) == index_set());
  CHECK(prefix{.minimum = 0}({.extent = 3, .capacity = 0.1}) == index_set(3, {}));
}

TEST_CASE("prefixes agree with the golden values") {
  for (const golden_row& row : golden) {
    CAPTURE(row.where.extent);
    CHECK(support::spelled(prefix{row.round_to, row.minimum}(row.where)) == row.nodes);
  }
}

TEST_CASE("prefixes are nested in the capacity and the same for everybody") {
  support::for_all("prefix", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(0, 60);
    const double small = *rc::gen::inRange(1, 101) / 100.0;
    const double large = *rc::gen::inRange(1, 101) / 100.0;
    RC_PRE(small <= large);
    const prefix which{*rc::gen::element(rounding::floor, rounding::ceil, rounding::nearest),
                       *rc::gen::inRange<std::int64_t>(0, 4)};
    const index_set less = which({.extent = extent, .capacity = small});
    const index_set more = which({.extent = extent, .capacity = large});
    RC_ASSERT(less.size() <= more.size());
    for (std::int64_t p = 0; p < less.size(); ++p) {
      RC_ASSERT(less[p] == p);
      RC_ASSERT(more[p] == p);
    }
    RC_ASSERT(less == which({.seed = *rc::gen::arbitrary<std::uint64_t>(),
                             .round = *rc::gen::arbitrary<std::uint64_t>(),
                             .client = *rc::gen::arbitrary<std::uint64_t>(),
                             .group = "other",
                             .extent = extent,
                             .capacity = small}));
  });
}

TEST_CASE("a negative minimum or extent is refused") {
  CHECK(support::message_of([] { prefix{.minimum = -1}({.extent = 4}); }) ==
        "subfed: capacity: extent 4 and minimum -1 must not be negative");
  CHECK(support::message_of([] { prefix{}({.extent = -4}); }) ==
        "subfed: capacity: extent -4 and minimum 1 must not be negative");
}
