// SPDX-License-Identifier: MIT
/// Numbers and lists parsed from text, independently of the locale: a point is a point wherever the
/// program runs. To be copied with failure.hpp.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/error.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "failure.hpp"

namespace common {

/// The whole text as a number; empty when it is not one, or not one that T can hold
/// (inf and nan included).
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

/// The pieces between the separators, without surrounding blanks.
inline std::vector<std::string> pieces(const std::string& text, char separator = ',') {
  std::vector<std::string> out;
  std::size_t from = 0;
  while (true) {
    const std::size_t at = text.find(separator, from);
    const std::string piece = text.substr(from, at - from);
    const std::size_t begin = piece.find_first_not_of(" \t");
    const std::size_t end = piece.find_last_not_of(" \t");
    out.push_back(begin == std::string::npos ? "" : piece.substr(begin, end - begin + 1));
    if (at == std::string::npos) return out;
    from = at + 1;
  }
}

/// One capacity: a decimal number or a fraction of whole numbers, in (0, 1].
///
/// Throws  failure that quotes the text.
inline subfed::capacity parse_capacity(std::string_view text) {
  const auto refusal = [&](std::string_view why) {
    std::string out = "The capacity \"";
    out.append(text).append("\" ").append(why);
    return failure(out +
                   "; a capacity is a fraction such as 1/4 or a decimal number, more than 0 and at "
                   "most 1.");
  };
  const std::size_t slash = text.find('/');
  try {
    if (slash == std::string_view::npos) {
      const auto value = number<double>(text);
      if (!value) throw refusal("is not a number");
      return subfed::capacity(*value);
    }
    const auto numerator = number<std::int64_t>(text.substr(0, slash));
    const auto denominator = number<std::int64_t>(text.substr(slash + 1));
    if (!numerator || !denominator) throw refusal("is not a fraction of whole numbers");
    return subfed::capacity::ratio(*numerator, *denominator);
  } catch (const subfed::error&) {
    throw refusal("is out of range");
  }
}

}  // namespace common
