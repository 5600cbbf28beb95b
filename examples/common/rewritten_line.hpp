// SPDX-License-Identifier: MIT
/// One line on stderr that is rewritten while a program runs.
#pragma once

#include <cstddef>
#include <string>

namespace common {

/// On a terminal the line is replaced, cut to its width, and gone at the end; elsewhere each text is
/// its own line.
class rewritten_line {
 public:
  rewritten_line();
  ~rewritten_line();
  rewritten_line(const rewritten_line&) = delete;
  rewritten_line& operator=(const rewritten_line&) = delete;

  bool on_terminal() const noexcept { return on_terminal_; }
  void show(const std::string& text);

 private:
  bool on_terminal_;
  std::size_t width_ = 0;
};

}  // namespace common
