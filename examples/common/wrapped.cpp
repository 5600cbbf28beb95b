// SPDX-License-Identifier: MIT
#include "wrapped.hpp"

namespace common {
namespace {

/// The position after the last gap of two blanks or more in the first half; 0 where there is none.
std::size_t indentation(std::string_view line, std::size_t columns) {
  std::size_t out = 0;
  for (std::size_t at = line.find("  "); at != std::string_view::npos; at = line.find("  ", out)) {
    const std::size_t word = line.find_first_not_of(' ', at);
    if (word == std::string_view::npos || word > columns / 2) break;
    out = word;
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    const std::size_t indent = indentation(line, columns);
    std::size_t taken = 0;  // columns of the indentation that is in front of `line` already
    while (line.size() + taken > columns) {
      const std::size_t from = taken == 0 ? indent : 0;
      std::size_t at = line.rfind(' ', columns - taken);
      if (at == std::string_view::npos || at <= from) at = line.find(' ', columns - taken);
      if (at == std::string_view::npos) break;
      out += line.substr(0, at);
      line.remove_prefix(at);
      line.remove_prefix(line.find_first_not_of(' ') == std::string_view::npos
                             ? line.size()
                             : line.find_first_not_of(' '));
      if (line.empty()) break;
      out += '\n' + std::string(indent, ' ');
      taken = indent;
    }
    out += line;
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace common
