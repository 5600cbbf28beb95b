// SPDX-License-Identifier: MIT
/// make_checkpoints <folder>: a small server model and three clients' updates as safetensors files,
/// for aggregate_safetensors.
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/subfed.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << bytes)) throw subfed::error("The file " + path.string() + " cannot be written.");
}

void make(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "updates");
  std::vector<float> w(8, 0), b(4, 0);
  write(folder / "server.safetensors",
        subfed::write_safetensors<std::string>(
            {{"fc1.weight", subfed::tensor_view<float>(w.data(), {4, 2})}, {"fc1.bias", b}}));
  for (unsigned c = 0; c < 3; ++c) {
    std::vector<float> cw(4, 1.0f + static_cast<float>(c)), cb(2, 1);
    write(
        folder / "updates" / ("client" + std::to_string(c) + ".safetensors"),
        subfed::write_safetensors<std::string>(
            {{"fc1.weight", subfed::tensor_view<float>(cw.data(), {2, 2})}, {"fc1.bias", cb}},
            {{"client", std::to_string(c)}, {"round", "1"}, {"capacity", "0.5"}, {"weight", "2"}}));
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) {
    std::puts("Usage: make_checkpoints <folder>");
    return 2;
  }
  make(words[1]);
} catch (const std::exception& wrong) {
  std::fprintf(stderr, "%s\n", wrong.what());
  return 1;
}
