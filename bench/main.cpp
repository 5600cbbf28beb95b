// SPDX-License-Identifier: MIT
/// Benchmarks of subfed; --help has Google Benchmark's options. scripts/bench runs all of them and
/// prints a table.
#include "peers/peer.hpp"
#include "register.hpp"

#include <subfed/detail/instructions.hpp>
#include <subfed/version.hpp>

#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

namespace {

/// Of Linux; elsewhere empty.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(": ");
    if (line.rfind("model name", 0) == 0 && at != std::string::npos) return line.substr(at + 2);
  }
  return {};
}

/// What SUBFED_INSTRUCTIONS takes.
std::string instructions() {
  using subfed::detail::instructions;
  switch (subfed::detail::instructions_in_use()) {
    case instructions::avx512:
      return "avx512";
    case instructions::avx2:
      return "avx2";
    case instructions::baseline:
      break;
  }
  return "baseline";
}

}  // namespace

int main(int argc, char** argv) {
  bench::register_cases();
  bench::register_planning();
  bench::register_growth();
  std::string missing;
  for (const std::string& peer : bench::missing_peers()) {
    missing += (missing.empty() ? "" : ", ") + peer;
  }
  benchmark::AddCustomContext("missing peers", missing.empty() ? "none" : missing);
  if (!processor().empty()) benchmark::AddCustomContext("processor", processor());
  benchmark::AddCustomContext("instructions", instructions());
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
