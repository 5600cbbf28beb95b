// SPDX-License-Identifier: MIT
/// Times a subject beside its ceiling: both run in every iteration, one after the other, so that
/// whatever else the machine does meets both.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace bench {

template <class F>
double seconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// Runs the iterations. Counters: ms (median), ceiling_ms (median), of_ceiling (their ratio; 1 is
/// the speed of memcpy), GB_s (bytes moved in and out a second).
template <class Subject, class Ceiling>
void measure(benchmark::State& state, double bytes_moved, Ceiling&& ceiling, Subject&& subject) {
  subject();  // pages, caches of the allocator
  ceiling();
  std::vector<double> times, limits;
  for (auto _ : state) {
    limits.push_back(seconds(ceiling));
    times.push_back(seconds(subject));
    state.SetIterationTime(times.back());
  }
  const double time = median(times);
  state.counters["ms"] = 1e3 * time;
  state.counters["ceiling_ms"] = 1e3 * median(limits);
  state.counters["of_ceiling"] = median(limits) / time;
  state.counters["GB_s"] = bytes_moved / time / 1e9;
}

/// For subjects without a ceiling of memory.
template <class Subject>
void measure(benchmark::State& state, Subject&& subject) {
  subject();
  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(seconds(subject));
    state.SetIterationTime(times.back());
  }
  state.counters["ms"] = 1e3 * median(times);
}

}  // namespace bench
