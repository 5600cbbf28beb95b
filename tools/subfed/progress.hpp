// SPDX-License-Identifier: MIT
/// One line with what is done, its speed and the time left.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <common/rewritten_line.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <subfed/executor.hpp>

#include "checkpoint.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace tool {

/// Shown on a terminal five times a second, elsewhere every ten seconds.
class progress {
 public:
  explicit progress(double bytes) : bytes_(bytes) {}

  void add(double bytes) { done_.store(done_.load() + bytes); }
  void show(const std::string& what) {
    using seconds = std::chrono::duration<double>;
    const auto now = std::chrono::steady_clock::now();
    if (seconds(now - shown_).count() < (line_.on_terminal() ? 0.2 : 10)) return;
    shown_ = now;
    const double passed = elapsed();
    const double done = done_.load();
    if (done <= 0 || passed <= 0) return;
    const auto left = std::llround(std::ceil(passed * (bytes_ - done) / done));
    line_.show(fmt::format("{}  {} of {}  {}/s  {}:{:02} left", what, bytes_text(done),
                           bytes_text(bytes_), bytes_text(done / passed), left / 60, left % 60));
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double total() const { return bytes_; }

 private:
  double bytes_;
  std::atomic<double> done_ = 0;
  common::rewritten_line line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
};

/// Runs the parts of a job on a number of threads and shows how many are done. Parts of one job take
/// about the same time.
class shown_executor {
 public:
  /// threads: 0 for as many as the machine has.
  shown_executor(progress& line, std::string what, double bytes, int threads)
      : line_(line), what_(std::move(what)), bytes_(bytes), threads_(threads) {}

  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    const double each = bytes_ / static_cast<double>(n > 0 ? n : 1);
    std::atomic<std::int64_t> done = 0;
    const auto step = [&](std::int64_t i, bool shows) {
      f(i);
      ++done;
      if (!shows) return;
      line_.add(each * static_cast<double>(done.exchange(0)));
      line_.show(what_);
    };
#if defined(_OPENMP)
    subfed::openmp{threads_}.parallel_for(
        n, [&](std::int64_t i) { step(i, omp_get_thread_num() == 0); });
#else
    static_cast<void>(threads_);
    for (std::int64_t i = 0; i < n; ++i) step(i, true);
#endif
    line_.add(each * static_cast<double>(done.load()));
  }

 private:
  progress& line_;
  std::string what_;
  double bytes_;
  int threads_;
};

}  // namespace tool
