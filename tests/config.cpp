// SPDX-License-Identifier: MIT
// SUBFED_ASSERT is replaceable: here it throws, so that preconditions can be tested.
#include <doctest/doctest.h>

#include <string>

namespace {
struct broken_precondition {
  std::string condition;
};
}  // namespace

#define SUBFED_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : throw broken_precondition{#condition})

#include <subfed/config.hpp>
#include <subfed/version.hpp>

namespace {

int checked(int x) {
  SUBFED_ASSERT(x > 0);
  return x;
}

}  // namespace

TEST_CASE("an assertion defined before the first include takes the place of the library's") {
  CHECK(checked(1) == 1);
  std::string found;
  try {
    checked(0);
  } catch (const broken_precondition& broken) {
    found = broken.condition;
  }
  CHECK(found == "x > 0");
}

TEST_CASE("the language level is C++20 and exceptions are seen to be on") {
  static_assert(SUBFED_CPLUSPLUS >= 202002L);
  static_assert(SUBFED_EXCEPTIONS == 1);
}
