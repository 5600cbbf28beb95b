// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/fixed_divisor.hpp>

#include <doctest/doctest.h>
#include <support/views.hpp>

#include <cstdint>

using subfed::cuda::detail::divide;
using subfed::cuda::detail::fixed_divisor;
using subfed::cuda::detail::make_divisor;

namespace {

bool right(std::int64_t n, std::int64_t d) {
  const auto found = divide(n, make_divisor(d));
  return found.quotient == n / d && found.rest == n % d;
}

}  // namespace

TEST_CASE("division by multiplication is division, for all small numbers") {
  for (std::int64_t d = 1; d <= 300; ++d) {
    const fixed_divisor by = make_divisor(d);
    bool all = true;
    for (std::int64_t n = 0; n <= 3000; ++n) {
      const auto found = divide(n, by);
      all = all && found.quotient == n / d && found.rest == n % d;
    }
    CHECK_MESSAGE(all, "divisor " << d);
  }
}

TEST_CASE("division by multiplication is division at the borders of 31 bits and beyond") {
  constexpr std::int64_t border = std::int64_t{1} << 31;
  support::seeded random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::int64_t d = random.between(1, std::int64_t{1} << random.between(1, 40));
    // Multiples of the divisor and their neighbours are where a wrong factor shows.
    const std::int64_t most = random.one_in(4) ? border * 1000 : border;
    const std::int64_t n = d * random.between(0, most / d) + random.between(-1, 1);
    if (n < 0) continue;
    REQUIRE(right(n, d));
  }
  for (std::int64_t d : {border - 1, border, border + 1, std::int64_t{1}, std::int64_t{2}}) {
    for (std::int64_t n :
         {border - 2, border - 1, border, border + 1, 2 * border, 2 * border + 1}) {
      CHECK(right(n, d));
    }
  }
}
