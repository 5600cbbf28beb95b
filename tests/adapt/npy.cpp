// SPDX-License-Identifier: MIT
#include <subfed/adapt/npy.hpp>

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <support/checks.hpp>
#include <support/file_bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::string_literals;
using conformance::layout;
using conformance::strided;
using subfed::npy_bytes;
using subfed::npy_view;
using subfed::tensor_view;
using support::file_bytes;
using support::message_of;

/// A file of a version, with the header as it is given.
std::string file(std::string_view header, std::string_view data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  const std::size_t bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  out += header;
  out += data;
  return out;
}

std::string header_of(std::string_view descr, std::string_view order, std::string_view shape) {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(order) +
         ", 'shape': " + std::string(shape) + ", }";
}

/// Arrays of either order, padded as NumPy does.
struct arrays {
  using element = float;
  static constexpr bool writable = false;
  static constexpr int least = 9;
  static bool fits(const layout& l) {
    return conformance::is_row_major(l) || conformance::is_column_major(l);
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    std::vector<float> elements = memory.elements();
    const layout& l = memory.where();
    const bool columns = !conformance::is_row_major(l);
    if (columns) {
      const auto all = support::all_indices(l.extents);
      for (const auto& index : all) {
        elements[static_cast<std::size_t>(l.offset(index) - l.origin)] = memory(index);
      }
    }
    std::string header =
        header_of("<f4", columns ? "True" : "False", subfed::detail::shape_text(l.extents));
    header.append(128 - 10 - 1 - header.size(), ' ');
    header += '\n';
    const std::string bytes = file(header, file_bytes(elements));
    const subfed::byte_tensor array = npy_view(bytes);
    if constexpr (support::reads_in_place) {
      f(array);
    } else {
      const auto copy = subfed::aligned_copy<float>(array);
      f(copy);
    }
  }
};

std::string refusal(const std::string& bytes) {
  return message_of([&] { npy_view(bytes); });
}
std::string refused_header(const std::string& header) {
  return refusal(file(header, "0123456789abcdef"));
}

}  // namespace

TEST_CASE(".npy arrays conform") { CHECK(conformance::failures<arrays>() == ""); }

TEST_CASE("a file as NumPy writes it is read in place" * doctest::skip(!support::reads_in_place)) {
  // numpy.save of numpy.arange(6, dtype="f4").reshape(2, 3)
  std::string bytes =
      "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"s;
  bytes.append(127 - bytes.size(), ' ');
  bytes += '\n';
  bytes += file_bytes<float>({0, 1, 2, 3, 4, 5});

  const subfed::byte_tensor array = npy_view(bytes);
  const tensor_view<const float> view(array);
  CHECK(static_cast<const void*>(view.data_handle()) == bytes.data() + 128);
  CHECK(view.rank() == 2);
  CHECK(view(1, 2) == 5);
  CHECK(view(1, 0) == 3);
}

TEST_CASE("a tensor of any strides is written row-major, with its elements at a multiple of 64") {
  for (const layout& l : conformance::layouts()) {
    strided<double> tensor(l);
    tensor.fill([](std::int64_t n) { return 0.5 * static_cast<double>(n); });
    const auto bytes = npy_bytes(tensor.view());
    const subfed::byte_tensor array = npy_view(bytes);
    CHECK((array.data() - bytes.data()) % 64 == 0);
    CHECK(array.data() + array.size_bytes() == bytes.data() + bytes.size());
    CHECK(std::vector<std::int64_t>(array.extents().begin(), array.extents().end()) == l.extents);
    const auto copy = subfed::aligned_copy<double>(array);
    const std::vector<double> elements = tensor.elements();
    CHECK(std::equal(elements.begin(), elements.end(), copy.data()));
  }
}

TEST_CASE("what is written is what numpy.load reads") {
  const std::vector<float> w{1, 2};
  const auto text = npy_bytes<std::string>(tensor_view<const float>(w.data(), {2, 1}));
  CHECK(text.substr(0, 10) == "\x93NUMPY\x01\0v\0"s);
  CHECK(text.substr(10, 60) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), } ");
  CHECK(text[127] == '\n');
  CHECK(text.substr(128) == file_bytes(w));
  const tensor_view<const float> scalar(w.data(), {});
  CHECK(npy_bytes<std::string>(scalar).find("'shape': (), }") != std::string::npos);
  const tensor_view<const float> vector(w.data(), {2});
  CHECK(npy_bytes<std::vector<char>>(vector).size() == 136);
  CHECK(npy_bytes<std::string>(vector).find("'shape': (2,), }") != std::string::npos);
}

