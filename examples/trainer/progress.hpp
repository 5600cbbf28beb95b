// SPDX-License-Identifier: MIT
/// What the person at the terminal sees while the program runs.
#pragma once

#include <chrono>
#include <common/rewritten_line.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "method.hpp"
#include "result.hpp"

namespace trainer {

/// One line on stderr that is written over again; where stderr is no terminal, a plain line for each
/// evaluation.
class live_line {
 public:
  live_line(std::span<const method> methods, std::span<const subfed::capacity> capacities,
            std::int64_t rounds);

  /// `method` counts from 0; `on_test` is null in rounds without an evaluation.
  void show(std::size_t method, std::int64_t round, double train_loss, const evaluation* on_test);

 private:
  double seconds_left(std::size_t method, std::int64_t round) const;

  std::vector<std::string> names_;
  std::vector<double> work_;  // of each method, in an arbitrary unit
  std::int64_t rounds_;
  std::size_t shown_method_ = 0;
  std::string accuracy_ = "-";
  common::rewritten_line line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace trainer
