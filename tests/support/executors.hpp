// SPDX-License-Identifier: MIT
/// Executors that a result must not depend on.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

namespace support {

/// Runs parts from the last to the first.
struct backwards {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    while (n > 0) f(--n);
  }
};

/// Deals parts out to three threads.
struct three_threads {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    std::vector<std::thread> team;
    for (std::int64_t first = 0; first < 3; ++first) {
      team.emplace_back([&f, n, first] {
        for (std::int64_t i = first; i < n; i += 3) f(i);
      });
    }
    for (std::thread& one : team) one.join();
  }
};

}  // namespace support
