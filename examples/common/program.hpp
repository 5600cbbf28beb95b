// SPDX-License-Identifier: MIT
/// What main functions share: every failure, also of printing, ends in a sentence and a status. To
/// be copied with failure.hpp: needs POSIX and the standard library alone.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "failure.hpp"

namespace common {

/// Makes sure that printed output was written: a full disk is often reported only then.
///
/// Throws  failure with the reason when it has not.
inline void finish_output() {
  errno = 0;
  bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (arrived) {  // some file systems report errors only at the end
    const int copy = ::dup(STDOUT_FILENO);
    arrived = copy >= 0 && ::close(copy) == 0;
  }
  if (arrived) return;
  const int reason = errno;
  throw failure("The output could not be written" +
                (reason != 0 ? ": " + std::generic_category().message(reason) + "." : "."));
}

/// The body of a main function: runs a function that returns the program's status, or nothing for
/// 0. What it throws is printed to stderr as a sentence after the program's name, and the status is
/// 1. The same happens when printed output could not be written.
///
///   int main(int count, char** words) {
///     return common::run_program("aggregate", [&] { aggregate(words, count); });
///   }
template <class F>
int run_program(const char* name, F&& body) noexcept {
  // Where one of the three was closed, the first file that is opened would take its place, and
  // would receive what is printed. These discard what is printed, with an error.
  for (int number = 0; number < 3; ++number) {
    if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    static_cast<void>(::open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY));
  }
  const auto say = [&](const char* sentence) { std::fprintf(stderr, "%s: %s\n", name, sentence); };
  int status = 0;
  try {
    if constexpr (requires { status = body(); }) {
      status = body();
    } else {
      body();
    }
    finish_output();
    return status;
  } catch (const std::bad_alloc&) {
    say("There is not enough memory.");
  } catch (const std::exception& error) {
    say(error.what());
  }
  std::fflush(stdout);
  return 1;
}

}  // namespace common
