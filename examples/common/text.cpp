// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "failure.hpp"

namespace common {

std::vector<std::string> pieces(const std::string& text, char separator) {
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

subfed::capacity parse_capacity(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return failure(
        fmt::format("The capacity \"{}\" {}; a capacity is a fraction such as 1/4 or a "
                    "decimal number, more than 0 and at most 1.",
                    text, why));
  };
  const std::size_t slash = text.find('/');
  try {
    if (slash == std::string_view::npos) {
      const auto value = number<double>(text);
      if (!value) throw refuse("is no number");
      return subfed::capacity(*value);
    }
    const auto numerator = number<std::int64_t>(text.substr(0, slash));
    const auto denominator = number<std::int64_t>(text.substr(slash + 1));
    if (!numerator || !denominator) throw refuse("is no fraction of whole numbers");
    return subfed::capacity::ratio(*numerator, *denominator);
  } catch (const subfed::error&) {
    throw refuse("is out of range");
  }
}

}  // namespace common
