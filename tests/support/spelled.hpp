// SPDX-License-Identifier: MIT
/// Sets of nodes as the files in golden/ spell them.
#pragma once

#include <subfed/index_set.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace support {

/// The nodes; of more than 64 their number, the 64-bit FNV-1a of all and the first four.
inline std::string spelled(const subfed::index_set& s) {
  std::string all;
  std::string first;
  std::int64_t count = 0;
  for (const std::int64_t node : s) {
    const std::string text = (count == 0 ? "" : " ") + std::to_string(node);
    all += text;
    if (count < 4) first += text;
    ++count;
  }
  if (count <= 64) return all;
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : all) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char hexadecimal[17];
  std::snprintf(hexadecimal, sizeof hexadecimal, "%016llx", static_cast<unsigned long long>(hash));
  return std::to_string(count) + " nodes " + hexadecimal + " " + first;
}

}  // namespace support
