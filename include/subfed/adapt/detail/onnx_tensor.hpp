// SPDX-License-Identifier: MIT
/// Tensors of ONNX files: names, shapes, and the elements of small ones.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/adapt/detail/wire_reader.hpp>
#include <subfed/detail/sizes.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace subfed::inline v0::detail {

struct onnx_tensor {
  static constexpr std::size_t most_elements = 4096;  // that are read

  std::string_view name;
  std::vector<std::int64_t> extents{};
  std::vector<double> elements{};  ///< where they are in the file, and few
  bool is_integer = false;
  bool is_uniform = false;

  /// Also truth values.
  static bool is_integer_type(std::int64_t type) noexcept {
    return (type >= 2 && type <= 9) || type == 12 || type == 13;
  }
};

inline double as_float(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
inline std::int64_t as_integer(double element) {
  if (!(element < 9.2e18)) return largest_size;
  return element > -9.2e18 ? static_cast<std::int64_t>(element) : -largest_size;
}
inline bool all_equal(std::span<const double> elements) {
  return std::all_of(elements.begin(), elements.end(), [&](double e) { return e == elements[0]; });
}

/// An element of a type of which raw data can be evaluated: float, double, integers, truth values.
struct raw_type {
  std::size_t bytes = 0;
  double (*load)(const std::byte*) = nullptr;

  explicit raw_type(std::int64_t type) {
    switch (type) {
      case 1:
        bytes = 4;
        load = [](const std::byte* p) { return as_float(load_little<4>(p)); };
        break;
      case 2:
      case 9:
        bytes = 1;
        load = [](const std::byte* p) { return static_cast<double>(load_little<1>(p)); };
        break;
      case 3:
        bytes = 1;
        load = [](const std::byte* p) {
          return static_cast<double>(static_cast<std::int8_t>(load_little<1>(p)));
        };
        break;
      case 6:
        bytes = 4;
        load = [](const std::byte* p) {
          return static_cast<double>(static_cast<std::int32_t>(load_little<4>(p)));
        };
        break;
      case 7:
        bytes = 8;
        load = [](const std::byte* p) {
          return static_cast<double>(static_cast<std::int64_t>(load_little<8>(p)));
        };
        break;
      case 10:
      case 16:
        bytes = 2;  // only compared
        break;
      case 11:
        bytes = 8;
        load = [](const std::byte* p) { return std::bit_cast<double>(load_little<8>(p)); };
        break;
      default:
        break;
    }
  }
};

inline void read_raw(onnx_tensor& out, std::int64_t type, std::span<const std::byte> raw,
                     std::int64_t count) {
  const raw_type element(type);
  if (element.bytes == 0 || raw.size() % element.bytes != 0 ||
      raw.size() / element.bytes != static_cast<std::size_t>(count)) {
    return;
  }
  // All equal where the bytes are equal to those one element before.
  out.is_uniform = raw.empty() || std::memcmp(raw.data(), raw.data() + element.bytes,
                                              raw.size() - element.bytes) == 0;
  if (element.load == nullptr || static_cast<std::size_t>(count) > onnx_tensor::most_elements)
    return;
  for (std::size_t i = 0; i < raw.size(); i += element.bytes) {
    out.elements.push_back(element.load(raw.data() + i));
  }
}

/// Throws  error for a negative extent or more than 2^63 - 1 elements.
inline onnx_tensor read_tensor(wire_reader from) {
  onnx_tensor out;
  std::int64_t type = 0;
  std::span<const std::byte> raw;
  const auto keep = [&](double element) {
    if (out.elements.size() <= onnx_tensor::most_elements) out.elements.push_back(element);
  };
  while (from.next()) {
    if (from.is(1, wire_type::varint) || from.is(1, wire_type::bytes)) {
      from.varints([&](std::uint64_t n) { out.extents.push_back(static_cast<std::int64_t>(n)); });
    } else if (from.is(2, wire_type::varint)) {
      type = from.integer();
    } else if (from.is(4, wire_type::fixed32)) {
      keep(as_float(from.fixed()));
    } else if (from.is(4, wire_type::bytes)) {
      const auto packed = from.bytes();
      for (std::size_t i = 0; i + 4 <= packed.size(); i += 4) {
        keep(as_float(load_little<4>(packed.data() + i)));
      }
    } else if (from.is(5, wire_type::varint) || from.is(5, wire_type::bytes) ||
               from.is(7, wire_type::varint) || from.is(7, wire_type::bytes)) {
      from.varints(
          [&](std::uint64_t n) { keep(static_cast<double>(static_cast<std::int64_t>(n))); });
    } else if (from.is(8, wire_type::bytes)) {
      out.name = from.text();
    } else if (from.is(9, wire_type::bytes)) {
      raw = from.bytes();
    }
  }
  std::int64_t count = 1;
  for (const std::int64_t e : out.extents) {
    if (e < 0 || !multiply(count, (std::max)(e, std::int64_t{1}))) {
      from.refuse("the tensor " + detail::quoted(out.name) + " of shape " +
                  shape_text(out.extents) +
                  ", which is negative or of more than 2^63 - 1 elements");
    }
  }
  for (const std::int64_t e : out.extents) count = e == 0 ? 0 : count;
  out.is_integer = onnx_tensor::is_integer_type(type);
  if (!raw.empty()) {
    out.elements.clear();
    read_raw(out, type, raw, count);
  } else if (static_cast<std::int64_t>(out.elements.size()) != count) {
    out.elements.clear();
  } else {
    out.is_uniform = all_equal(out.elements);
  }
  return out;
}

}  // namespace subfed::inline v0::detail
