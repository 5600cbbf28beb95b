// SPDX-License-Identifier: MIT
/// Elements as files have them, on machines of either order of bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace support {

/// Whether elements of several bytes are read where they lie in a file.
inline constexpr bool reads_in_place = std::endian::native == std::endian::little;

/// The elements as a file has them: little-endian.
template <class T>
std::string file_bytes(const std::vector<T>& elements) {
  std::string out;
  for (const T& x : elements) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &x, sizeof(T));
    if (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
    out.append(bytes, sizeof(T));
  }
  return out;
}

}  // namespace support
