// SPDX-License-Identifier: MIT
#include "rewritten_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace common {

rewritten_line::rewritten_line() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

rewritten_line::~rewritten_line() {
  if (on_terminal_ && width_ != 0) fmt::print(stderr, "\r{:<{}}\r", "", width_);
}

void rewritten_line::show(const std::string& text) {
  if (on_terminal_) {
    fmt::print(stderr, "\r{:<{}}", text, width_);
    width_ = text.size();
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

}  // namespace common
