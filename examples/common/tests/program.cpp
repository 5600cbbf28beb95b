// SPDX-License-Identifier: MIT
/// Main functions whose output goes where it cannot arrive.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <common/files.hpp>
#include <common/program.hpp>

#include <functional>

#include "temporary_folder.hpp"

namespace {

struct ended {
  int status = -1;  // -1: by a signal
  std::string error;
};

/// Runs a main function in a process of its own whose stdout `open` has put somewhere.
ended run(const std::function<void()>& open, const std::function<int()>& body) {
  const temporary_folder folder;
  const auto error = folder.path() / "stderr";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(::open(error.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    open();
    _exit(common::run_program("program", body));
  }
  ended out;
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) out.status = WEXITSTATUS(status);
  out.error = common::read_file(error);
  return out;
}

void nowhere() { dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO); }
void full() { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); }
void closed() { close(STDOUT_FILENO); }
int print_some() {
  std::printf("something\n");
  return 0;
}
int print_much() {
  for (int i = 0; i < 10'000; ++i) std::printf("something\n");  // more than a buffer
  return 0;
}

}  // namespace

TEST_CASE("a program that prints where there is no room says so and fails") {
  CHECK(run(nowhere, print_some).status == 0);
  CHECK(run(nowhere, print_some).error.empty());
  for (int (*const body)() : {print_some, print_much}) {
    const ended on_full = run(full, body);
    CHECK(on_full.status == 1);
    CHECK(on_full.error == "program: The output could not be written: No space left on device.\n");
  }
}

TEST_CASE("also where stdout is closed, and files do not get what was printed") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  const ended out = run(closed, [&] {
    const int stays_open = open(file.c_str(), O_WRONLY | O_CREAT, 0600);
    print_some();
    return stays_open < 0 ? 3 : 0;
  });
  CHECK(out.status == 1);
  CHECK(out.error == "program: The output could not be written: Bad file descriptor.\n");
  CHECK(common::read_file(file).empty());
}

TEST_CASE("nothing that was printed is nothing that could be lost") {
  CHECK(run(full, [] { return 0; }).status == 0);
}

TEST_CASE("the status is the function's, and a failure is a sentence after the program's name") {
  CHECK(run(nowhere, [] { return 2; }).status == 2);
  const ended failed = run(nowhere, []() -> int { throw common::failure("No luck."); });
  CHECK(failed.status == 1);
  CHECK(failed.error == "program: No luck.\n");
  const ended large = run(nowhere, []() -> int { throw std::bad_alloc(); });
  CHECK(large.status == 1);
  CHECK(large.error == "program: There is not enough memory.\n");
}
