// SPDX-License-Identifier: MIT
/// A folder that goes away with the test case.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

class temporary_folder {
 public:
  temporary_folder() {
    const std::string replaced(6, 'X');  // by mkdtemp
    std::string name = (std::filesystem::temp_directory_path() / ("subfed-" + replaced)).string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
