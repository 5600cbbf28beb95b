// SPDX-License-Identifier: MIT
/// Runs a test with all instructions that this processor has.
#pragma once

#include <doctest/doctest.h>
#include <subfed/detail/instructions.hpp>
#include <support/other_instructions.hpp>

namespace support {

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
