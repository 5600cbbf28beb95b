// SPDX-License-Identifier: MIT
#include <subfed/executor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <new>
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

/// As a part throws std::bad_alloc where memory runs out.
template <class Executor>
void check_exception_arrives(const Executor& run_by) {
  for (const std::int64_t n : {1, 2, 257}) {
    std::atomic<std::int64_t> begun = 0;
    CHECK_THROWS_AS(run_by.parallel_for(n,
                                        [&](std::int64_t i) {
                                          ++begun;
                                          if (i % 3 == (n - 1) % 3) throw std::bad_alloc();
                                        }),
                    std::bad_alloc);
    CHECK(begun >= 1);
    CHECK(begun <= n);
    run_by.parallel_for(n, [](std::int64_t) {});  // and is forgotten
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

TEST_CASE("an exception of a part reaches the caller of an executor") {
  check_exception_arrives(subfed::serial{});
#if defined(_OPENMP)
  check_exception_arrives(subfed::openmp{});
  check_exception_arrives(subfed::openmp{3});
#endif
}

TEST_CASE("the serial executor goes in order on the calling thread") {
  std::vector<std::int64_t> order;
  subfed::serial{}.parallel_for(4, [&](std::int64_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3});
}