TEST_CASE("each element type has its code") {
  const auto round_trip = [&]<class T>(T x, const std::string& code) {
    const auto text = npy_bytes<std::string>(tensor_view<const T>(&x, {}));
    CHECK(text.find("'descr': '" + code + "'") != std::string::npos);
    const subfed::byte_tensor array = npy_view(text);
    CHECK(array.holds<T>());
    CHECK(subfed::aligned_copy<T>(array).data()[0] == x);
    if (array.is_readable_in_place<T>()) CHECK(tensor_view<const T>(array)() == x);
    CHECK(array.is_readable_in_place<T>() == (support::reads_in_place || sizeof(T) == 1));
  };
  round_trip(std::int8_t{-3}, "|i1");
  round_trip(std::uint8_t{200}, "|u1");
  round_trip(std::int16_t{-300}, "<i2");
  round_trip(std::uint16_t{60000}, "<u2");
  round_trip(std::int32_t{-70000}, "<i4");
  round_trip(std::uint32_t{4000000000u}, "<u4");
  round_trip(std::int64_t{9007199254740993}, "<i8");
  round_trip(std::uint64_t{1} << 63, "<u8");
  round_trip(subfed::half(1.5), "<f2");
  round_trip(1.5f, "<f4");
  round_trip(0.1, "<f8");
  round_trip(true, "|b1");
}

TEST_CASE("versions 2 and 3, keys in any order, other quotes and old Python's integers are read") {
  const std::string header = "{ \"shape\":(2,1L) ,\n'fortran_order':True,'descr':\"=f4\"}  \n";
  const std::string data = file_bytes<float>({1, 2});
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string bytes = file(header, data, version);
    const auto copy = subfed::aligned_copy<float>(npy_view(bytes));
    CHECK(copy.extents()[0] == 2);
    CHECK(copy.data()[1] == 2);
  }
}

TEST_CASE("a second array may follow the first") {
  const std::vector<std::int16_t> first{1, 2, 3};
  const std::vector<std::int16_t> second{4};
  const tensor_view<const std::int16_t> a(first.data(), {3});
  const tensor_view<const std::int16_t> b(second.data(), {1});
  const std::string bytes = npy_bytes<std::string>(a) + npy_bytes<std::string>(b);
  const auto array = npy_view(bytes);
  const auto* const next = reinterpret_cast<const char*>(array.data() + array.size_bytes());
  const std::string_view rest(next, bytes.size() - static_cast<std::size_t>(next - bytes.data()));
  CHECK(subfed::aligned_copy<std::int16_t>(npy_view(rest)).data()[0] == 4);
}

TEST_CASE("bytes that are no .npy file are refused") {
  CHECK(refusal("") == "subfed: npy: these 0 bytes do not begin as a .npy file does");
  CHECK(refusal("\x93NUMPY") == "subfed: npy: these 6 bytes do not begin as a .npy file does");
  CHECK(refusal("PK\x03\x04 a .npz file") ==
        "subfed: npy: these 16 bytes do not begin as a .npy file does");
  CHECK(refusal(file("{}", "", 4)) ==
        "subfed: npy: the format version is 4.0, expected 1.0, 2.0 or 3.0");
  CHECK(refusal("\x93NUMPY\x02\0\0\0"s) == "subfed: npy: the file ends in its header");
  CHECK(refusal("\x93NUMPY\x01\0\xFF\xFF{}"s) ==
        "subfed: npy: the header should have 65535 bytes, but the file has only 2 more");
  CHECK(refusal("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{}"s) ==
        "subfed: npy: the header should have 4294967295 bytes, but the file has only 2 more");
}

TEST_CASE("what cannot be read in place is refused with the reason") {
  CHECK(
      refused_header(header_of("|O", "False", "(2,)")) ==
      "subfed: npy: the header describes Python objects ('|O'), which only unpickling could read; "
      "subfed does not run what it reads");
  CHECK(refused_header(header_of(">f4", "False", "(2,)")) ==
        "subfed: npy: the header describes big-endian elements ('>f4'), which cannot be read in "
        "place; store them as '<f4'");
  for (const std::string type : {"f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"}) {
    CHECK(refused_header(header_of(">" + type, "False", "(2,)")) ==
          "subfed: npy: the header describes big-endian elements ('>" + type +
              "'), which cannot be read in place; store them as '<" + type + "'");
  }
  CHECK(refused_header(header_of("|V2", "False", "(2,)")) ==
        "subfed: npy: the header describes bytes without a type ('|V2'): NumPy has no code for "
        "bfloat16 and writes it so; send it as float or as '<u2'");
  CHECK(refused_header(header_of("<c8", "False", "(2,)")) ==
        "subfed: npy: the header describes elements of the unknown type '<c8'");
  CHECK(refused_header(header_of("", "False", "(2,)")) ==
        "subfed: npy: the header describes elements of the unknown type ''");
  CHECK(refused_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}") ==
        "subfed: npy: the header describes records of several fields, which are not a tensor");
  CHECK(refused_header(header_of(std::string(100, '\1'), "False", "(2,)")).size() < 320);
  CHECK(refused_header(header_of(">u1", "False", "(2,)")) == "nothing was thrown");  // single bytes
}

