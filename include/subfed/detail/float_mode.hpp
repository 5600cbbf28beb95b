// SPDX-License-Identifier: MIT
/// The processor's mode of arithmetic, which belongs to a thread: results must not depend on which
/// thread does a part of the work.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// During its lifetime this thread rounds to nearest and computes with denormal numbers, whatever
/// the program has set (-Ofast turns them into zeros in main()'s thread). Costs one read of a
/// register where nothing has to change.
class float_mode {
 public:
  float_mode() noexcept : before_(read()) {
    if ((before_ & changed) != 0) write(before_ & ~changed);
  }
  ~float_mode() {
    // Flags that were raised in between stay raised.
    if ((before_ & changed) != 0) write(before_ | (read() & ~changed));
  }
  float_mode(const float_mode&) = delete;
  float_mode& operator=(const float_mode&) = delete;

 private:
#if defined(__SSE2__)
  using word = std::uint32_t;
  /// MXCSR: flush to zero, rounding, denormals are zero.
  static constexpr word changed = 0x8000u | 0x6000u | 0x0040u;

  static word read() noexcept { return _mm_getcsr(); }
  static void write(word mode) noexcept {
    hold();
    _mm_setcsr(mode);
    hold();
  }
#elif defined(__aarch64__) && defined(__GNUC__)
  using word = std::uint64_t;
  /// FPCR: flush to zero (of all types, of half), rounding, flush inputs and the alternate mode.
  static constexpr word changed = 1u << 24 | 1u << 19 | 3u << 22 | 3u;

  static word read() noexcept {
    word mode;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(word mode) noexcept {
    __asm__ __volatile__("msr fpcr, %0" : : "r"(mode) : "memory");
  }
#else
  using word = std::uint32_t;
  static constexpr word changed = 0;
  static word read() noexcept { return 0; }
  static void write(word) noexcept {}
#endif

  /// No load or store moves across.
  static void hold() noexcept {
#if defined(__GNUC__)
    __asm__ __volatile__("" : : : "memory");
#endif
  }

  word before_;
};

}  // namespace subfed::inline v0::detail
