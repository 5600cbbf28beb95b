// SPDX-License-Identifier: MIT
/// Any DLPack structure: refused, or a view whose size and reach can be computed. Structures are
/// owned and released once, whatever happens.
#include <fuzz/fuzz.hpp>
#include <subfed/adapt/dlpack.hpp>
#include <subfed/scalar.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace {

// dlpack.h in short: the adaptor matches members.
struct device_type {
  int device_type;
  std::int32_t device_id;
};
struct data_type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct tensor {
  void* data;
  device_type device;
  std::int32_t ndim;
  data_type dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

alignas(64) std::array<std::uint8_t, 4096> storage;

const fuzz::registered dlpack("dlpack", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  tensor t{};
  t.data = in.below(8) == 0 ? nullptr : storage.data() + in.below(16);
  t.device = {in.below(8) == 0 ? static_cast<int>(in.number()) : 1, 0};
  t.ndim = in.below(16) == 0 ? static_cast<std::int32_t>(in.number())
                             : static_cast<std::int32_t>(in.below(9));
  const std::uint8_t kind = in.byte();
  t.dtype = {2, static_cast<std::uint8_t>(kind % 2 == 0 ? 32 : 16), 1};
  if (kind > 200) t.dtype = {in.byte(), in.byte(), static_cast<std::uint16_t>(in.byte())};
  std::vector<std::int64_t> shape(16), strides(16);
  for (std::int64_t& e : shape) e = in.below(3) == 0 ? in.number() : in.below(4);
  for (std::int64_t& s : strides) s = in.number();
  t.shape = in.below(16) == 0 ? nullptr : shape.data();
  t.strides = in.below(3) == 0 ? nullptr : strides.data();
  t.byte_offset = in.below(3) == 0 ? in.word() : static_cast<std::uint64_t>(in.below(64));
  const auto look = [&]<class T>(T) {
    const subfed::tensor_view<const T> view = subfed::view_traits<tensor>::view<const T>(t);
    fuzz::expect(view.size() >= 0 && view.rank() == t.ndim);
    if (view.size() == 0) return;
    const auto [low, high] = subfed::detail::offset_range(view);
    fuzz::expect(low <= high);
  };
  if (kind % 2 == 0) {
    look(float{});
  } else {
    look(subfed::half{});
  }
});

}  // namespace
