// SPDX-License-Identifier: MIT
/// Memory that runs out at a chosen allocation. For one source file of a program: it replaces the
/// program's operators new and delete.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace support {

/// Which allocations of this thread fail: of those of at least `least` bytes the one after `left` others,
/// and all that follow. Negative: none.
struct failing_memory {
  std::int64_t left = -1;
  std::size_t least = 0;

  void take(std::size_t bytes) {
    if (left < 0 || bytes < least) return;
    if (left == 0) throw std::bad_alloc();
    --left;
  }
};
inline thread_local failing_memory memory;

/// Not inline: GCC would see memory of `new` go to free.
[[gnu::noinline]] inline void give_back(void* p) noexcept { std::free(p); }

/// Whether f ends where memory runs out so.
template <class F>
bool ends_with(const failing_memory& given, F&& f) {
  struct guard {
    ~guard() { memory = {}; }
  } const plenty;
  memory = given;
  try {
    f();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

/// For every allocation of act(state) that may fail, of at least so many bytes: a state made by make()
/// looks as before, and a second try gives what one without failures gives. Returns how many there are.
template <class Make, class Act, class Look>
std::int64_t check_unchanged(const std::string& what, Make&& make, Act&& act, Look&& look,
                             std::size_t least = 0) {
  INFO(what);
  auto whole = make();
  const auto before = look(whole);
  act(whole);
  const auto after = look(whole);
  for (std::int64_t failed = 0;; ++failed) {
    auto state = make();
    if (ends_with({failed, least}, [&] { act(state); })) return failed;
    INFO("allocation " << failed);
    REQUIRE(look(state) == before);
    act(state);
    REQUIRE(look(state) == after);
  }
}

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
