// SPDX-License-Identifier: MIT
/// Runs a fuzz target on the files of a folder and on what is made from them by small changes, for
/// compilers without libFuzzer: subfed_replay <target> <folder> [inputs]
#include <fuzz/fuzz.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  const auto which = std::find_if(
      fuzz::targets().begin(), fuzz::targets().end(),
      [&](const fuzz::target& t) { return argc > 2 && t.name == std::string_view(argv[1]); });
  if (which == fuzz::targets().end()) {
    std::fprintf(stderr, "subfed_replay <target> <folder> [inputs]; the targets are:");
    for (const fuzz::target& t : fuzz::targets()) std::fprintf(stderr, " %s", t.name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(argv[2]))
    paths.push_back(file.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<std::uint8_t>> corpus;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    corpus.emplace_back(bytes.begin(), bytes.end());
    fuzz::run(*which, corpus.back());
  }
  const std::int64_t more = argc > 3 ? std::strtoll(argv[3], nullptr, 10) : 0;
  support::seeded random(1);
  for (std::int64_t i = 0; i < more && !corpus.empty(); ++i) {
    auto bytes = corpus[random.next() % corpus.size()];
    for (std::int64_t changes = random.between(1, 6); changes > 0; --changes) {
      const auto value = static_cast<std::uint8_t>(random.next());
      const std::size_t at = bytes.empty() ? 0 : random.next() % bytes.size();
      const std::int64_t kind = random.between(0, 3);
      if (kind == 0 || bytes.empty()) {
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), value);
      } else if (kind == 1) {
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        bytes[at] = kind == 2 ? value : static_cast<std::uint8_t>(bytes[at] ^ (1u << value % 8));
      }
    }
    fuzz::run(*which, bytes);
  }
  std::printf("%zu files, %lld inputs made from them\n", corpus.size(),
              static_cast<long long>(more));
  return corpus.empty() ? 1 : 0;
}
