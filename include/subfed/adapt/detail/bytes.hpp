// SPDX-License-Identifier: MIT
/// What the byte formats share: spans of bytes, and tensors written to them.
#pragma once

#include <subfed/detail/element_format.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::detail {

static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big,
              "subfed: the byte formats are read and written on little- and big-endian machines");

/// The formats store little-endian elements. On other machines the bytes of larger elements are
/// swapped when they are read and written, and none can be read in place.
inline constexpr bool turns_elements = std::endian::native != std::endian::little;

/// Copies elements between memory and a file, in either direction.
inline void copy_elements(const std::byte* from, std::byte* to, std::size_t count,
                          std::size_t element_bytes) noexcept {
  if (!turns_elements || element_bytes == 1) {
    std::memcpy(to, from, count * element_bytes);
    return;
  }
  for (; count > 0; --count, from += element_bytes, to += element_bytes) {
    std::reverse_copy(from, from + element_bytes, to);
  }
}

template <class B>
inline constexpr bool refers_to_bytes = false;
template <class E, std::size_t Extent>
inline constexpr bool refers_to_bytes<std::span<E, Extent>> = true;
template <class Char, class Traits>
inline constexpr bool refers_to_bytes<std::basic_string_view<Char, Traits>> = true;

/// Anything with contiguous bytes that outlive the call: an lvalue string, vector or array, a span.
template <class B>
concept byte_range = requires(const std::remove_reference_t<B>& bytes) {
  requires sizeof(*std::data(bytes)) == 1;
  requires std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*std::data(bytes))>>;
  std::size(bytes);
  requires std::is_lvalue_reference_v<B> || refers_to_bytes<std::remove_cvref_t<B>>;
};

template <class B>
std::span<const std::byte> as_bytes(const B& bytes) noexcept {
  return {reinterpret_cast<const std::byte*>(std::data(bytes)), std::size(bytes)};
}

inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What a message shows of external text: shortened, and printable.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string out = "'";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + (text.size() > most ? "...'" : "'");
}

/// An unsigned little-endian number of Count bytes.
template <std::size_t Count>
std::uint64_t load_little(const std::byte* from) noexcept {
  std::uint64_t out = 0;
  for (std::size_t i = Count; i-- > 0;) out = out << 8 | std::to_integer<std::uint64_t>(from[i]);
  return out;
}
template <std::size_t Count>
void store_little(std::uint64_t value, std::byte* to) noexcept {
  for (std::size_t i = 0; i < Count; ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

/// A decimal number; false when there is no digit or it is over 2^63 - 1. `at` moves past it.
inline bool parse_decimal(std::string_view text, std::size_t& at, std::int64_t& out) noexcept {
  constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
  const std::size_t begin = at;
  out = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    const int digit = text[at] - '0';
    if (out > (most - digit) / 10) return false;
    out = out * 10 + digit;
  }
  return at != begin;
}

/// Bytes of a dense tensor; false when there are more than 2^63 - 1.
inline bool bytes_of(std::span<const std::int64_t> extents, int element_bytes,
                     std::int64_t& out) noexcept {
  constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
  out = 0;
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return true;
  out = element_bytes;
  for (const std::int64_t extent : extents) {
    if (out > most / extent) return false;
    out *= extent;
  }
  return true;
}

/// A view without its element type: enough to copy it.
struct erased_view {
  const std::byte* data = nullptr;
  element_format format = {};
  std::vector<std::int64_t> extents = {};
  std::vector<std::int64_t> strides = {};  // in bytes
  bool is_little = false;                  // the bytes of a file, whatever the machine's order

  template <class T>
  explicit erased_view(const tensor_view<const T>& view)
      : data(reinterpret_cast<const std::byte*>(view.data_handle())),
        format(format_of<T>()),
        extents(view.extents().begin(), view.extents().end()) {
    for (const std::int64_t stride : view.strides()) {
      strides.push_back(size() == 0 ? 0 : stride * static_cast<std::int64_t>(sizeof(T)));
    }
  }

  std::int64_t size() const noexcept {
    std::int64_t n = 0;
    bytes_of(extents, 1, n);
    return n;
  }
  std::int64_t size_bytes() const noexcept { return size() * (format.bits / 8); }

  /// Writes the elements, little-endian, in row-major order without gaps.
  void copy_to(std::byte* to) const {
    if (size() != 0) copy_dimension(0, data, to);
  }

 private:
  void copy(const std::byte* from, std::byte* to, std::size_t count, std::size_t bytes) const {
    if (is_little) {
      std::memcpy(to, from, count * bytes);
    } else {
      copy_elements(from, to, count, bytes);
    }
  }
  void copy_dimension(std::size_t r, const std::byte* from, std::byte*& to) const {
    const auto bytes = static_cast<std::size_t>(format.bits / 8);
    if (r == extents.size()) {
      copy(from, to, 1, bytes);
      to += bytes;
      return;
    }
    const bool innermost = r + 1 == extents.size();
    if (innermost && strides[r] == static_cast<std::int64_t>(bytes)) {
      const auto count = static_cast<std::size_t>(extents[r]);
      copy(from, to, count, bytes);
      to += count * bytes;
      return;
    }
    for (std::int64_t i = 0; i < extents[r]; ++i) copy_dimension(r + 1, from + i * strides[r], to);
  }
};

}  // namespace subfed::inline v0::detail
