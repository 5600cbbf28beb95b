// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/detail/sizes.hpp>

#include <cstdint>
#include <span>
#include <vector>

using subfed::detail::fits_in_any_order;
using subfed::detail::largest_size;

namespace {

/// What is left in n, and -1 where nothing fits.
std::int64_t product(std::int64_t n, std::int64_t factor) {
  const std::int64_t before = n;
  if (subfed::detail::multiply(n, factor)) return n;
  CHECK(n == before);
  return -1;
}
std::int64_t sum(std::int64_t n, std::int64_t term) {
  const std::int64_t before = n;
  if (subfed::detail::add(n, term)) return n;
  CHECK(n == before);
  return -1;
}
bool fits(std::vector<std::int64_t> extents) { return fits_in_any_order(extents); }

}  // namespace

TEST_CASE("products and sums of sizes are right or refused") {
  const std::int64_t half = std::int64_t{1} << 62;
  CHECK(product(6, 7) == 42);
  CHECK(product(0, largest_size) == 0);
  CHECK(product(largest_size, 0) == 0);
  CHECK(product(largest_size, 1) == largest_size);
  CHECK(product(1, largest_size) == largest_size);
  CHECK(product(half, 2) == -1);
  CHECK(product(2, half) == -1);
  CHECK(product(largest_size, largest_size) == -1);
  CHECK(product(3037000499, 3037000499) == 9223372030926249001);  // the largest square
  CHECK(product(3037000500, 3037000500) == -1);
  CHECK(sum(half, half - 1) == largest_size);
  CHECK(sum(half, half) == -1);
  CHECK(sum(largest_size, 0) == largest_size);
  CHECK(sum(0, largest_size) == largest_size);
  CHECK(sum(1, largest_size) == -1);
}

TEST_CASE("extents fit when those that are not 0 can be multiplied") {
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(fits({}));
  CHECK(fits({0}));
  CHECK(fits({huge, 0}));
  CHECK(fits({largest_size, 1, 0}));
  CHECK(!fits({huge, huge}));
  CHECK(!fits({huge, 0, huge}));
  CHECK(!fits({0, huge, huge}));
  CHECK(!fits({huge, huge, 0}));
}

TEST_CASE("products modulo a number are those of 128 bits") {
  const std::uint64_t m = (std::uint64_t{1} << 63) - 25;  // a prime
  CHECK(subfed::detail::multiply_mod(m - 1, m - 1, m) == 1);
  CHECK(subfed::detail::multiply_mod(m - 1, 2, m) == m - 2);
  CHECK(subfed::detail::multiply_mod(m - 2, m - 3, m) == 6);
  CHECK(subfed::detail::multiply_mod(0, m - 1, m) == 0);
  CHECK(subfed::detail::multiply_mod(10, 10, 7) == 2);
}
