// SPDX-License-Identifier: MIT
/// Built with -fno-exceptions -fno-rtti: a repeated node reaches the error handler once, with a
/// text.
#include <subfed/index_set.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// A handler must not return. This one ends the program, so a second call would not be seen as
/// success: 0 only when there was a text that names the repeated node.
[[noreturn]] void leave(const char* message) {
  std::printf("handler called with: %s\n", message);
  std::fflush(stdout);
  std::_Exit(std::strstr(message, "subfed: index_set") == message ? 0 : 3);
}

}  // namespace

int main(int argc, char** argv) {
  static_assert(SUBFED_EXCEPTIONS == 0);
  if (argc != 2) return 4;
  if (std::strcmp(argv[1], "own") == 0) subfed::set_error_handler(&leave);
  const subfed::index_set set(3, {1, 1});
  std::printf("a repeated node was accepted: %lld nodes\n", static_cast<long long>(set.size()));
  return 2;
}
