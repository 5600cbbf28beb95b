// SPDX-License-Identifier: MIT
/// make_checkpoints <folder>: a small server model and three clients' updates as safetensors files,
/// for aggregate_safetensors.
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/subfed.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "common/files.hpp"
#include "common/program.hpp"

namespace {

void make(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "updates");
  std::vector<float> w(8, 0), b(4, 0);
  common::write_file(
      folder / "server.safetensors",
      subfed::write_safetensors<std::string>(
          {{"fc1.weight", subfed::tensor_view<float>(w.data(), {4, 2})}, {"fc1.bias", b}}));
  for (unsigned c = 0; c < 3; ++c) {
    std::vector<float> cw(4, 1.0f + static_cast<float>(c)), cb(2, 1);
    common::write_file(
        folder / "updates" / ("client" + std::to_string(c) + ".safetensors"),
        subfed::write_safetensors<std::string>(
            {{"fc1.weight", subfed::tensor_view<float>(cw.data(), {2, 2})}, {"fc1.bias", cb}},
            {{"client", std::to_string(c)}, {"round", "1"}, {"capacity", "0.5"}, {"weight", "2"}}));
  }
}

}  // namespace

int main(int count, char** words) {
  return common::run_program("make_checkpoints", [&] {
    if (count != 2) throw common::failure("The argument is <folder>.");
    make(words[1]);
  });
}
