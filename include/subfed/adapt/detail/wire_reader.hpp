// SPDX-License-Identifier: MIT
/// Reads the wire format of protocol buffers.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace subfed::inline v0::detail {

/// The fields of one message, in their order. Nothing is copied.
///
///   while (message.next()) {
///     if (message.is(3, wire_type::varint)) count = message.varint();
///   }
///
/// Fields that are not read are skipped.
///
/// Throws  error with the place in the file, for bytes that are no message.
enum class wire_type { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class wire_reader {
 public:
  explicit wire_reader(std::span<const std::byte> message, std::size_t begins_at = 0)
      : message_(message), begins_at_(begins_at) {}

  /// Moves to the next field; false at the end.
  bool next() {
    if (is_open_) skip();
    if (at_ == message_.size()) return false;
    const std::uint64_t key = number();
    field_ = key >> 3;
    type_ = static_cast<wire_type>(key & 7);
    if (field_ == 0) refuse("a field of number 0");
    is_open_ = true;
    return true;
  }
  bool is(std::uint64_t field, wire_type type) const noexcept {
    return field_ == field && type_ == type;
  }

  std::uint64_t varint() {
    is_open_ = false;
    return number();
  }
  std::int64_t integer() { return static_cast<std::int64_t>(varint()); }
  std::uint64_t fixed() {
    is_open_ = false;
    const std::size_t count = type_ == wire_type::fixed32 ? 4 : 8;
    const auto from = take(count);
    return count == 4 ? load_little<4>(from.data()) : load_little<8>(from.data());
  }
  std::span<const std::byte> bytes() {
    is_open_ = false;
    const std::uint64_t length = number();
    if (length > message_.size() - at_) {
      refuse("a field of " + std::to_string(length) + " bytes, of which " +
             std::to_string(message_.size() - at_) + " are there");
    }
    return take(static_cast<std::size_t>(length));
  }
  std::string_view text() { return as_text(bytes()); }
  wire_reader message() {
    const auto inner = bytes();
    return wire_reader(inner, begins_at_ + at_ - inner.size());
  }
  /// The numbers of a repeated field, which are packed in one field or one a field; each(number).
  template <class F>
  void varints(F&& each) {
    if (type_ == wire_type::varint) return each(varint());
    wire_reader packed = message();
    while (packed.at_ < packed.message_.size()) each(packed.number());
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail("subfed: onnx: the file has " + what + ", at byte " + std::to_string(begins_at_ + at_));
  }

 private:
  std::uint64_t number() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == message_.size()) refuse("a number without an end");
      const auto byte = std::to_integer<std::uint64_t>(message_[at_++]);
      if (shift == 63 && byte > 1) refuse("a number of more than 64 bits");
      out |= (byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
    refuse("a number of more than 64 bits");
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > message_.size() - at_) refuse("a field without an end");
    at_ += count;
    return message_.subspan(at_ - count, count);
  }
  void skip() {
    switch (type_) {
      case wire_type::varint:
        number();
        break;
      case wire_type::fixed64:
        take(8);
        break;
      case wire_type::bytes:
        bytes();
        break;
      case wire_type::fixed32:
        take(4);
        break;
      default:
        refuse("a field of type " + std::to_string(static_cast<int>(type_)));
    }
    is_open_ = false;
  }

  std::span<const std::byte> message_;
  std::size_t begins_at_;  // of the file
  std::size_t at_ = 0;
  std::uint64_t field_ = 0;
  wire_type type_ = wire_type::varint;
  bool is_open_ = false;  // the value of the field has not been read
};

}  // namespace subfed::inline v0::detail
