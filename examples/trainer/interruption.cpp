// SPDX-License-Identifier: MIT
#include "interruption.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace trainer {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t caught = 0;

void handle(int number) { caught = number; }

}  // namespace

stop_on_signals::stop_on_signals() {
  caught = 0;
  for (const int number : signals) {
    struct sigaction before = {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

stop_on_signals::~stop_on_signals() {
  for (const int number : signals) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == handle) signal(number, SIG_DFL);
  }
}

bool asked_to_stop() noexcept { return caught != 0; }

void end_by_signal() {
  const int number = caught;
  signal(number, SIG_DFL);
  raise(number);
  _exit(128 + number);  // where the signal is blocked
}

std::string text_of(const interruption& what, const std::string& folder) {
  const std::string where = fmt::format("Stopped after round {} of {}", what.rounds, what.method);
  if (!what.is_kept) {
    return where + "; nothing of it is kept, as --checkpoint-every is 0.";
  }
  if (what.rounds == 0) {
    return where +
           fmt::format("; with --resume the same command continues with what is in {}.", folder);
  }
  return where +
         fmt::format("; with --resume the same command continues from the checkpoint in {}.",
                     folder);
}

}  // namespace trainer
