// SPDX-License-Identifier: MIT
/// The functions that libFuzzer calls: subfed_fuzz --target=npy [folder..] [-runs=..]
#include <fuzz/fuzz.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {
const fuzz::target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(option)) continue;
    for (const fuzz::target& t : fuzz::targets()) {
      if (t.name == word.substr(option.size())) chosen = &t;
    }
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "Say --target=NAME, one of:");
  for (const fuzz::target& t : fuzz::targets()) std::fprintf(stderr, " %s", t.name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::run(*chosen, {data, size});
  return 0;
}
