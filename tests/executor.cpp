// SPDX-License-Identifier: MIT
#include <subfed/executor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace {

struct without_parallel_for {};

struct own {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    for (std::int64_t i = n; i-- > 0;) f(i);
  }
};

static_assert(subfed::executor<subfed::serial>);
static_assert(subfed::executor<const subfed::serial>);
static_assert(subfed::executor<own>);
static_assert(!subfed::executor<without_parallel_for>);
static_assert(!subfed::executor<int>);

template <class Executor>
void check_each_part_once(const Executor& run_by) {
  for (const std::int64_t n : {0, 1, 2, 257}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
    run_by.parallel_for(n, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
    for (const auto& c : calls) CHECK(c == 1);
  }
}

}  // namespace

TEST_CASE("an executor runs each part once") {
  check_each_part_once(subfed::serial{});
  check_each_part_once(own{});
#if defined(_OPENMP)
  check_each_part_once(subfed::openmp{});
  check_each_part_once(subfed::openmp{3});
#else
  MESSAGE("Skipped: the OpenMP executor, as this build is without OpenMP.");
#endif
}

TEST_CASE("the serial executor goes in order on the calling thread") {
  std::vector<std::int64_t> order;
  subfed::serial{}.parallel_for(4, [&](std::int64_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3});
}
