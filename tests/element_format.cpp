// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/element_format.hpp>

#include <cstddef>
#include <cstdint>

using subfed::element_format;
using subfed::format_of;
using subfed::number_kind;

TEST_CASE("each element type has a format: its kind of number and its width in bits") {
  CHECK(format_of<float>() == element_format{number_kind::floating, 32});
  CHECK(format_of<double>() == element_format{number_kind::floating, 64});
  CHECK(format_of<subfed::half>() == element_format{number_kind::floating, 16});
  CHECK(format_of<subfed::bfloat16>() == element_format{number_kind::brain, 16});
  CHECK(format_of<std::int8_t>() == element_format{number_kind::signed_integer, 8});
  CHECK(format_of<std::int64_t>() == element_format{number_kind::signed_integer, 64});
  CHECK(format_of<std::uint16_t>() == element_format{number_kind::unsigned_integer, 16});
  CHECK(format_of<bool>() == element_format{number_kind::boolean, 8});
}

TEST_CASE("what files and other libraries have no such numbers of is of kind other") {
  CHECK(format_of<long double>().kind == number_kind::other);
  CHECK(format_of<std::nullptr_t>().kind == number_kind::other);
}
