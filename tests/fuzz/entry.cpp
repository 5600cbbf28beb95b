// SPDX-License-Identifier: MIT
/// The functions that libFuzzer calls:
/// subfed_fuzz --target=npy [--progress=FILE] [folder..] [-runs=..]
#include <fuzz/fuzz.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

const fuzz::target* chosen = nullptr;
std::string progress;  // file that says how many inputs were run, written every second

void count() {
  using clock = std::chrono::steady_clock;
  static std::uint64_t executions = 0;
  static clock::time_point written = clock::now();
  if (++executions % 64 != 0 || progress.empty()) return;
  if (clock::now() - written < std::chrono::seconds(1)) return;
  written = clock::now();
  if (std::FILE* const file = std::fopen(progress.c_str(), "w")) {
    std::fprintf(file, "%llu", static_cast<unsigned long long>(executions));
    std::fclose(file);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    const std::string_view name = word.substr(0, word.find('='));
    const std::string_view value = word.substr(name.size() == word.size() ? 0 : name.size() + 1);
    if (name == "--progress") progress = value;
    if (name != "--target") continue;
    for (const fuzz::target& t : fuzz::targets()) {
      if (t.name == value) chosen = &t;
    }
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "Say --target=NAME, one of:");
  for (const fuzz::target& t : fuzz::targets()) std::fprintf(stderr, " %s", t.name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  count();
  fuzz::run(*chosen, {data, size});
  return 0;
}
