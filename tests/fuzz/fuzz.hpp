// SPDX-License-Identifier: MIT
/// What the fuzz targets share. A target defines fuzz::one_input(); it may throw subfed::error,
/// which is how wrong bytes are refused, and nothing else.
#pragma once

#include <subfed/adapt/byte_tensor.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace fuzz {

void one_input(std::span<const std::uint8_t> bytes);

inline void expect(bool holds) {
  if (!holds) std::abort();
}

/// Shape, type and bits.
template <class T>
bool same(const subfed::byte_tensor& a, const subfed::dense_tensor<T>& b) {
  return a.holds<T>() &&
         std::equal(a.extents().begin(), a.extents().end(), b.extents().begin(),
                    b.extents().end()) &&
         (a.size_bytes() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size_bytes())) == 0);
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
