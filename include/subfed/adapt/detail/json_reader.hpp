// SPDX-License-Identifier: MIT
/// The JSON of the formats, strictly: what such a text may contain is read and written, everything else
/// is refused.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/adapt/detail/text_cursor.hpp>
#include <subfed/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Bytes of the UTF-8 sequence that the text begins with; 0 when it is invalid (an overlong
/// encoding, half of a surrogate pair, over U+10FFFF).
inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

inline bool is_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

inline void append_utf8(std::string& out, unsigned code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80u | (code >> shift & 0x3Fu)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0u | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0u | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0u | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Reads objects and arrays of a depth that the caller knows, strings, and whole numbers that are not
/// negative. Everything else in JSON is refused, so nothing recurses.
class json_reader : public text_cursor {
 public:
  /// `what` is the text in errors: "safetensors: the header".
  json_reader(std::string_view text, std::string what)
      : text_cursor(text, std::move(what), " \n\r\t") {}

  /// Calls read_value(key) for each key of an object; it must consume the value.
  template <class F>
  void object(F&& read_value) {
    expect('{');
    if (next_is('}')) return;
    do {
      std::string key = string();
      expect(':');
      read_value(std::move(key));
    } while (next_is(','));
    expect('}');
  }

  /// Calls read_element() for each element of an array; it is to consume it.
  template <class F>
  void array(F&& read_element) {
    expect('[');
    if (next_is(']')) return;
    do {
      read_element();
    } while (next_is(','));
    expect(']');
  }
  std::int64_t number() {
    skip_space();
    const std::size_t begin = at_;
    std::int64_t out = 0;
    if (!parse_decimal(text_, at_, out)) {
      at_ = begin;
      refuse("something other than a whole number from 0 to 2^63 - 1");
    }
    if (text_[begin] == '0' && at_ > begin + 1) refuse("a number with leading zeros");
    return out;
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> out;
    array([&] { out.push_back(number()); });
    return out;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      if (at_ == text_.size()) refuse("an unterminated string");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (static_cast<unsigned char>(c) < 0x20) refuse("a control character in a string");
      if (c == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) refuse("bytes that are not UTF-8");
      out += text_.substr(at_, length);
      at_ += length;
    }
  }

  void end() {
    skip_space();
    if (at_ != text_.size()) refuse("something after its end");
  }

 private:
  /// What follows a backslash.
  void escape(std::string& out) {
    constexpr std::string_view codes = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t known = c == '\0' ? std::string_view::npos : codes.find(c);
    if (known != std::string_view::npos) {
      ++at_;
      out += meanings[known];
      return;
    }
    if (c != 'u') refuse("an unknown escape in a string");
    ++at_;
    unsigned code = hexadecimal();
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const unsigned low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) refuse("half of a surrogate pair in a string");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xD800 && code < 0xE000) {
      refuse("half of a surrogate pair in a string");
    }
    append_utf8(out, code);
  }
  unsigned hexadecimal() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                             : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                                    : 16;
      if (digit == 16) refuse("an escape without four hexadecimal digits");
      code = code * 16 + digit;
      ++at_;
    }
    return code;
  }
};

/// A string in JSON's notation.
inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace subfed::inline v0::detail
