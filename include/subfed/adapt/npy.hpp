// SPDX-License-Identifier: MIT
/// NumPy's .npy format in memory: arrays read in place, tensors written.
#pragma once

#include <subfed/adapt/byte_tensor.hpp>
#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/adapt/detail/text_cursor.hpp>
#include <subfed/detail/call_elements.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Reads the header of a .npy file, which is a Python dictionary:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class npy_header : text_cursor {
 public:
  explicit npy_header(std::string_view text) : text_cursor(text, "npy: the header", " \n\t") {
    expect('{');
    bool seen[3] = {};
    while (!next_is('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        once(seen[0], key);
        read_descr();
      } else if (key == "fortran_order") {
        once(seen[1], key);
        column_major = read_bool();
      } else if (key == "shape") {
        once(seen[2], key);
        read_shape();
      } else {
        refuse("has the unknown key " + detail::quoted(key));
      }
      if (!next_is(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("continues after its end");
    if (!seen[0] || !seen[1] || !seen[2]) {
      refuse("lacks one of 'descr', 'fortran_order' and 'shape'");
    }
  }

  element_format format = {};
  bool column_major = false;
  std::vector<std::int64_t> extents = {};

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    fail("subfed: npy: the header " + what);
  }
  static void once(bool& seen, std::string_view key) {
    if (std::exchange(seen, true)) refuse("has the key " + detail::quoted(key) + " twice");
  }

  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') expect('\'');
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) refuse("has an unterminated string");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool read_bool() {
    skip_space();
    for (const auto& [word, value] : {std::pair("False", false), std::pair("True", true)}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::string_view(word).size();
        return value;
      }
    }
    refuse("has a 'fortran_order' that is neither True nor False");
  }

  void read_shape() {
    expect('(');
    while (!next_is(')')) {
      skip_space();
      std::int64_t extent = 0;
      if (!parse_decimal(text_, at_, extent)) {
        refuse("has a shape with something other than integers from 0 to 2^63 - 1");
      }
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      extents.push_back(extent);
      if (extents.size() > static_cast<std::size_t>(max_rank)) refuse("has a rank over 8");
      const bool more = next_is(',');
      if (!more && extents.size() == 1) refuse("has a number for a shape, not a tuple");
      if (!more) {
        expect(')');
        break;
      }
    }
  }

  void read_descr() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      refuse("describes records of several fields, which are not a tensor");
    }
    const std::string_view descr = string();
    const char order = descr.empty() ? '\0' : descr[0];
    const bool ordered = order == '<' || order == '>' || order == '|' || order == '=';
    const std::string_view type = descr.substr(ordered ? 1 : 0);
    if (type.starts_with('O')) {
      refuse("describes Python objects (" + detail::quoted(descr) +
             "), which only unpickling could read; subfed does not run what it reads");
    }
    if (type.starts_with('V')) {
      refuse("describes bytes without a type (" + detail::quoted(descr) +
             "): NumPy has no code for bfloat16 and writes it so; send it as float or as '<u2'");
    }
    for (const auto& [code, found] :
         {std::pair<std::string_view, element_format>{"f2", {number_kind::floating, 16}},
          {"f4", {number_kind::floating, 32}},
          {"f8", {number_kind::floating, 64}},
          {"i1", {number_kind::signed_integer, 8}},
          {"i2", {number_kind::signed_integer, 16}},
          {"i4", {number_kind::signed_integer, 32}},
          {"i8", {number_kind::signed_integer, 64}},
          {"u1", {number_kind::unsigned_integer, 8}},
          {"u2", {number_kind::unsigned_integer, 16}},
          {"u4", {number_kind::unsigned_integer, 32}},
          {"u8", {number_kind::unsigned_integer, 64}},
          {"b1", {number_kind::boolean, 8}}}) {
      if (type != code) continue;
      if (order == '>' && found.bits > 8) {
        refuse("describes big-endian elements (" + detail::quoted(descr) +
               "), which cannot be read in place; store them as '<" + std::string(code) + "'");
      }
      format = found;
      return;
    }
    refuse("describes elements of the unknown type " + detail::quoted(descr));
  }
};

/// The code of an element type in a .npy header; empty for bfloat16, which has none.
inline std::string npy_code(element_format format) {
  const std::string bytes = std::to_string(format.bits / 8);
  const std::string order = format.bits == 8 ? "|" : "<";
  switch (format.kind) {
    case number_kind::floating:
      return order + "f" + bytes;
    case number_kind::signed_integer:
      return order + "i" + bytes;
    case number_kind::unsigned_integer:
      return order + "u" + bytes;
    case number_kind::boolean:
      return order + "b" + bytes;
    case number_kind::brain:
    case number_kind::other:
      break;
  }
  return {};
}

}  // namespace detail

