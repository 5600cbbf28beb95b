// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/device_math.hpp>

#include <doctest/doctest.h>
#include <subfed/scalar.hpp>
#include <support/views.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kernels = subfed::cuda::detail;

namespace {

template <class T>
void check_store(double value) {
  kernels::kernel_element_t<T> found;
  kernels::store(value, found);
  const T expected(value);
  if (found.bits != expected.bits) {
    FAIL("stored " << value << " as " << found.bits << ", expected " << expected.bits);
  }
}

template <class T>
double value_of(std::uint32_t bits) {
  T number;
  number.bits = static_cast<std::uint16_t>(bits);
  return static_cast<double>(number);
}

}  // namespace

TEST_CASE_TEMPLATE("kernels read every 16-bit number as the library does", T, subfed::half,
                   subfed::bfloat16) {
  for (std::uint32_t x = 0; x < 0x10000u; ++x) {
    const double found = kernels::load(kernels::kernel_element_t<T>{static_cast<std::uint16_t>(x)});
    const double expected = value_of<T>(x);
    if (std::isnan(found) && std::isnan(expected)) continue;  // of any sign and payload
    if (std::bit_cast<std::uint64_t>(found) != std::bit_cast<std::uint64_t>(expected)) {
      FAIL("bits " << x << " are read as " << found << ", expected " << expected);
    }
  }
}

TEST_CASE_TEMPLATE("kernels round to 16 bits as the library does: all numbers, ties, neighbours", T,
                   subfed::half, subfed::bfloat16) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (std::uint32_t x = 0; x < 0xFFFFu; ++x) {
    const double a = value_of<T>(x);
    const double b = value_of<T>(x + 1);
    check_store<T>(a);
    const double tie = a / 2 + b / 2;
    check_store<T>(tie);
    check_store<T>(std::nextafter(tie, -inf));
    check_store<T>(std::nextafter(tie, inf));
  }
  support::seeded random(3);
  for (int i = 0; i < 200000; ++i) {
    check_store<T>(std::bit_cast<double>(random.next()));
    check_store<T>(std::ldexp(random.unit(), static_cast<int>(random.between(-170, 170))));
  }
}

TEST_CASE("the sum of 16-bit elements is rounded once") {
  const auto h = [](double x) { return kernels::stored16<10>{subfed::half(x).bits}; };
  CHECK(kernels::element_sum(h(2048), h(1)).bits == h(2048).bits);
  CHECK(kernels::element_sum(h(2050), h(1)).bits == h(2052).bits);
  CHECK(kernels::element_sum(h(65504), h(65504)).bits == 0x7C00);
}

TEST_CASE("what is finite is seen by the bits") {
  CHECK(kernels::is_finite(1e308));
  CHECK_FALSE(kernels::is_finite(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(kernels::is_finite(std::numeric_limits<double>::quiet_NaN()));
}
