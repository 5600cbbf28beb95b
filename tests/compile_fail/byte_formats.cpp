// SPDX-License-Identifier: MIT
/// Bytes that would be gone before they are read, tensors that would be gone before they are
/// written, element types that a format does not have, and writing to what is only read.
// bad 1: (no matching|constraints not satisfied)
// bad 2: (no matching|constraints not satisfied)
// bad 3: (no matching|could not convert|constraints not satisfied)
// bad 4: subfed: npy has no code for bfloat16
// bad 5: subfed: the destination is const
// bad 6: subfed: the element type is known only at run time
#include <subfed/adapt/npy.hpp>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/slice.hpp>

#include <string>
#include <vector>

std::string body();

void use(const std::string& bytes, std::vector<float>& local,
         const std::vector<subfed::bfloat16>& brain) {
  const subfed::selection chosen{subfed::index_set::full(3)};
#if SUBFED_BAD == 1
  const subfed::byte_tensor array = subfed::npy_view(body());
#elif SUBFED_BAD == 2
  const subfed::safetensors_view file(body());
#elif SUBFED_BAD == 3
  const subfed::named_view view("w", std::vector<float>(3));
#elif SUBFED_BAD == 4
  const auto written = subfed::npy_bytes(brain);
#elif SUBFED_BAD == 5
  subfed::slice<float>(local, chosen, subfed::npy_view(bytes));
#elif SUBFED_BAD == 6
  subfed::slice(subfed::npy_view(bytes), chosen, subfed::npy_view(bytes));
#else
  subfed::slice(subfed::npy_view(bytes), chosen, local);
  const subfed::safetensors_view file(bytes);
  subfed::slice<float>(file["w"], chosen, local);
  const auto written = subfed::write_safetensors({{"w", local}, {"b", brain}});
  const auto array = subfed::npy_bytes(local);
#endif
}
