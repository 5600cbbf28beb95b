// SPDX-License-Identifier: MIT
/// Text in lines of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace common {

/// Breaks lines at blanks so that they have at most `columns` characters, except for words that are
/// longer. A continuation begins in the same column as its line's text: where a line has a gap of
/// two blanks or more, after the last of them.
std::string wrapped(std::string_view text, std::size_t columns = 80);

}  // namespace common
