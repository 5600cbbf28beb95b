// SPDX-License-Identifier: MIT
#include <subfed/detail/instructions.hpp>

#include <support/instructions.hpp>

#include <cstdlib>
#include <string>

#if SUBFED_VARIANTS

using subfed::detail::instructions;

namespace {

/// The environment variable while it lives.
struct said_instructions {
  std::string before;
  bool was_set;

  explicit said_instructions(const char* text) {
    const char* const old = std::getenv("SUBFED_INSTRUCTIONS");
    was_set = old != nullptr;
    if (was_set) before = old;
    setenv("SUBFED_INSTRUCTIONS", text, 1);
  }
  ~said_instructions() {
    if (was_set) {
      setenv("SUBFED_INSTRUCTIONS", before.c_str(), 1);
    } else {
      unsetenv("SUBFED_INSTRUCTIONS");
    }
  }
};

instructions allowed(const char* text) {
  const said_instructions said(text);
  return subfed::detail::allowed_instructions();
}

}  // namespace

TEST_CASE("the environment variable SUBFED_INSTRUCTIONS limits what is used") {
  const instructions best = subfed::detail::best_instructions();
  const auto at_most = [best](instructions limit) { return limit < best ? limit : best; };
  CHECK(allowed("baseline") == instructions::baseline);
  CHECK(allowed("avx2") == at_most(instructions::avx2));
  CHECK(allowed("avx512") == best);
  CHECK(allowed("") == best);
  CHECK(allowed("another word") == best);
}

TEST_CASE("tests use other instructions for a while") {
  const instructions before = subfed::detail::instructions_in_use();
  int calls = 0;
  support::with_all_instructions([&] {
    CHECK(static_cast<int>(subfed::detail::instructions_in_use()) == calls);
    ++calls;
  });
  CHECK(calls == 1 + static_cast<int>(subfed::detail::best_instructions()));
  CHECK(subfed::detail::instructions_in_use() == before);
}

#endif
