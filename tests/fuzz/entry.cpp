// SPDX-License-Identifier: MIT
/// The function that libFuzzer calls.
#include <fuzz/fuzz.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // At every alignment in turn, in a buffer that ends where the bytes end.
  const std::size_t shift = size % 8;
  std::vector<std::uint8_t> buffer(shift + size);
  std::copy_n(data, size, buffer.begin() + static_cast<std::ptrdiff_t>(shift));
  try {
    fuzz::one_input(std::span<const std::uint8_t>(buffer).subspan(shift));
  } catch (const subfed::error&) {
  }
  return 0;
}
