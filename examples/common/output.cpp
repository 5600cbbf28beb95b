// SPDX-License-Identifier: MIT
#include "output.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>

#include "failure.hpp"

extern char** environ;

namespace common {
namespace {

/// Runs a program found in PATH and waits for it; false when there is none or it fails.
bool run_program(const std::string& program, const std::string& argument) {
  std::string name = program, first = argument;
  char* arguments[] = {name.data(), first.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, name.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path unfinished = path;
  unfinished += ".unfinished";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw failure(fmt::format("{} cannot be written.", path.string()));
  }
}

void prepare_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) {
    try {
      const auto probe = folder / "probe";
      write_file(probe, "");
      std::filesystem::remove(probe, error);
      return;
    } catch (const failure&) {
    }
  }
  throw failure(fmt::format("Files cannot be written to the folder {}; --out takes another.",
                            folder.string()));
}

std::string quoted(std::string text) {
  for (std::size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 2)) {
    text.insert(at, 1, '\'');
  }
  return "'" + text + "'";
}

std::filesystem::path draw(const std::string& script, const std::filesystem::path& picture) {
  std::filesystem::path file = picture;
  file.replace_extension(".gp");
  std::error_code ignored;
  std::filesystem::remove(picture, ignored);  // an older one must not pass for this run's
  write_file(file, script);
  return run_program("gnuplot", file.string()) ? picture : std::filesystem::path();
}

}  // namespace common
