// SPDX-License-Identifier: MIT
/// Files as memory: pages come and go with the system's cache, so that a file may be larger than
/// memory.
#pragma once

#include <common/files.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace tool {

/// A file that is only read. It must not get shorter while it is mapped. Of a .npz file it is the
/// safetensors file of the same tensors, in memory.
class mapped_file {
 public:
  /// Throws  failure that names the file and the reason when it cannot be read.
  explicit mapped_file(std::filesystem::path path);
  ~mapped_file();
  mapped_file(mapped_file&& from) noexcept
      : path_(std::move(from.path_)),
        in_memory_(std::move(from.in_memory_)),
        bytes_(std::exchange(from.bytes_, {})) {}
  mapped_file& operator=(mapped_file&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::vector<std::byte> in_memory_;  // of a .npz file
  std::span<std::byte> bytes_;
};

/// A safetensors file of a known size that appears, complete, with finish(). A path that ends in .npz
/// gets the .npz file of its tensors instead; until then they are in memory.
class output_file {
 public:
  /// Reserves the space on the disk.
  ///
  /// Throws  failure that names the file and the reason when it cannot be written.
  output_file(const std::filesystem::path& path, std::size_t size);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  /// All bytes as memory, for what is not written in order.
  std::span<std::byte> bytes();
  /// Writes some of them, without mapping any: new pages cost less so. From several threads at once.
  void write(std::size_t offset, std::span<const std::byte> from);
  void finish();

 private:
  common::unfinished_file file_;
  std::size_t size_;
  std::vector<std::byte> in_memory_;
  std::span<std::byte> mapped_;
};

}  // namespace tool
