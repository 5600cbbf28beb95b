// SPDX-License-Identifier: MIT
/// Fields of a message: integers and doubles, little-endian on every machine, and their checksum.
#pragma once

#include <subfed/error.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace subfed::inline v0::detail {

/// A hash of bytes that is the same on every machine. Any change of eight bytes in a row changes it.
class byte_hash {
 public:
  void word(std::uint64_t x) noexcept {
    hash_ = (hash_ ^ x) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 32;
  }
  /// As words; the last one is filled up with zeros, so their number goes first where it may vary.
  void bytes(std::span<const std::byte> all) noexcept {
    std::size_t i = 0;
    if constexpr (std::endian::native == std::endian::little) {
      for (; i + 8 <= all.size(); i += 8) {
        std::uint64_t x;
        std::memcpy(&x, all.data() + i, 8);
        word(x);
      }
    }
    while (i < all.size()) {
      std::uint64_t x = 0;
      for (int shift = 0; shift < 64 && i < all.size(); shift += 8, ++i) {
        x |= std::to_integer<std::uint64_t>(all[i]) << shift;
      }
      word(x);
    }
  }
  void text(std::string_view s) noexcept {
    word(s.size());
    bytes(std::as_bytes(std::span<const char>(s.data(), s.size())));
  }
  std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

/// Of all bytes but those of the checksum, eight from `at` on. Pre: there are so many.
inline std::uint64_t checksum_around(std::span<const std::byte> all, std::size_t at) noexcept {
  byte_hash hash;
  hash.word(all.size());
  hash.bytes(all.subspan(0, at));
  hash.bytes(all.subspan(at + 8));
  return hash.value();
}

class field_writer {
 public:
  template <class Unsigned>
  void number(Unsigned x) {
    for (std::size_t i = 0; i < sizeof x; ++i) {
      out_.push_back(static_cast<std::byte>(x >> (8 * i) & 0xFF));
    }
  }
  void u8(std::uint8_t x) { number(x); }
  void u32(std::uint32_t x) { number(x); }
  void u64(std::uint64_t x) { number(x); }
  void i64(std::int64_t x) { number(static_cast<std::uint64_t>(x)); }
  void f64(double x) { number(std::bit_cast<std::uint64_t>(x)); }
  void bytes(std::span<const std::byte> more) { out_.insert(out_.end(), more.begin(), more.end()); }
  void text(std::string_view s) { bytes(std::as_bytes(std::span<const char>(s.data(), s.size()))); }
  void pad_to(std::size_t multiple) {
    out_.resize((out_.size() + multiple - 1) / multiple * multiple);
  }
  /// Replaces what stands at an offset.
  void put_u64(std::size_t at, std::uint64_t x) {
    for (std::size_t i = 0; i < 8; ++i) out_[at + i] = static_cast<std::byte>(x >> (8 * i) & 0xFF);
  }

  std::size_t size() const noexcept { return out_.size(); }
  std::vector<std::byte>& all() noexcept { return out_; }

 private:
  std::vector<std::byte> out_;
};

/// Fields of bytes that may come from anywhere, each read once. Allocates nothing.
class field_reader {
 public:
  /// what: how errors begin, "update message".
  field_reader(std::span<const std::byte> all, const char* what) noexcept
      : all_(all), what_(what) {}

  [[noreturn]] void refuse(const std::string& why, error_subject about = {}) const {
    fail(std::string("subfed: ") + what_ + ": " + why, std::move(about));
  }
  std::size_t left() const noexcept { return all_.size() - at_; }
  std::size_t at() const noexcept { return at_; }
  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > left()) {
      refuse("it ends after " + std::to_string(all_.size()) + " bytes, " + std::to_string(count) +
             " more are expected at byte " + std::to_string(at_));
    }
    const auto out = all_.subspan(at_, static_cast<std::size_t>(count));
    at_ += out.size();
    return out;
  }
  std::uint8_t u8() { return std::to_integer<std::uint8_t>(bytes(1)[0]); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(number(8)); }
  double f64() { return std::bit_cast<double>(number(8)); }
  std::string_view text(std::uint64_t length) {
    const auto all = bytes(length);
    return {static_cast<const char*>(static_cast<const void*>(all.data())), all.size()};
  }
  /// Zeros up to a multiple.
  void skip_padding(std::size_t multiple) {
    while (at_ % multiple != 0) {
      if (u8() != 0) refuse("byte " + std::to_string(at_ - 1) + " is not 0, between its parts");
    }
  }
  /// "SFU" and a version.
  void magic(std::string_view expected, std::uint8_t version) {
    if (left() < expected.size() || text(expected.size()) != expected) {
      refuse("it does not begin with \"" + std::string(expected) + "\"");
    }
    const std::uint8_t found = u8();
    if (found != version) {
      refuse("version " + std::to_string(found) + ", and this is for version " +
             std::to_string(version));
    }
  }
  void end() const {
    if (left() != 0) refuse("there are bytes after the end");
  }

 private:
  std::uint64_t number(std::size_t count) {
    const auto from = bytes(count);
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < count; ++i) {
      out |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    }
    return out;
  }

  std::span<const std::byte> all_;
  std::size_t at_ = 0;
  const char* what_;
};

}  // namespace subfed::inline v0::detail
