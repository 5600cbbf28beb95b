// SPDX-License-Identifier: MIT
/// A place in a text that is read from its beginning, and what is refused there.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace subfed::inline v0::detail {

/// What readers of small formats share.
class text_cursor {
 public:
  /// `what` is the text in errors: "safetensors: the header". `space` has the characters between words.
  text_cursor(std::string_view text, std::string what, std::string_view space)
      : text_(text), what_(std::move(what)), space_(space) {}

  /// Throws  error: "subfed: safetensors: the header has an unterminated string, at byte 7".
  [[noreturn]] void refuse(const std::string& what) const {
    fail("subfed: " + what_ + " has " + what + ", at byte " + std::to_string(at_));
  }

 protected:
  void skip_space() {
    while (at_ < text_.size() && space_.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool next_is(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (next_is(c)) return;
    refuse((at_ == text_.size() ? std::string("its end") : detail::quoted(text_.substr(at_, 1))) +
           " where '" + c + "' is expected");
  }

  std::string_view text_;
  std::size_t at_ = 0;

 private:
  std::string what_;
  std::string_view space_;
};

}  // namespace subfed::inline v0::detail
