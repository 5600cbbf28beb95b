// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/error.hpp>

#include <cstdint>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// What happens without exceptions is tested in tests/noexcept.

TEST_CASE("an error is a runtime_error that carries its message") {
  static_assert(std::is_base_of_v<std::runtime_error, subfed::error>);
  static_assert(std::is_nothrow_copy_constructible_v<subfed::error>);
  std::string found;
  try {
    subfed::detail::fail("subfed: test: 3, expected 4");
  } catch (const std::exception& error) {
    found = error.what();
  }
  CHECK(found == "subfed: test: 3, expected 4");
}

TEST_CASE("an error says which client, tensor and group it is about, apart from its text") {
  try {
    subfed::detail::fail("subfed: test", {.client = 7, .tensor = "fc.weight", .group = "hidden"});
  } catch (const subfed::error& error) {
    const subfed::error copy = error;
    CHECK(std::string(copy.what()) == "subfed: test");
    CHECK(copy.client() == std::uint64_t{7});
    CHECK(copy.tensor() == "fc.weight");
    CHECK(copy.group() == "hidden");
  }
  const subfed::error plain("subfed: test");
  CHECK_FALSE(plain.client().has_value());
  CHECK(plain.tensor().empty());
  CHECK(plain.group().empty());
}

TEST_CASE("the error is in the inline namespace of the major version") {
  static_assert(std::is_same_v<subfed::error, subfed::v0::error>);
}

namespace {
int calls = 0;
void count(const char*) { ++calls; }
}  // namespace

TEST_CASE("the error handler can be replaced and put back, and is not called with exceptions on") {
  const subfed::error_handler standard = subfed::set_error_handler(&count);
  CHECK((standard != nullptr && standard != &count));
  CHECK_THROWS_AS(subfed::detail::fail("subfed: test"), subfed::error);
  CHECK(calls == 0);
  CHECK((subfed::set_error_handler(nullptr) == &count));
  CHECK((subfed::set_error_handler(standard) == standard));  // null had restored the default
}

TEST_CASE("shapes look like tuples in messages") {
  using subfed::detail::shape_text;
  CHECK(shape_text({}) == "()");
  CHECK(shape_text(std::vector<std::int64_t>{7}) == "(7,)");
  CHECK(shape_text(std::vector<std::int64_t>{64, 3, 3, 3}) == "(64, 3, 3, 3)");
  CHECK(shape_text(std::vector<std::int64_t>{0, -1}) == "(0, -1)");
}

TEST_CASE("numbers look the same in messages whatever their type") {
  using subfed::detail::text;
  CHECK(text(std::int64_t{-5}) == "-5");
  CHECK(text(std::uint64_t{18446744073709551615u}) == "18446744073709551615");
  CHECK(text(std::int8_t{65}) == "65");
  CHECK(text(1.5) == "1.5");
  CHECK(text(0.1f) == "0.100000001");
  CHECK(text(-0.0) == "-0");
  CHECK(text(1e300) == "1e+300");
  CHECK(text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(text(std::numeric_limits<double>::quiet_NaN()) == "NaN");
  CHECK(text(-std::numeric_limits<float>::quiet_NaN()) == "NaN");
  CHECK(text(std::string_view("name")) == "name");
}
