// SPDX-License-Identifier: MIT
#include "folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "failure.hpp"

namespace trainer {
namespace {

constexpr const char* endings[] = {".csv",      "-nodes.csv",  "-clients.csv", "-capacities.csv",
                                   "-keep.csv", ".safetensors"};

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

}  // namespace

folder_lock::~folder_lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void folder_lock::take(const std::filesystem::path& folder) {
  if (descriptor_ >= 0) return;
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  if (::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(opened);
    throw failure(
        fmt::format("Another run is using the folder {}; --out names another.", folder.string()));
  }
  descriptor_ = opened;
}

std::vector<std::string> files_of_runs(const std::filesystem::path& folder,
                                       std::span<const method_name> known) {
  std::vector<std::string> out = {"config.json", "costs.csv", "picture.gp", "picture.svg",
                                  "summary.csv"};
  for (const method_name& m : known) {
    for (const char* ending : endings) out.push_back(m.name + ending);
  }
  std::erase_if(out, [&](const std::string& name) { return !is_there(folder / name); });
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> other_methods(const std::filesystem::path& folder,
                                       std::span<const method_name> known,
                                       std::span<const std::string> run) {
  std::vector<std::string> out;
  for (const method_name& m : known) {
    if (std::find(run.begin(), run.end(), m.name) != run.end()) continue;
    const bool has_files =
        std::any_of(std::begin(endings), std::end(endings),
                    [&](const char* ending) { return is_there(folder / (m.name + ending)); });
    if (has_files) out.push_back(m.name);
  }
  return out;
}

void check_no_earlier_run(const options& settings, std::span<const method_name> known) {
  if (settings.resume || settings.overwrite) return;
  const std::vector<std::string> files = files_of_runs(settings.out, known);
  if (files.empty()) return;
  throw failure(fmt::format(
      "The folder {} holds an earlier run ({}{}): --resume continues it, --overwrite removes it "
      "and starts over, and --out names another folder.",
      settings.out, files.front(), files.size() == 1 ? "" : ", .."));
}

}  // namespace trainer