TEST_CASE("a shape that is none, or needs more bytes than there are, is refused") {
  const auto shape = [](const std::string& text) {
    return refused_header(header_of("<f4", "False", text));
  };
  CHECK(shape("(5,)") ==
        "subfed: npy: the shape (5,) of float needs more bytes than the 16 that follow the header");
  CHECK(
      shape("(4294967296, 4294967296, 4294967296)") ==
      "subfed: npy: the shape (4294967296, 4294967296, 4294967296) of float needs more bytes than "
      "the 16 that follow the header");
  CHECK(shape("(4611686018427387905,)").find("needs more bytes") != std::string::npos);
  const char* const not_integers =
      "subfed: npy: the header has a shape with something other than integers from 0 to 2^63 - 1";
  CHECK(shape("(-1,)") == not_integers);
  CHECK(shape("(9223372036854775808,)") == not_integers);
  CHECK(shape("(2,,)") == not_integers);
  CHECK(shape("(1.5,)") == "subfed: npy: the header has a number for a shape, not a tuple");
  CHECK(shape("(4)") == "subfed: npy: the header has a number for a shape, not a tuple");
  CHECK(shape("(1, 2 3)") == "subfed: npy: the header has '3' where ')' is expected, at byte 56");
  CHECK(shape("(1,1,1,1,1,1,1,1,1)") == "subfed: npy: the header has a rank over 8");
  CHECK(shape("4") == "subfed: npy: the header has '4' where '(' is expected, at byte 50");
  CHECK(shape("(0, 9223372036854775807, 9223372036854775807)") == "nothing was thrown");
}

TEST_CASE("a header that is not exactly what the format asks for is refused") {
  const std::string tail = "'fortran_order': False, 'shape': (2,)}";
  CHECK(refused_header("") ==
        "subfed: npy: the header has its end where '{' is expected, at byte 0");
  CHECK(refused_header("{" + tail) ==
        "subfed: npy: the header lacks one of 'descr', 'fortran_order' and 'shape'");
  CHECK(refused_header("{'descr': '<f4', 'descr': '<f8', " + tail) ==
        "subfed: npy: the header has the key 'descr' twice");
  CHECK(refused_header("{'descr': '<f4', 'evil': 1, " + tail) ==
        "subfed: npy: the header has the unknown key 'evil'");
  CHECK(refused_header("{'descr': '<f4, ") == "subfed: npy: the header has an unterminated string");
  CHECK(refused_header(header_of("<f4", "0", "(2,)")) ==
        "subfed: npy: the header has a 'fortran_order' that is neither True nor False");
  CHECK(refused_header(header_of("<f4", "False", "(2,)") + " __import__('os')") ==
        "subfed: npy: the header continues after its end");
  CHECK(refused_header("{'descr': '<f4' 'shape'").find("where '}' is expected") !=
        std::string::npos);
}

TEST_CASE("bytes at an odd address are copied, not read in place") {
  const std::vector<double> x{1, 2};
  const std::string bytes = " " + npy_bytes<std::string>(tensor_view<const double>(x.data(), {2}));
  const auto array = npy_view(std::string_view(bytes).substr(1));
  CHECK(message_of([&] { tensor_view<const double> view(array); }) ==
        "subfed: the .npy array is at an address that is not a multiple of " +
            std::to_string(alignof(double)) + ": use aligned_copy<double>() of it");
  CHECK(subfed::aligned_copy<double>(array).data()[1] == 2);
}

TEST_CASE("bytes that would be gone are refused at compile time") {
  static_assert(!subfed::detail::byte_range<std::string>);
  static_assert(!subfed::detail::byte_range<std::vector<std::byte>>);
  static_assert(!subfed::detail::byte_range<std::vector<float>&>);
  static_assert(subfed::detail::byte_range<std::string_view>);
  static_assert(subfed::detail::byte_range<const std::string&>);
  static_assert(subfed::detail::byte_range<std::span<const unsigned char>>);
}
