// SPDX-License-Identifier: MIT
/// Files in the format of Fashion-MNIST, of any size, for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using bytes = std::vector<std::uint8_t>;

inline void append_word(bytes& out, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(std::uint8_t(word >> shift & 0xFF));
}

inline bytes image_file(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  bytes out;
  for (const std::uint32_t word : {0x803u, count, rows, columns}) append_word(out, word);
  for (std::uint32_t i = 0; i < count * rows * columns; ++i) {
    out.push_back(std::uint8_t(i * 2654435761u >> 24));  // does not compress away
  }
  return out;
}

inline bytes label_file(const bytes& labels) {
  bytes out;
  append_word(out, 0x801);
  append_word(out, static_cast<std::uint32_t>(labels.size()));
  out.insert(out.end(), labels.begin(), labels.end());
  return out;
}

inline void write_packed(const std::filesystem::path& path, const bytes& content) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}
inline void write_plain(const std::filesystem::path& path, const bytes& content) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint8_t byte : content) file.put(static_cast<char>(byte));
}
inline bytes read_plain(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The four files, each label as often as the others.
inline void write_fashion_mnist(const std::filesystem::path& folder, std::uint32_t train,
                                std::uint32_t test) {
  std::filesystem::create_directories(folder);
  for (const auto& [prefix, count] : {std::pair<std::string, std::uint32_t>{"train", train},
                                      std::pair<std::string, std::uint32_t>{"t10k", test}}) {
    bytes labels;
    for (std::uint32_t i = 0; i < count; ++i) labels.push_back(std::uint8_t(i % 10));
    write_packed(folder / (prefix + "-images-idx3-ubyte.gz"), image_file(count, 28, 28));
    write_packed(folder / (prefix + "-labels-idx1-ubyte.gz"), label_file(labels));
  }
}
