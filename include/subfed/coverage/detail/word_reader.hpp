// SPDX-License-Identifier: MIT
/// Reads words and numbers of an untrusted text.
#pragma once

#include <subfed/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace subfed::inline v0::detail {

/// A name as one word: bytes outside '!' .. '~', and '%', become %XX.
inline std::string as_word(std::string_view name) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != '%') {
      out += c;
    } else {
      out += '%';
      out += digits[byte / 16];
      out += digits[byte % 16];
    }
  }
  return out;
}

/// Words separated by one space or line end. Every error names the line.
class word_reader {
 public:
  explicit word_reader(std::string_view text) : text_(text), left_(text) {}

  std::string_view text() const noexcept { return text_; }

  std::string_view next() {
    const std::size_t end = (std::min)(left_.find_first_of(" \n"), left_.size());
    const std::string_view word = left_.substr(0, end);
    line_ = next_line_;
    if (end < left_.size() && left_[end] == '\n') ++next_line_;
    left_.remove_prefix((std::min)(end + 1, left_.size()));
    return word;
  }

  void expect(std::string_view expected) {
    const std::string_view found = next();
    if (found != expected) refuse("'" + shown(found) + "'", "'" + shown(expected) + "'");
  }

  /// A number in [least, most].
  std::int64_t number(const char* what, std::int64_t least, std::int64_t most) {
    const std::string_view word = next();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value < least || value > most) {
      refuse(std::string(what) + " '" + shown(word) + "'",
             std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

  bool at_end() const noexcept { return left_.empty(); }
  /// How many numbers can still follow, at two bytes each: a bound for allocations.
  std::int64_t numbers_left() const noexcept {
    return static_cast<std::int64_t>(left_.size() / 2 + 1);
  }

  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    fail("subfed: coverage text: line " + std::to_string(line_) + ": " + found + ", expected " +
         expected);
  }

 private:
  static std::string shown(std::string_view word) {
    constexpr std::size_t most = 40;
    return as_word(word.substr(0, most)) + (word.size() > most ? ".." : "");
  }

  std::string_view text_;
  std::string_view left_;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
};

}  // namespace subfed::inline v0::detail
