// SPDX-License-Identifier: MIT
/// Runs a test with all instructions that this processor has.
#pragma once

#include <doctest/doctest.h>
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

/// Calls f() with each in use.
template <class F>
void with_all_instructions(F&& f) {
  using subfed::detail::instructions;
  for (const instructions use :
       {instructions::baseline, instructions::avx2, instructions::avx512}) {
    if (subfed::detail::best_instructions() < use) continue;
    INFO("instructions ", static_cast<int>(use), " (0: baseline, 1: AVX2, 2: AVX-512)");
    const other_instructions while_it_lives(use);
    f();
  }
}

}  // namespace support
