// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace trainer {

live_line::live_line(std::vector<std::string> methods, std::int64_t rounds)
    : names_(std::move(methods)), rounds_(rounds) {}

void live_line::done_before(std::size_t method, std::int64_t rounds) {
  shown_method_ = method;
  rounds_before_ += rounds;
}

void live_line::show(std::size_t method, std::int64_t round, double train_loss,
                     const evaluation* on_test) {
  if (method != shown_method_) accuracy_ = "-";
  shown_method_ = method;
  if (on_test != nullptr) accuracy_ = fmt::format("{:.1f} %", 100 * on_test->accuracy);
  if (!line_.on_terminal() && on_test == nullptr) return;

  const auto left = std::llround(std::ceil(seconds_left(method, round)));
  line_.show(fmt::format("{} ({} of {})  round {} of {}  accuracy {}  loss {:.3f}  {}:{:02} left",
                         names_[method], method + 1, names_.size(), round, rounds_, accuracy_,
                         train_loss, left / 60, left % 60));
}

double live_line::seconds_left(std::size_t method, std::int64_t round) const {
  const std::int64_t done = static_cast<std::int64_t>(method) * rounds_ + round;
  const std::int64_t all = static_cast<std::int64_t>(names_.size()) * rounds_;
  const std::int64_t here = done - rounds_before_;
  if (here <= 0) return 0;
  const auto elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return elapsed * static_cast<double>(all - done) / static_cast<double>(here);
}

}  // namespace trainer
