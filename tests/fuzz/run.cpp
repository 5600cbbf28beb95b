// SPDX-License-Identifier: MIT
#include <fuzz/fuzz.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

void fuzz::run(const target& which, bytes in) {
  // At every alignment in turn, in a buffer that ends where the bytes end.
  const std::size_t shift = in.size() % 8;
  std::vector<std::uint8_t> buffer(shift + in.size());
  std::copy_n(in.begin(), in.size(), buffer.begin() + static_cast<std::ptrdiff_t>(shift));
  try {
    which.run(bytes(buffer).subspan(shift));
  } catch (const subfed::error&) {
  }
}
