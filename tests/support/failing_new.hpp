// SPDX-License-Identifier: MIT
/// Operators new and delete for failing_memory.hpp, in place of the program's own: for one source file.
/// Not for one of CUDA, whose compiler makes them for the device too.
#pragma once

#include <support/failing_memory.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace support {

/// Not inline: GCC would see memory of `new` go to free.
[[gnu::noinline]] inline void give_back(void* p) noexcept { std::free(p); }

}  // namespace support

// What is not written is not zero either.
void* operator new(std::size_t bytes) {
  support::memory.take(bytes);
  void* const got = std::malloc(bytes == 0 ? 1 : bytes);
  if (got == nullptr) throw std::bad_alloc();
  if (support::memory.left >= 0) std::memset(got, 0xA5, bytes);
  return got;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* p) noexcept { support::give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { support::give_back(p); }
void operator delete[](void* p) noexcept { support::give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { support::give_back(p); }
void operator delete(void* p, std::size_t) noexcept { support::give_back(p); }
