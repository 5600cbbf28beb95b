// SPDX-License-Identifier: MIT
/// Benchmarks of subfed; --help has Google Benchmark's options. scripts/bench runs all of them and
/// prints a table.
#include "peers/peer.hpp"
#include "register.hpp"

#include <subfed/version.hpp>

#include <benchmark/benchmark.h>

#include <string>

int main(int argc, char** argv) {
  bench::register_cases();
  bench::register_planning();
  bench::register_growth();
  std::string missing;
  for (const std::string& peer : bench::missing_peers()) {
    missing += (missing.empty() ? "" : ", ") + peer;
  }
  benchmark::AddCustomContext("missing peers", missing.empty() ? "none" : missing);
  benchmark::AddCustomContext("flags", SUBFED_BENCH_FLAGS);
#if defined(__VERSION__)
  benchmark::AddCustomContext("compiler", __VERSION__);
#endif
#if !defined(_OPENMP)
  benchmark::AddCustomContext("threads", "no OpenMP: cases of 2 threads ran on one");
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
