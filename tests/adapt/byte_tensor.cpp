// SPDX-License-Identifier: MIT
#include <subfed/adapt/byte_tensor.hpp>

#include <doctest/doctest.h>
#include <subfed/slice.hpp>
#include <subfed/untyped_view.hpp>
#include <support/checks.hpp>
#include <support/file_bytes.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using subfed::byte_tensor;
using subfed::element_format;
using subfed::number_kind;
using subfed::tensor_view;
using support::message_of;

constexpr element_format f32{number_kind::floating, 32};
constexpr element_format b8{number_kind::boolean, 8};

/// A half type as other libraries have it.
struct their_half {
  std::uint16_t x;
};

}  // namespace

template <>
struct std::numeric_limits<their_half> : std::numeric_limits<float> {
  static constexpr int digits = 11;
  static constexpr int max_exponent = 16;
};

namespace {

/// 0, 1, 2 .. as float, from `shift` bytes after an aligned address.
struct floats {
  alignas(16) std::array<std::byte, 64> bytes{};
  std::size_t shift;

  explicit floats(std::size_t by) : shift(by) {
    const std::string elements = support::file_bytes<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    std::memcpy(&bytes[shift], elements.data(), elements.size());
  }
  byte_tensor tensor(std::vector<std::int64_t> extents,
                     byte_tensor::order order = byte_tensor::order::row_major) const {
    return {"the tensor 'w'", f32, std::move(extents), order, &bytes[shift]};
  }
};

}  // namespace

TEST_CASE("a byte tensor is read in place, in either order of elements" *
          doctest::skip(!support::reads_in_place)) {
  const floats file(4);
  const byte_tensor rows = file.tensor({2, 3});
  const byte_tensor columns = file.tensor({2, 3}, byte_tensor::order::column_major);
  const tensor_view<const float> a(rows);
  const tensor_view<const float> b(columns);
  CHECK(a(1, 2) == 5);
  CHECK(b(1, 2) == 5);
  CHECK(a(0, 1) == 1);
  CHECK(b(0, 1) == 2);
  CHECK(static_cast<const void*>(a.data_handle()) == file.bytes.data() + 4);
  CHECK(rows.size_bytes() == 24);
  CHECK(rows.element_type() == "float");
  CHECK(rows.holds<float>());
  CHECK_FALSE(rows.holds<std::int32_t>());

  float local[2] = {};
  subfed::slice<float>(rows, {subfed::index_set(2, {1}), subfed::index_set(3, {2, 0})},
                       tensor_view<float>(local, {1, 2}));
  CHECK(local[0] == 5);
  CHECK(local[1] == 3);
}

TEST_CASE("a byte tensor is a view of whatever type it has" *
          doctest::skip(!support::reads_in_place)) {
  const floats file(4);
  const byte_tensor tensor = file.tensor({2, 3});
  const tensor_view<const void> view(tensor);
  CHECK(view.element_name() == "float");
  CHECK(view.as<float>()(1, 2) == 5);
}

TEST_CASE("nothing is written through a byte tensor") {
  static_assert(subfed::viewable_as<const byte_tensor, const float>);
  static_assert(!subfed::viewable_as<byte_tensor, float>);
}

TEST_CASE("another type than the one asked for is refused, with both names") {
  const floats file(0);
  const auto as = [&]<class T>(T) {
    return message_of([&] { tensor_view<const T>(file.tensor({3})); });
  };
  CHECK(as(double{}) == "subfed: the tensor 'w' has elements of type float, expected double");
  CHECK(as(std::int32_t{}) == "subfed: the tensor 'w' has elements of type float, expected int32");
  CHECK(as(subfed::bfloat16()) ==
        "subfed: the tensor 'w' has elements of type float, expected bfloat16");
  CHECK(as(their_half{}) == "subfed: the tensor 'w' has elements of type float, expected half");
}

TEST_CASE("an address that does not suit the type is refused; an aligned copy is not") {
  for (const std::size_t shift : {1u, 2u, 3u}) {
    const floats file(shift);
    const byte_tensor tensor = file.tensor({3, 2}, byte_tensor::order::column_major);
    CHECK(message_of([&] { tensor_view<const float> view(tensor); }) ==
          "subfed: the tensor 'w' is at an address that is not a multiple of 4: use "
          "aligned_copy<float>() of it");
    CHECK_FALSE(tensor.is_aligned<float>());

    const auto copy = subfed::aligned_copy<float>(tensor);
    const tensor_view<const float> view(copy);
    CHECK(view.is_row_major());
    CHECK(view(2, 1) == 5);
    CHECK(view(0, 1) == 3);
    CHECK(view(1, 0) == 1);
  }
  // Four bytes off is all that a float needs, whatever the vector registers would like.
  CHECK(floats(4).tensor({3}).is_aligned<float>());
}

