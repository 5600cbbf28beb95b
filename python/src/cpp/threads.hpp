// SPDX-License-Identifier: MIT
/// Threads for one call, without the GIL: none of them outlives it, so a process may fork.
#pragma once

#include <subfed/error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace subfed_python {

class threads {
 public:
  /// 0: as many as the machine runs at a time.
  explicit threads(int wanted) {
    if (wanted < 0 || wanted > 4096) {
      subfed::detail::fail("subfed: " + std::to_string(wanted) +
                           " threads are asked for, expected 0 to 4096");
    }
    number_ = wanted == 0 ? static_cast<int>(std::thread::hardware_concurrency()) : wanted;
  }

  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr thrown;
    std::mutex lock;
    const auto work = [&] {
      try {
        for (std::int64_t i = next++; i < n; i = next++) f(i);
      } catch (...) {
        const std::lock_guard held(lock);
        if (!thrown) thrown = std::current_exception();
        next = n;
      }
    };
    std::vector<std::thread> team;
    try {
      for (int t = 1; t < number_ && t < n; ++t) team.emplace_back(work);
    } catch (const std::exception&) {  // no more threads are to be had: those that there are do it
    }
    work();
    for (std::thread& each : team) each.join();
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  int number_ = 1;
};

}  // namespace subfed_python
