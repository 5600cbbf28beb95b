// SPDX-License-Identifier: MIT
/// What the person at the terminal sees while the program runs.
#pragma once

#include <chrono>
#include <common/rewritten_line.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "result.hpp"

namespace trainer {

/// The text of a line. It fits 80 columns where the numbers are not huge.
std::string progress_text(const std::string& method, std::size_t number, std::size_t methods,
                          std::int64_t round, std::int64_t rounds, const evaluation* on_test,
                          double train_loss, double seconds_left);

/// One line on stderr that is rewritten; where stderr is not a terminal, a plain line for each
/// evaluation.
class live_line {
 public:
  live_line(std::vector<std::string> methods, std::int64_t rounds);

  /// `method` counts from 0; `on_test` is null in rounds without an evaluation.
  void show(std::size_t method, std::int64_t round, double train_loss, const evaluation* on_test);
  /// An earlier run has done the rounds up to now in so many seconds.
  void done_before(double seconds);

 private:
  double seconds_left(std::size_t method, std::int64_t round) const;

  std::vector<std::string> names_;
  std::int64_t rounds_;
  double seconds_before_ = 0;
  std::size_t shown_method_ = 0;
  bool has_evaluation_ = false;  // of the method
  evaluation last_;
  common::rewritten_line line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace trainer
