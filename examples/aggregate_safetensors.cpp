// SPDX-License-Identifier: MIT
/// aggregate_safetensors <server.safetensors> <folder> <out.safetensors>: averages the checkpoints of
/// a folder into the server's. The metadata says whose each is: client, round, capacity, weight.
/// make_checkpoints writes a small server and three updates to try it with.
#include <subfed/adapt/safetensors.hpp>
#include <subfed/subfed.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw subfed::error("The file " + path.string() + " cannot be read.");
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << bytes)) throw subfed::error("The file " + path.string() + " cannot be written.");
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
  std::list<std::string> files;  // keep the bytes that the views look at
  std::vector<subfed::update<float>> updates;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const subfed::safetensors_view file(files.emplace_back(read(entry.path())));
    std::map<std::string, std::string> said(file.metadata().begin(), file.metadata().end());
    const auto sub = subfed::draw(net, window,
                                  {.round = std::stoull(said["round"]),
                                   .client = std::stoull(said["client"]),
                                   .capacity = std::stod(said["capacity"])});
    updates.push_back({sub, file.tensors<float>(net), std::stod(said["weight"])});
  }
  const std::string old = read(server);
  const subfed::safetensors_view file(old);
  auto w = subfed::aligned_copy<float>(file["fc1.weight"]),
       b = subfed::aligned_copy<float>(file["fc1.bias"]);
  const auto report = subfed::average_cohort<float>(net, updates, {w, b});
  write(out, subfed::write_safetensors<std::string>({{"fc1.weight", w}, {"fc1.bias", b}}));
  std::printf("%lld updates, %lld parameters averaged, %lld held by nobody; wrote %s\n",
              static_cast<long long>(report.clients), static_cast<long long>(report.held),
              static_cast<long long>(report.unheld), out.c_str());
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() == 3) {
    aggregate(arguments[0], arguments[1], arguments[2]);
  } else {
    std::puts("Usage: aggregate_safetensors <server.safetensors> <folder> <out.safetensors>");
    return 2;
  }
} catch (const std::exception& wrong) {
  std::fprintf(stderr, "%s\n", wrong.what());
  return 1;
}
