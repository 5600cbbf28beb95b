// SPDX-License-Identifier: MIT
/// Instructions other than the best, for a while.
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/instructions.hpp>

namespace support {

/// Uses other instructions while it lives.
class other_instructions {
 public:
  explicit other_instructions(subfed::detail::instructions use) {
#if SUBFED_VARIANTS
    subfed::detail::current_instructions() = use;
#else
    static_cast<void>(use);
#endif
  }
  ~other_instructions() {
#if SUBFED_VARIANTS
    subfed::detail::current_instructions() = before_;
#endif
  }
  other_instructions(const other_instructions&) = delete;
  other_instructions& operator=(const other_instructions&) = delete;

 private:
  subfed::detail::instructions before_ = subfed::detail::instructions_in_use();
};

}  // namespace support
