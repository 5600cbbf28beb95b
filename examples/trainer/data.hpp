// SPDX-License-Identifier: MIT
/// Images and labels in the IDX format that MNIST and Fashion-MNIST come in, gzip'd or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trainer {

inline constexpr std::int64_t class_count = 10;

struct dataset {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // (count, rows, columns), row-major
  std::vector<std::uint8_t> labels;  // (count), each below class_count
};

struct data_split {
  dataset train;
  dataset test;
};

/// Reads one pair of files.
///
/// Throws  failure that names the file, what was expected and what was found: a file that is
///         missing, cut short, too long or damaged, a wrong magic number, counts that do not agree,
///         or a label that is not a class.
dataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

/// A number that changes when images or labels do, as text.
std::string checksum(const data_split& data);

/// Of bytes after those whose checksum is `sum`, 0 where there are none.
std::uint32_t checksum(std::uint32_t sum, const void* bytes, std::size_t size);

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte.gz from a folder.
///
/// Throws  failure as load_idx does; when a file is missing it also says how to get the data.
data_split load_fashion_mnist(const std::filesystem::path& folder);

}  // namespace trainer
