// SPDX-License-Identifier: MIT
/// aggregate_safetensors <server.safetensors> <folder> <out.safetensors>: averages the checkpoints
/// in a folder into the server's. Their metadata gives client, round, capacity and weight.
/// make_checkpoints writes a small server and three updates to try it with.
#include <subfed/adapt/safetensors.hpp>
#include <subfed/subfed.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/program.hpp"
#include "common/text.hpp"

namespace {

/// The metadata's value for a key.
std::string said(const subfed::safetensors_view& file, const char* key) {
  for (const auto& [name, text] : file.metadata()) {
    if (name == key) return text;
  }
  throw common::failure(std::string("The metadata lacks the ") + key + ".");
}
template <class T>
T number_said(const subfed::safetensors_view& file, const char* key) {
  const std::string text = said(file, key);
  if (const auto number = common::number<T>(text)) return *number;
  throw common::failure(std::string("The metadata gives the ") + key + " \"" + text +
                        "\", which is not a valid number.");
}

const subfed::rolling window;
subfed::model describe() {
  subfed::model net;
  const auto hidden = net.group("hidden", 4);
  subfed::linear(net, "fc1", {.in = 2, .out = hidden});
  return net;
}

void aggregate(const std::string& server, const std::string& folder, const std::string& out) {
  const subfed::model net = describe();
  std::list<std::string> files;  // own the bytes that the views read
  std::vector<subfed::update<float>> updates;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(common::read_file(entry.path()));
    updates.push_back(common::about_file(entry.path(), [&]() -> subfed::update<float> {
      const subfed::safetensors_view file(files.back());
      const auto sub = subfed::draw(net, window,
                                    {.round = number_said<std::uint64_t>(file, "round"),
                                     .client = number_said<std::uint64_t>(file, "client"),
                                     .capacity = common::parse_capacity(said(file, "capacity"))});
      return {sub, file.tensors<float>(net), number_said<double>(file, "weight")};
    }));
  }
  const std::string old = common::read_file(server);
  auto [w, b] = common::about_file(server, [&] {
    const subfed::safetensors_view file(old);
    return std::pair(subfed::aligned_copy<float>(file["fc1.weight"]),
                     subfed::aligned_copy<float>(file["fc1.bias"]));
  });
  const auto report = subfed::average_cohort<float>(net, updates, {w, b});
  common::write_file(out,
                     subfed::write_safetensors<std::string>({{"fc1.weight", w}, {"fc1.bias", b}}));
  std::printf("%lld updates, %lld parameters averaged, %lld held by nobody; wrote %s\n",
              static_cast<long long>(report.clients), static_cast<long long>(report.held),
              static_cast<long long>(report.unheld), out.c_str());
}

}  // namespace

int main(int count, char** words) {
  return common::run_program("aggregate_safetensors", [&] {
    if (count != 4) {
      throw common::failure("The arguments are <server.safetensors> <folder> <out.safetensors>.");
    }
    aggregate(words[1], words[2], words[3]);
  });
}
