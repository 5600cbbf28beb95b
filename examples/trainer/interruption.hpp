// SPDX-License-Identifier: MIT
/// Ctrl-C and the like: a run is asked to stop, and says how to continue.
#pragma once

#include <cstdint>
#include <string>

namespace trainer {

/// During its lifetime, the first SIGINT, SIGTERM or SIGHUP asks the run to stop; the second ends
/// the process. Those that are ignored stay so.
class stop_on_signals {
 public:
  stop_on_signals();
  ~stop_on_signals();
  stop_on_signals(const stop_on_signals&) = delete;
  stop_on_signals& operator=(const stop_on_signals&) = delete;
};

/// May be called on any thread.
bool asked_to_stop() noexcept;

/// Ends the process by the signal that it was asked to stop with, so that a shell sees 130 for
/// Ctrl-C and 143 for SIGTERM.
[[noreturn]] void end_by_signal();

/// What a run throws then.
struct interruption {
  std::string method;
  std::int64_t rounds = 0;  // that are done of the method
  bool is_kept = false;     // in a checkpoint, where there are any
};

/// One sentence for the person at the terminal.
std::string text_of(const interruption& what, const std::string& folder);

}  // namespace trainer
