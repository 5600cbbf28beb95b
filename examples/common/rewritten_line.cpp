// SPDX-License-Identifier: MIT
#include "rewritten_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace common {
namespace {

/// The width of the terminal; 80 where it is unknown.
std::size_t columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

rewritten_line::rewritten_line() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

rewritten_line::~rewritten_line() {
  if (on_terminal_ && width_ != 0) fmt::print(stderr, "\r{:<{}}\r", "", width_);
}

void rewritten_line::show(const std::string& text) {
  if (on_terminal_) {
    // In the last column some terminals begin a line, which \r does not take back.
    const std::string shown = text.substr(0, columns() - 1);
    fmt::print(stderr, "\r{:<{}}", shown, (std::min)(width_, columns() - 1));
    width_ = shown.size();
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

}  // namespace common
