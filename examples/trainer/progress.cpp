// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <fmt/format.h>

#include <cmath>

namespace trainer {

live_line::live_line(std::span<const method> methods, std::span<const subfed::capacity> capacities,
                     std::int64_t rounds)
    : rounds_(rounds) {
  for (const method& m : methods) {
    names_.push_back(m.name);
    // Convolutions cost the square of the share, and every step has its fixed costs.
    double work = 0;
    for (const subfed::capacity c : capacities) {
      const double share = m.common_share ? m.common_share(capacities).value() : c.value();
      work += 0.4 + 0.6 * share * share;
    }
    work_.push_back(work);
  }
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
  double done = 0, all = 0;
  for (std::size_t m = 0; m < work_.size(); ++m) {
    all += work_[m];
    if (m < method) done += work_[m];
  }
  done += work_[method] * static_cast<double>(round) / static_cast<double>(rounds_);
  const auto elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return elapsed * (all - done) / done;
}

}  // namespace trainer
