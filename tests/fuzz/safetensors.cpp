// SPDX-License-Identifier: MIT
/// Any bytes as a safetensors file: they are refused with an error, or are tensors whose elements
/// can all be read, where they are numbers, and that are the same after they were written and read
/// again.
#include <fuzz/fuzz.hpp>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

const fuzz::registered safetensors("safetensors", [](fuzz::bytes bytes) {
  const subfed::safetensors_view file(bytes);
  for (const auto& entry : file) {
    const std::string& name = entry.name;
    const subfed::byte_tensor& tensor = entry.tensor;
    fuzz::expect(file[name].data() == tensor.data());
    const std::vector<std::byte> passed = subfed::write_safetensors({{name, tensor}});
    const subfed::safetensors_view on(passed);
    fuzz::expect(on[name].element_type() == tensor.element_type());
    fuzz::expect(on[name].size_bytes() == tensor.size_bytes());
    fuzz::expect(std::equal(tensor.data(), tensor.data() + tensor.size_bytes(), on[name].data()));
    if (!tensor.has_elements() || tensor.rank() > subfed::max_rank) continue;
    subfed::detail::with_format(tensor.format(), [&]<class T>() {
      const auto copy = subfed::aligned_copy<T>(tensor);
      const std::vector<std::byte> written =
          subfed::write_safetensors({subfed::named_view(name, copy)});
      const subfed::safetensors_view again(written);
      fuzz::expect(fuzz::same(again[name], copy));
    });
  }
});

}  // namespace