/// The array of a .npy file in memory (what numpy.save writes and Flower sends), read in place:
/// versions 1 to 3, both element orders. The bytes must outlive the result; a temporary string or
/// vector does not compile.
///
///   const auto update = subfed::npy_view(bytes);
///   subfed::scatter<float>(update, sub[weight], global);
///
/// What follows the array is ignored: a second array begins at data() + size_bytes().
///
/// Throws  error for bytes that are not a .npy file, a header that is not exactly as the format
///         requires, fewer bytes than the shape needs, Python objects, records, big-endian
///         elements, a type that is not a number, and a rank over 8.
/// Cost    Reads the header only.
template <detail::byte_range Bytes>
byte_tensor npy_view(Bytes&& file) {
  const std::span<const std::byte> bytes = detail::as_bytes(file);
  const std::string_view text = detail::as_text(bytes);
  if (!text.starts_with(detail::npy_magic) || text.size() < 10) {
    detail::fail("subfed: npy: these " + std::to_string(text.size()) +
                 " bytes do not begin as a .npy file does");
  }
  const int version = std::to_integer<int>(bytes[6]);
  if (version < 1 || version > 3 || bytes[7] != std::byte{0}) {
    detail::fail("subfed: npy: the format version is " + std::to_string(version) + "." +
                 std::to_string(std::to_integer<int>(bytes[7])) + ", expected 1.0, 2.0 or 3.0");
  }
  const std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) detail::fail("subfed: npy: the file ends in its header");
  const std::uint64_t length =
      version == 1 ? detail::load_little<2>(&bytes[8]) : detail::load_little<4>(&bytes[8]);
  if (length > bytes.size() - begin) {
    detail::fail("subfed: npy: the header should have " + std::to_string(length) +
                 " bytes, but the file has only " + std::to_string(bytes.size() - begin) + " more");
  }
  detail::npy_header header(text.substr(begin, static_cast<std::size_t>(length)));
  const auto data = bytes.subspan(begin + static_cast<std::size_t>(length));
  std::int64_t needed = 0;
  if (!detail::bytes_of(header.extents, header.format.bits / 8, needed) ||
      static_cast<std::uint64_t>(needed) > data.size()) {
    detail::fail("subfed: npy: the shape " + detail::shape_text(header.extents) + " of " +
                 detail::format_text(header.format) + " needs more bytes than the " +
                 std::to_string(data.size()) + " that follow the header");
  }
  return {"the .npy array", header.format, std::move(header.extents),
          header.column_major ? byte_tensor::order::column_major : byte_tensor::order::row_major,
          data.data()};
}

/// A tensor as a .npy file, version 1, little-endian and row-major whatever its strides; the
/// elements begin at a multiple of 64. Bytes: a std::string or std::vector of a type of one byte.
///
///   const std::string body = npy_bytes<std::string>(w);
///
/// Post    npy_view() of it has the same shape and elements.
/// Cost    One allocation; reads and writes each element once.
template <class Bytes = std::vector<std::byte>, class V>
Bytes npy_bytes(const V& tensor) {
  using element = detail::element_of_call_t<detail::deduced, V>;
  constexpr element_format format = format_of<element>();
  static_assert(format.kind != number_kind::brain,
                "subfed: npy has no code for bfloat16: convert to float first");
  static_assert(format.kind != number_kind::other, "subfed: npy has no code for this element type");
  const detail::erased_view view(detail::source<element>(tensor));
  std::string shape = detail::shape_text(view.extents);
  std::string header = "{'descr': '" + detail::npy_code(format) +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
  constexpr std::size_t before = 10;  // magic, version, length
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';

  Bytes out;
  out.resize(before + header.size() + static_cast<std::size_t>(view.size_bytes()));
  auto* to = reinterpret_cast<std::byte*>(std::data(out));
  std::memcpy(to, detail::npy_magic.data(), detail::npy_magic.size());
  to[6] = std::byte{1};
  to[7] = std::byte{0};
  detail::store_little<2>(header.size(), to + 8);
  std::memcpy(to + before, header.data(), header.size());
  view.copy_to(to + before + header.size());
  return out;
}

}  // namespace subfed::inline v0
