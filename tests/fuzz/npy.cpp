// SPDX-License-Identifier: MIT
/// Any bytes as a .npy file: they are refused with an error, or are an array whose elements can all
/// be read and that is the same after it was written and read again.
#include <fuzz/fuzz.hpp>
#include <subfed/adapt/npy.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

const fuzz::registered npy("npy", [](fuzz::bytes bytes) {
  const subfed::byte_tensor array = subfed::npy_view(bytes);
  subfed::detail::with_format(array.format(), [&]<class T>() {
    const auto copy = subfed::aligned_copy<T>(array);
    if constexpr (subfed::format_of<T>().kind != subfed::number_kind::brain) {
      const std::vector<std::byte> written = subfed::npy_bytes(copy);
      const subfed::byte_tensor again = subfed::npy_view(written);
      fuzz::expect(fuzz::same(again, copy));
    }
  });
});

}  // namespace
