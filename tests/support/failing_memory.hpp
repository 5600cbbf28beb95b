// SPDX-License-Identifier: MIT
/// Memory that runs out at a chosen allocation, in programs of which one source file includes
/// failing_new.hpp.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
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

/// Whether f ends where memory runs out so.
template <class F>
bool ends_with(const failing_memory& given, F&& f) {
  struct end_of_failures {
    ~end_of_failures() { memory = {}; }
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