TEST_CASE("an aligned copy can be written to, and is of the type asked for") {
  const floats file(3);
  auto copy = subfed::aligned_copy<float>(file.tensor({4}));
  const tensor_view<float> writes(copy);
  writes(1) = 9;
  CHECK(copy.data()[1] == 9);
  CHECK(copy.data()[3] == 3);
  CHECK(message_of([&] { subfed::aligned_copy<double>(file.tensor({4})); }) ==
        "subfed: the tensor 'w' has elements of type float, expected double");
}

TEST_CASE("rank 0 has an element, an empty tensor has none and may lie anywhere") {
  const floats file(1);
  CHECK(subfed::aligned_copy<float>(floats(1).tensor({})).data()[0] == 0);
  const byte_tensor empty = file.tensor({3, 0});
  CHECK(tensor_view<const float>(empty).size() == 0);
  CHECK(tensor_view<const float>(empty).extent(0) == 3);
  CHECK(subfed::aligned_copy<float>(empty).extents()[1] == 0);
  const byte_tensor vast = file.tensor({std::int64_t{1} << 62, 0, std::int64_t{1} << 62, 8});
  CHECK(tensor_view<const float>(vast).size() == 0);
}

TEST_CASE("a bool that is neither 0 nor 1 is refused before anything reads it") {
  const std::array<std::byte, 4> bytes{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{1}};
  const byte_tensor good("the tensor 'mask'", b8, {2}, byte_tensor::order::row_major, bytes.data());
  const byte_tensor bad("the tensor 'mask'", b8, {4}, byte_tensor::order::row_major, bytes.data());
  CHECK(tensor_view<const bool>(good)(1));
  const char* const message = "subfed: the tensor 'mask' has a bool that is neither 0 nor 1";
  CHECK(message_of([&] { tensor_view<const bool> view(bad); }) == message);
  CHECK(message_of([&] { subfed::aligned_copy<bool>(bad); }) == message);
  CHECK(message_of([&] { tensor_view<const std::uint8_t> view(bad); }) ==
        "subfed: the tensor 'mask' has elements of type bool, expected uint8");
}

TEST_CASE("half types of other libraries are halves") {
  const std::string bytes = support::file_bytes<std::uint16_t>({0x3C00, 0x5640});  // 1, 100
  const byte_tensor tensor("the tensor", {number_kind::floating, 16}, {2},
                           byte_tensor::order::row_major,
                           reinterpret_cast<const std::byte*>(bytes.data()));
  CHECK(tensor.holds<subfed::half>());
  CHECK(tensor.holds<their_half>());
  CHECK_FALSE(tensor.holds<subfed::bfloat16>());
  CHECK_FALSE(tensor.holds<std::uint16_t>());
  CHECK(subfed::aligned_copy<their_half>(tensor).data()[1].x == 0x5640);
  CHECK(static_cast<double>(subfed::aligned_copy<subfed::half>(tensor).data()[1]) == 100);

  using traits = subfed::scalar_traits<their_half>;
  CHECK(traits::load({0x5640}) == 100);
  CHECK(traits::store(100).x == 0x5640);
  CHECK(traits::store(2049).x == subfed::half(2048.0).bits);  // a tie, to even, rounded once
  CHECK(traits::is_finite({0x7BFF}));
  CHECK_FALSE(traits::is_finite({0x7C00}));
}

TEST_CASE("files are little-endian: read in place where the machine is, copied everywhere") {
  alignas(4) const std::array<std::byte, 8> bytes{std::byte{0},    std::byte{0},   std::byte{0x80},
                                                  std::byte{0x3F}, std::byte{0},   std::byte{0},
                                                  std::byte{0},    std::byte{0x40}};
  const byte_tensor one_two("the tensor 'w'", f32, {2}, byte_tensor::order::row_major,
                            bytes.data());
  const auto copy = subfed::aligned_copy<float>(one_two);
  CHECK(copy.data()[0] == 1);
  CHECK(copy.data()[1] == 2);
  constexpr bool little = std::endian::native == std::endian::little;
  CHECK(one_two.is_readable_in_place<float>() == little);
  CHECK(message_of([&] { tensor_view<const float>{one_two}; }) ==
        (little ? "nothing was thrown"
                : "subfed: the tensor 'w' is little-endian, unlike this machine: use "
                  "aligned_copy<float>() of it"));
  const byte_tensor flags("the tensor 'm'", b8, {2}, byte_tensor::order::row_major, bytes.data());
  CHECK(flags.is_readable_in_place<bool>());
}
