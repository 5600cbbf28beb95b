// SPDX-License-Identifier: MIT
/// Which instructions inner loops use: chosen once, when the program runs. All variants of a loop give
/// the same bits.
#pragma once

#include <subfed/config.hpp>

#if SUBFED_VARIANTS
#include <atomic>
#include <cstdlib>
#include <string_view>
#endif

namespace subfed::inline v0::detail {

/// Each includes those before it.
enum class instructions {
  baseline,  ///< what the program is compiled for
  avx2,      ///< with FMA and F16C, as every processor with AVX2 has them
  avx512,    ///< F, BW, DQ and VL
};

#if SUBFED_VARIANTS

/// The most that this processor has.
inline instructions best_instructions() noexcept {
  __builtin_cpu_init();
  unsigned a = 1, b = 0, c = 0, d = 0;
  __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const bool has_f16c = (c >> 29 & 1) != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("popcnt") != 0 && has_f16c;
  if (!avx2) return instructions::baseline;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return avx512 ? instructions::avx512 : instructions::avx2;
}

/// No more than the environment variable SUBFED_INSTRUCTIONS says: baseline, avx2 or avx512.
inline instructions allowed_instructions() noexcept {
  const instructions best = best_instructions();
  const char* const text = std::getenv("SUBFED_INSTRUCTIONS");
  const std::string_view said = text == nullptr ? "" : text;
  const instructions limit = said == "baseline" ? instructions::baseline
                             : said == "avx2"   ? instructions::avx2
                                                : instructions::avx512;
  return limit < best ? limit : best;
}

/// What is in use; tests change it.
inline std::atomic<instructions>& current_instructions() noexcept {
  static std::atomic<instructions> current{allowed_instructions()};
  return current;
}
inline instructions instructions_in_use() noexcept {
  return current_instructions().load(std::memory_order_relaxed);
}

#else

constexpr instructions best_instructions() noexcept { return instructions::baseline; }
constexpr instructions instructions_in_use() noexcept { return instructions::baseline; }

#endif

}  // namespace subfed::inline v0::detail
