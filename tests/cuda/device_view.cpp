// SPDX-License-Identifier: MIT
#include <subfed/cuda/device_view.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// As dlpack.h and LibTorch have them: no element is read here, so that memory of the host can stand
// in for that of a device.
namespace {

using subfed::tensor_view;
using subfed::cuda::device_view;

struct dl_device {
  int device_type;
  int device_id;
};
struct dl_type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct dl_tensor {
  void* data;
  dl_device device;
  int ndim;
  dl_type dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct managed {
  struct {
    std::uint32_t major;
    std::uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(managed* self);
  std::uint64_t flags;
  ::dl_tensor dl_tensor;
};

enum class memory_layout { Strided, Sparse };

struct torch_type {
  std::string text;
  std::string_view name() const { return text; }
  std::size_t itemsize() const { return 4; }
  template <class T>
  bool Match() const {
    return std::is_same_v<T, float> && text == "float";
  }
};

struct torch_stand_in {
  std::vector<std::int64_t> extents, steps;
  void* data = nullptr;
  bool on_cuda = true;
  bool grad = false;
  memory_layout in = memory_layout::Strided;
  torch_type type = {"float"};

  const std::vector<std::int64_t>& sizes() const { return extents; }
  const std::vector<std::int64_t>& strides() const { return steps; }
  std::int64_t dim() const { return static_cast<std::int64_t>(extents.size()); }
  torch_type dtype() const { return type; }
  bool defined() const { return data != nullptr; }
  bool is_cpu() const { return !on_cuda; }
  bool is_cuda() const { return on_cuda; }
  bool requires_grad() const { return grad; }
  bool is_signed() const { return true; }
  bool is_quantized() const { return false; }
  bool is_conj() const { return false; }
  bool is_neg() const { return false; }
  memory_layout layout() const { return in; }
  void* data_ptr() const { return data; }
};

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

float memory[24];
std::int64_t shape[2] = {2, 3};
std::int64_t strides[2] = {1, 2};

dl_tensor tensor_on(int device) { return {memory, {device, 0}, 2, {2, 32, 1}, shape, strides, 8}; }

}  // namespace

TEST_CASE("a DLPack tensor on a CUDA device or in managed memory is seen with its strides") {
  for (const int device : {2, 13}) {
    const dl_tensor t = tensor_on(device);
    const tensor_view<const float> view = device_view<const float>(t);
    CHECK(view.data_handle() == memory + 2);
    CHECK(view.extent(1) == 3);
    CHECK(view.stride(1) == 2);
  }
}

TEST_CASE("a DLPack tensor elsewhere, or of another type, is refused") {
  const dl_tensor host = tensor_on(1);
  CHECK(message_of([&] { device_view<float>(host); }) ==
        "subfed: the DLPack tensor is on the CPU, expected a CUDA device");
  const dl_tensor amd = tensor_on(10);
  CHECK(message_of([&] { device_view<float>(amd); }) ==
        "subfed: the DLPack tensor is on a ROCm device, expected a CUDA device");
  const dl_tensor cuda = tensor_on(2);
  CHECK(message_of([&] { device_view<double>(cuda); }) ==
        "subfed: the DLPack tensor has elements of type float, expected double");
}

TEST_CASE("managed DLPack tensors keep their version and read-only flag in force") {
  managed m{{1, 0}, nullptr, nullptr, 0, tensor_on(2)};
  CHECK(device_view<float>(m).data_handle() == memory + 2);
  m.flags = 1;
  CHECK(device_view<const float>(m).data_handle() == memory + 2);
  CHECK(message_of([&] { device_view<float>(m); }) ==
        "subfed: the DLPack tensor is a destination, but is read-only");
  m.version.major = 2;
  CHECK(message_of([&] { device_view<const float>(m); }) ==
        "subfed: the DLPack tensor has version 2, known is 1");
  m.version.major = 1;
  const subfed::dlpack_tensor<managed> owner(&m);
  CHECK(device_view<const float>(owner).data_handle() == memory + 2);
}

TEST_CASE("a torch tensor on a CUDA device is seen, and refused where it is not fit") {
  torch_stand_in t{{2, 3}, {3, 1}, memory};
  const auto view = device_view<float>(t);
  CHECK(view.data_handle() == memory);
  CHECK(view.stride(0) == 3);
  const std::vector<torch_stand_in> two{t, t};
  CHECK(subfed::cuda::device_views<float>(two).size() == 2);

  t.grad = true;
  CHECK(device_view<const float>(t).data_handle() == memory);
  CHECK(message_of([&] { device_view<float>(t); }) ==
        "subfed: the torch tensor is a destination, but requires gradients: pass its detach()");
  t.grad = false;
  t.in = memory_layout::Sparse;
  CHECK(message_of([&] { device_view<float>(t); }) ==
        "subfed: the torch tensor is not strided: it is sparse, quantised or in oneDNN's layout");
  t.in = memory_layout::Strided;
  t.on_cuda = false;
  CHECK(message_of([&] { device_view<float>(t); }) ==
        "subfed: the torch tensor is not on a CUDA device");
  t.data = nullptr;
  CHECK(message_of([&] { device_view<float>(t); }) == "subfed: the torch tensor is undefined");
}

TEST_CASE("host views refuse what is on a CUDA device, as before") {
  torch_stand_in t{{2, 3}, {3, 1}, memory};
  CHECK(message_of([&] { tensor_view<float> view(t); }) ==
        "subfed: the torch tensor is not on the CPU");
  dl_tensor d = tensor_on(2);
  CHECK(message_of([&] { tensor_view<float> view(d); }) ==
        "subfed: the DLPack tensor is on a CUDA device, which the CPU cannot read");
}
