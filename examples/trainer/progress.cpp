// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace trainer {

std::string progress_text(const std::string& method, std::size_t number, std::size_t methods,
                          std::int64_t round, std::int64_t rounds, const evaluation* on_test,
                          double train_loss, double seconds_left) {
  const std::string right =
      on_test == nullptr ? "-" : fmt::format("{:.1f} %", 100 * on_test->accuracy);
  const auto left = std::llround(std::ceil(seconds_left));
  return fmt::format("{} ({} of {})  round {}/{}  {} right  loss {:.3f}  {}:{:02} left", method,
                     number, methods, round, rounds, right, std::abs(train_loss), left / 60,
                     left % 60);  // no "-nan"
}

live_line::live_line(std::vector<std::string> methods, std::int64_t rounds)
    : names_(std::move(methods)), rounds_(rounds) {}

void live_line::done_before(double seconds) { seconds_before_ += seconds; }

void live_line::show(std::size_t method, std::int64_t round, double train_loss,
                     const evaluation* on_test) {
  if (method != shown_method_) has_evaluation_ = false;
  shown_method_ = method;
  if (on_test != nullptr) {
    last_ = *on_test;
    has_evaluation_ = true;
  }
  if (!line_.on_terminal() && on_test == nullptr) return;
  line_.show(progress_text(names_[method], method + 1, names_.size(), round, rounds_,
                           has_evaluation_ ? &last_ : nullptr, train_loss,
                           seconds_left(method, round)));
}

double live_line::seconds_left(std::size_t method, std::int64_t round) const {
  const std::int64_t done = static_cast<std::int64_t>(method) * rounds_ + round;
  const std::int64_t all = static_cast<std::int64_t>(names_.size()) * rounds_;
  if (done <= 0) return 0;
  const auto here =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return (seconds_before_ + here) * static_cast<double>(all - done) / static_cast<double>(done);
}

}  // namespace trainer
