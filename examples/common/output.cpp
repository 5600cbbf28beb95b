// SPDX-License-Identifier: MIT
#include "output.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <system_error>

extern char** environ;

namespace common {
namespace {

/// Runs a program found in PATH and waits for it; false when there is none or it fails.
bool run(const std::string& program, const std::string& argument) {
  std::string name = program, first = argument;
  char* arguments[] = {name.data(), first.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, name.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// gnuplot does not report a full disk.
bool is_whole(const std::filesystem::path& picture) {
  if (!std::filesystem::exists(picture)) return false;
  std::string text = read_file(picture);
  while (text.ends_with('\n')) text.pop_back();
  return text.ends_with("</svg>");
}

}  // namespace

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
  if (run("gnuplot", file.string()) && is_whole(picture)) return picture;
  std::filesystem::remove(picture, ignored);
  return {};
}

}  // namespace common
