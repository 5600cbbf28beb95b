// SPDX-License-Identifier: MIT
/// Numbers and lists out of what somebody typed.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <subfed/capacity.hpp>
#include <system_error>
#include <vector>

namespace common {

/// The whole text as a number; empty when it is none.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What stands between the separators, without blanks around it.
std::vector<std::string> pieces(const std::string& text, char separator = ',');

/// One capacity: a decimal number or a fraction of integers, in (0, 1].
///
/// Throws  failure that quotes the text.
subfed::capacity parse_capacity(std::string_view text);

}  // namespace common
