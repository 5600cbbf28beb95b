// SPDX-License-Identifier: MIT
#include "pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

TEST_CASE("each task runs once, on any number of workers") {
  for (const std::size_t workers : {1u, 2u, 5u}) {
    std::atomic<std::size_t> prepared = 0;
    trainer::pool pool(workers, [&] { ++prepared; });
    for (const std::size_t tasks : {0u, 1u, 4u, 100u}) {
      std::vector<int> runs(tasks, 0);
      pool.run(tasks, [&](std::size_t i) { ++runs[i]; });
      CHECK(runs == std::vector<int>(tasks, 1));
    }
    CHECK(prepared >= 1);
  }
}

TEST_CASE("a task's exception reaches the caller, and the pool continues") {
  trainer::pool pool(2, [] {});
  CHECK_THROWS_WITH_AS(pool.run(50,
                                [](std::size_t i) {
                                  if (i == 7) throw std::runtime_error("seven");
                                }),
                       "seven", std::runtime_error);
  std::atomic<int> runs = 0;
  pool.run(3, [&](std::size_t) { ++runs; });
  CHECK(runs == 3);
}
