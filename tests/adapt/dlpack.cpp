// SPDX-License-Identifier: MIT
#include <subfed/adapt/dlpack.hpp>

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/slice.hpp>
#include <subfed/untyped_view.hpp>
#include <support/checks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#else
// As dlpack.h of version 0.6 has them.
enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2 };
struct DLDevice {
  DLDeviceType device_type;
  int device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
#endif

namespace {

using conformance::layout;
using conformance::strided;
using subfed::dlpack_tensor;
using subfed::export_dlpack;
using subfed::index_set;
using subfed::tensor_view;
using support::message_of;

/// As dlpack.h of version 1 has it.
struct versioned {
  struct {
    std::uint32_t major;
    std::uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(versioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

constexpr DLDataType f32{2, 32, 1};

/// DLTensors of a view, with an offset in bytes.
struct tensors {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 19;
  static bool fits(const layout&) { return true; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    layout l = memory.where();
    const auto rank = static_cast<int>(l.extents.size());
    DLTensor tensor{memory.buffer().data(),
                    {kDLCPU, 0},
                    rank,
                    f32,
                    nullptr,
                    nullptr,
                    static_cast<std::uint64_t>(l.origin) * sizeof(float)};
    if (rank > 0) {
      tensor.shape = l.extents.data();
      if (!conformance::is_row_major(l)) tensor.strides = l.strides.data();
    }
    f(tensor);
  }
};

/// Views that went through an exported tensor, as to Python and back.
template <class Managed>
struct round_trips {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 19;
  static bool fits(const layout&) { return true; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const auto tensor = export_dlpack<Managed>(memory.view(), 0);
    f(tensor);
  }
};

/// The data and shapes of a report against a producer of DLPack tensors.
struct producer {
  std::array<float, 8> data{99, 98, 0, 1, 2, 3, 4, 5};
  std::array<std::int64_t, 2> shape{2, 3};
  std::array<std::int64_t, 2> strides{1, 2};
  int deleted = 0;

  DLTensor tensor() { return {data.data(), {kDLCPU, 0}, 2, f32, shape.data(), nullptr, 8}; }
  DLManagedTensor managed() {
    return {tensor(), this,
            [](DLManagedTensor* self) { ++static_cast<producer*>(self->manager_ctx)->deleted; }};
  }
  versioned managed_of(std::uint32_t major, std::uint64_t flags = 0) {
    return {{major, 0},
            this,
            [](versioned* self) { ++static_cast<producer*>(self->manager_ctx)->deleted; },
            flags,
            tensor()};
  }
};

std::string refusal(const DLTensor& tensor) {
  return message_of([&] { tensor_view<const float> view(tensor); });
}

}  // namespace

TEST_CASE("DLPack tensors conform") {
  CHECK(conformance::failures<tensors>() == "");
  CHECK(conformance::failures<round_trips<DLManagedTensor>>() == "");
  CHECK(conformance::failures<round_trips<versioned>>() == "");
}

TEST_CASE("no strides mean row-major; a byte offset is one in bytes") {
  producer from;
  DLTensor tensor = from.tensor();
  const tensor_view<const float> rows(tensor);
  CHECK(rows(0, 0) == 0);
  CHECK(rows(1, 2) == 5);
  float local[2] = {};
  subfed::slice<float>(tensor, {index_set(2, {1}), index_set(3, {2, 0})},
                       tensor_view<float>(local, {1, 2}));
  CHECK(local[0] == 5);
  CHECK(local[1] == 3);

  tensor.strides = from.strides.data();
  const tensor_view<const float> columns(tensor);
  CHECK(columns(1, 2) == 5);
  CHECK(columns(0, 2) == 4);
  CHECK(columns(1, 0) == 1);
}

TEST_CASE("rank 0 may have neither shape nor strides") {
  producer from;
  DLTensor tensor = from.tensor();
  tensor.ndim = 0;
  tensor.shape = nullptr;
  tensor.byte_offset = 4;
  CHECK(tensor_view<const float>(tensor)() == 98);
}

TEST_CASE("an empty tensor may have no data") {
  producer from;
  DLTensor tensor = from.tensor();
  from.shape[1] = 0;
  tensor.data = nullptr;
  CHECK(tensor_view<const float>(tensor).size() == 0);
  CHECK(tensor_view<const float>(tensor).extent(0) == 2);
  from.shape[1] = 1;
  CHECK(refusal(tensor) == "subfed: the DLPack tensor has no data");
}

TEST_CASE("what is not as a view needs it is refused with the reason") {
  producer from;
  const auto with = [&](auto&& change) {
    DLTensor tensor = from.tensor();
    change(tensor);
    return refusal(tensor);
  };
  CHECK(
      with([](DLTensor& t) { t.byte_offset = 6; }) ==
      "subfed: the DLPack tensor has the byte offset 6, which is not a multiple of the element's 4 "
      "bytes");
  CHECK(with([](DLTensor& t) { t.data = static_cast<char*>(t.data) + 2; }) ==
        "subfed: the DLPack tensor is at an address that is not a multiple of 4: copy it first");
  CHECK(with([](DLTensor& t) { t.dtype.lanes = 2; }) ==
        "subfed: the DLPack tensor has elements of 2 lanes, expected 1");
  CHECK(with([](DLTensor& t) {
          t.dtype = {0, 64, 1};
        }) == "subfed: the DLPack tensor has elements of type int64, expected float");
  CHECK(with([](DLTensor& t) {
          t.dtype = {4, 16, 1};
        }) == "subfed: the DLPack tensor has elements of type bfloat16, expected float");
  CHECK(with([](DLTensor& t) {
          t.dtype = {5, 64, 1};
        }) == "subfed: the DLPack tensor has complex elements");
  CHECK(with([](DLTensor& t) {
          t.dtype = {200, 8, 1};
        }) == "subfed: the DLPack tensor has elements of type another type, expected float");
  CHECK(with([](DLTensor& t) { t.device.device_type = kDLCUDA; }) ==
        "subfed: the DLPack tensor is on a CUDA device, which the CPU cannot read");
  CHECK(with([](DLTensor& t) { t.ndim = -1; }) ==
        "subfed: the DLPack tensor has the rank -1, expected 0 to 8");
  CHECK(with([](DLTensor& t) { t.ndim = 9; }) ==
        "subfed: the DLPack tensor has the rank 9, expected 0 to 8");
  CHECK(with([](DLTensor& t) { t.shape = nullptr; }) == "subfed: the DLPack tensor has no shape");
  from.shape[0] = -2;
  CHECK(with([](DLTensor&) {}) == "subfed: tensor_view: a negative extent in shape (-2, 3)");
  from.shape[0] = std::int64_t{1} << 62;
  CHECK(with([](DLTensor&) {}).find("more than 2^63 - 1 elements") != std::string::npos);
}

TEST_CASE("host memory is read whoever allocated it") {
  producer from;
  DLTensor tensor = from.tensor();
  for (const int device : {1, 3, 11, 13}) {
    tensor.device.device_type = static_cast<DLDeviceType>(device);
    CHECK(tensor_view<const float>(tensor)(1, 2) == 5);
  }
  tensor.device.device_type = static_cast<DLDeviceType>(10);
  CHECK(refusal(tensor) ==
        "subfed: the DLPack tensor is on a ROCm device, which the CPU cannot read");
}

TEST_CASE("a tensor that was taken over is deleted exactly once") {
  producer from;
  DLManagedTensor managed = from.managed();
  {
    dlpack_tensor<DLManagedTensor> owner(&managed);
    CHECK(tensor_view<const float>(owner)(1, 1) == 4);
    const dlpack_tensor<DLManagedTensor> moved = std::move(owner);
    CHECK(tensor_view<const float>(moved)(1, 1) == 4);
    CHECK(from.deleted == 0);
  }
  CHECK(from.deleted == 1);

  // Also where a check throws.
  CHECK(message_of([&] {
          const dlpack_tensor<DLManagedTensor> owner(&managed);
          const tensor_view<const double> view(owner);
        }) == "subfed: the DLPack tensor has elements of type float, expected double");
  CHECK(from.deleted == 2);

  CHECK(dlpack_tensor<DLManagedTensor>(&managed).get().manager_ctx == &from);
  CHECK(from.deleted == 3);
  CHECK(dlpack_tensor<DLManagedTensor>(&managed).release() == &managed);
  CHECK(from.deleted == 3);

  managed.deleter = nullptr;  // DLPack allows that
  { const dlpack_tensor<DLManagedTensor> owner(&managed); }
  CHECK(message_of([] { dlpack_tensor<DLManagedTensor> owner(nullptr); }) ==
        "subfed: the DLPack tensor is null");
}

TEST_CASE("a DLPack tensor is a view of whatever type it has") {
  producer from;
  DLTensor tensor = from.tensor();
  CHECK(tensor_view<void>(tensor).as<float>()(1, 2) == 5);
  DLManagedTensor managed = from.managed();
  CHECK(tensor_view<const void>(managed).element_name() == "float");
  managed.dl_tensor.dtype.lanes = 4;
  const dlpack_tensor<DLManagedTensor> owner(&managed);
  CHECK(message_of([&] { tensor_view<const void> view(owner); }) ==
        "subfed: the DLPack tensor has elements of 4 lanes, expected 1");
}

TEST_CASE("a managed tensor that somebody else deletes can be seen") {
  producer from;
  const DLManagedTensor managed = from.managed();
  CHECK(tensor_view<const float>(managed)(0, 2) == 2);
  CHECK(from.deleted == 0);
}

TEST_CASE("of another major version only the deleter is called") {
  producer from;
  versioned two = from.managed_of(2);
  two.dl_tensor.data = nullptr;
  const std::string message = "subfed: the DLPack tensor has version 2, known is 1";
  CHECK(message_of([&] { dlpack_tensor<versioned> owner(&two); }) == message);
  CHECK(from.deleted == 1);
  CHECK(message_of([&] { tensor_view<const float> view(two); }) == message);
  CHECK(from.deleted == 1);
}

TEST_CASE("a read-only tensor is read, and not written to") {
  producer from;
  versioned constant = from.managed_of(1, 1);
  versioned variable = from.managed_of(1, 2);
  const dlpack_tensor<versioned> owner(&constant);
  CHECK(tensor_view<const float>(owner)(1, 2) == 5);
  CHECK(tensor_view<float>(variable)(1, 2) == 5);
  const float local[] = {7, 8};
  CHECK(message_of([&] {
          subfed::scatter<float>(tensor_view<const float>(local, {1, 2}),
                                 {index_set(2, {1}), index_set(3, {2, 0})}, owner);
        }) == "subfed: the DLPack tensor is a destination, but is read-only");
  CHECK(from.data == std::array<float, 8>{99, 98, 0, 1, 2, 3, 4, 5});
}

TEST_CASE("an exported tensor keeps its owner until it is deleted") {
  auto owner = std::make_shared<std::vector<float>>(6);
  const std::weak_ptr<std::vector<float>> watch = owner;
  tensor_view<float> view(owner->data(), {3, 2});
  auto exported = export_dlpack<DLManagedTensor>(view, std::move(owner));
  DLManagedTensor* const raw = std::move(exported).release();
  CHECK(raw->dl_tensor.ndim == 2);
  CHECK(raw->dl_tensor.shape[0] == 3);
  CHECK(raw->dl_tensor.strides[0] == 2);
  CHECK(raw->dl_tensor.data == view.data_handle());
  CHECK(raw->dl_tensor.device.device_type == kDLCPU);
  CHECK(raw->dl_tensor.dtype.code == 2);
  CHECK(raw->dl_tensor.dtype.bits == 32);
  CHECK(raw->dl_tensor.dtype.lanes == 1);
  CHECK_FALSE(watch.expired());
  raw->deleter(raw);
  CHECK(watch.expired());

  const double constant = 3;
  const auto read_only = export_dlpack<versioned>(tensor_view<const double>(&constant, {}), 0);
  CHECK(read_only.get().version.major == 1);
  CHECK(read_only.get().flags == 1);
  CHECK(tensor_view<const double>(read_only)() == 3);
}

TEST_CASE("each element type has its code") {
  const auto round_trip = [&]<class T>(T x, int code) {
    const auto tensor = export_dlpack<versioned>(tensor_view<const T>(&x, {}), 0);
    CHECK(static_cast<int>(tensor.get().dl_tensor.dtype.code) == code);
    CHECK(static_cast<std::size_t>(tensor.get().dl_tensor.dtype.bits) == 8 * sizeof(T));
    CHECK(subfed::view_traits<dlpack_tensor<versioned>>::view<const T>(tensor)() == x);
  };
  round_trip(std::int8_t{-3}, 0);
  round_trip(std::int64_t{9007199254740993}, 0);
  round_trip(std::uint16_t{60000}, 1);
  round_trip(subfed::half(1.5), 2);
  round_trip(0.1, 2);
  round_trip(subfed::bfloat16(1.5), 4);
  round_trip(true, 6);
}

TEST_CASE("hostile offsets, shapes and strides are refused before a byte is read") {
  float x = 0;
  std::int64_t shape[2]{2, 2};
  std::int64_t strides[2]{2, 1};
  DLTensor t{};
  t.data = &x;
  t.device.device_type = kDLCPU;
  t.ndim = 2;
  t.dtype = {2, 32, 1};
  t.shape = shape;
  t.strides = strides;
  const auto refusal = [&] { return message_of([&] { tensor_view<const void>{t}; }); };
  CHECK(refusal() == "nothing was thrown");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  for (const std::uint64_t offset : {std::uint64_t{1} << 63, 0xFFFFFFFFFFFFFFF8u}) {
    t.byte_offset = offset;
    CHECK(refusal() == "subfed: the DLPack tensor has the byte offset " + std::to_string(offset) +
                           ", which leads to no address");
  }
  t.byte_offset = 0;
  for (const std::int64_t stride : {most, least, most / 2, most / 4, -(most / 4)}) {
    strides[0] = stride;
    CHECK(refusal().find(" reach ") != std::string::npos);
  }
  strides[0] = -(std::int64_t{1} << 60);
  CHECK(refusal().find("reach elements that have no address") != std::string::npos);
  t.strides = nullptr;
  for (const std::int64_t extent : {most, most / 2, std::int64_t{1} << 61}) {
    shape[0] = extent;
    CHECK(refusal().find("has more than 2^63 - 1 ") != std::string::npos);
  }
  for (const std::int64_t extent : {std::int64_t{-1}, least}) {
    shape[0] = extent;
    CHECK(refusal().find("a negative extent") != std::string::npos);
  }
}
