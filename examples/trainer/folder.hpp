// SPDX-License-Identifier: MIT
/// The folder of --out: one run at a time, and no earlier one is lost silently.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "options.hpp"

namespace trainer {

/// Keeps other runs out of a folder, until the process ends however it ends. Where the file system
/// knows no locks it keeps nobody out.
class folder_lock {
 public:
  folder_lock() = default;
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  /// What is not a folder is not locked.
  ///
  /// Throws  failure when another run has it.
  void take(const std::filesystem::path& folder);

 private:
  int descriptor_ = -1;
};

/// Names of the files that a run of any of the methods has left, sorted.
std::vector<std::string> files_of_runs(const std::filesystem::path& folder,
                                       std::span<const method_name> known);

/// Of the methods that are not run, those that have files there.
std::vector<std::string> other_methods(const std::filesystem::path& folder,
                                       std::span<const method_name> known,
                                       std::span<const std::string> run);

/// Throws  failure when there are files of a run and neither --resume nor --overwrite is given.
void check_no_earlier_run(const options& settings, std::span<const method_name> known);

}  // namespace trainer
