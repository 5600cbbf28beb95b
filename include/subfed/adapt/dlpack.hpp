// SPDX-License-Identifier: MIT
/// DLPack tensors (NumPy, PyTorch, CuPy, JAX) as tensor views, and views as DLPack tensors. Does
/// not include dlpack.h: the program's own, of version 0.6 or 1, is matched by its members.
#pragma once

#include <subfed/detail/element_format.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// DLTensor.
template <class D>
concept dlpack_struct = requires(const D& t) {
  { t.data } -> std::convertible_to<const void*>;
  { t.ndim } -> std::convertible_to<int>;
  { *t.shape } -> std::convertible_to<std::int64_t>;
  { *t.strides } -> std::convertible_to<std::int64_t>;
  { t.byte_offset } -> std::convertible_to<std::uint64_t>;
  { t.dtype.code } -> std::convertible_to<int>;
  { t.dtype.bits } -> std::convertible_to<int>;
  { t.dtype.lanes } -> std::convertible_to<int>;
  static_cast<int>(t.device.device_type);
};

/// DLManagedTensor or DLManagedTensorVersioned.
template <class M>
concept dlpack_managed = requires(M& m) {
  requires dlpack_struct<std::remove_cvref_t<decltype(m.dl_tensor)>>;
  m.deleter(&m);
  m.manager_ctx;
};

template <class M>
concept dlpack_versioned = dlpack_managed<M> && requires(const M& m) {
  { m.version.major } -> std::convertible_to<std::uint32_t>;
  { m.flags } -> std::convertible_to<std::uint64_t>;
};

inline constexpr std::uint32_t dlpack_major = 1;
inline constexpr std::uint64_t dlpack_read_only = 1;

[[noreturn]] inline void refuse_dlpack(const std::string& why) {
  fail("subfed: the DLPack tensor " + why);
}

/// The numbers and names of dlpack.h.
inline std::string dlpack_device_text(int device) {
  switch (device) {
    case 1:
      return "the CPU";
    case 2:
      return "a CUDA device";
    case 3:
      return "pinned CUDA host memory";
    case 7:
      return "a Vulkan device";
    case 8:
      return "a Metal device";
    case 10:
      return "a ROCm device";
    case 11:
      return "pinned ROCm host memory";
    case 13:
      return "CUDA managed memory";
    case 14:
      return "a oneAPI device";
    default:
      return "device type " + std::to_string(device);
  }
}
constexpr bool dlpack_host_reads(int device) noexcept {
  return device == 1 || device == 3 || device == 11 || device == 13;
}

inline element_format dlpack_format(int code, int bits) noexcept {
  constexpr number_kind kinds[] = {number_kind::signed_integer, number_kind::unsigned_integer,
                                   number_kind::floating,       number_kind::other,
                                   number_kind::brain,          number_kind::other,
                                   number_kind::boolean};
  return {code >= 0 && code < 7 ? kinds[code] : number_kind::other, bits};
}
constexpr int dlpack_code(number_kind kind) noexcept {
  return kind == number_kind::signed_integer     ? 0
         : kind == number_kind::unsigned_integer ? 1
         : kind == number_kind::floating         ? 2
         : kind == number_kind::brain            ? 4
                                                 : 6;
}

template <dlpack_struct D>
element_format format_of_dlpack(const D& t) {
  if (t.dtype.lanes != 1) {
    refuse_dlpack("has elements of " + std::to_string(t.dtype.lanes) + " lanes, expected 1");
  }
  if (t.dtype.code == 5) refuse_dlpack("has complex elements");
  return dlpack_format(t.dtype.code, t.dtype.bits);
}

/// The elements, wherever they are.
template <class T, dlpack_struct D>
tensor_view<T> dlpack_elements(const D& t) {
  using element = std::remove_const_t<T>;
  check_format<element>("the DLPack tensor", format_of_dlpack(t));
  if (t.ndim < 0 || t.ndim > max_rank) {
    refuse_dlpack("has the rank " + std::to_string(t.ndim) + ", expected 0 to 8");
  }
  if (t.ndim > 0 && t.shape == nullptr) refuse_dlpack("has no shape");
  const auto rank = static_cast<std::size_t>(t.ndim);
  const std::vector<std::int64_t> extents(t.shape, t.shape + rank);  // null + 0 is null
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();

  T* data = nullptr;
  if (!empty) {
    if (t.data == nullptr) refuse_dlpack("has no data");
    if (t.byte_offset % sizeof(element) != 0) {
      refuse_dlpack("has the byte offset " + std::to_string(t.byte_offset) +
                    ", which is not a multiple of the element's " +
                    std::to_string(sizeof(element)) + " bytes");
    }
    // The address is computed in the signed type of pointers' differences.
    const std::uint64_t from = reinterpret_cast<std::uintptr_t>(static_cast<const void*>(t.data));
    if (t.byte_offset > static_cast<std::uint64_t>(PTRDIFF_MAX) ||
        t.byte_offset > UINTPTR_MAX - from) {
      refuse_dlpack("has the byte offset " + std::to_string(t.byte_offset) +
                    ", which leads to no address");
    }
    auto* const address =
        static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(t.data))) +
        static_cast<std::ptrdiff_t>(t.byte_offset);
    if (!is_aligned<element>(address)) {
      refuse_dlpack("is at an address that is not a multiple of " +
                    std::to_string(alignof(element)) + ": copy it first");
    }
    data = reinterpret_cast<T*>(address);
  }
  if (t.strides == nullptr) return {data, extents};  // row-major
  return {data, std::span<const std::int64_t>(extents),
          std::span<const std::int64_t>(std::vector<std::int64_t>(t.strides, t.strides + rank))};
}

template <class T, dlpack_struct D>
tensor_view<T> view_of_dlpack(const D& t) {
  const int device = static_cast<int>(t.device.device_type);
  if (!dlpack_host_reads(device)) {
    refuse_dlpack("is on " + dlpack_device_text(device) + ", which the CPU cannot read");
  }
  return dlpack_elements<T>(t);
}

/// With another major version nothing but the deleter may be used.
template <dlpack_managed M>
void check_dlpack_version(const M& m) {
  if constexpr (dlpack_versioned<M>) {
    if (m.version.major != dlpack_major) {
      refuse_dlpack("has version " + std::to_string(m.version.major) + ", known is 1");
    }
  }
}

template <dlpack_managed M>
element_format format_of_managed(const M& m) {
  check_dlpack_version(m);
  return format_of_dlpack(m.dl_tensor);
}

/// The tensor may be viewed as T.
template <class T, dlpack_managed M>
void check_managed(const M& m) {
  check_dlpack_version(m);
  if constexpr (dlpack_versioned<M> && !std::is_const_v<T>) {
    if ((m.flags & dlpack_read_only) != 0) {
      refuse_dlpack("is a destination, but is read-only");
    }
  }
}

template <class T, dlpack_managed M>
tensor_view<T> view_of_managed(const M& m) {
  check_managed<T>(m);
  return view_of_dlpack<T>(m.dl_tensor);
}

}  // namespace detail

/// DLTensor: the element type is known only at run time, so name it: slice<float>(*tensor, ..).
/// DLTensor does not say whether its elements may be written.
///
/// Throws  error for memory that the CPU cannot read, another element type than the requested one,
///         lanes, a byte offset or an address that does not suit the type, and a missing shape.
///         Missing strides mean row-major.
template <detail::dlpack_struct D>
struct view_traits<D> {
  using element_type = void;
  static constexpr bool owns = false;
  static element_format format(const D& t) { return detail::format_of_dlpack(t); }
  template <class T>
  static tensor_view<T> view(const D& t) {
    return detail::view_of_dlpack<T>(t);
  }
};

/// DLManagedTensor and DLManagedTensorVersioned that somebody else deletes.
///
/// Throws  as above, and error for another major version than 1, or a read-only tensor as a
///         destination.
template <detail::dlpack_managed M>
struct view_traits<M> {
  using element_type = void;
  static constexpr bool owns = false;
  static element_format format(const M& m) { return detail::format_of_managed(m); }
  template <class T>
  static tensor_view<T> view(const M& m) {
    return detail::view_of_managed<T>(m);
  }
};

/// Takes ownership of a DLManagedTensor or DLManagedTensorVersioned, as from a Python capsule, and
/// calls its deleter exactly once: when it is destroyed, or when the constructor throws.
///
///   const dlpack_tensor update(managed);
///   subfed::scatter<float>(update, sub[weight], global);
template <detail::dlpack_managed Managed>
class dlpack_tensor {
 public:
  /// Throws  error for null, and for another major version than 1 (the deleter is called then, as
  ///         DLPack requires, and nothing else of the tensor is read).
  explicit dlpack_tensor(Managed* managed) : managed_(managed) {
    if (managed == nullptr) detail::refuse_dlpack("is null");
    detail::check_dlpack_version(*managed);
  }

  const Managed& get() const noexcept { return *managed_; }
  /// Releases ownership; the receiver must then call the deleter.
  Managed* release() && noexcept { return managed_.release(); }

 private:
  struct call_deleter {
    void operator()(Managed* managed) const {
      if (managed->deleter != nullptr) managed->deleter(managed);
    }
  };
  std::unique_ptr<Managed, call_deleter> managed_;
};

template <detail::dlpack_managed M>
struct view_traits<dlpack_tensor<M>> {
  using element_type = void;
  static constexpr bool owns = true;
  static element_format format(const dlpack_tensor<M>& t) {
    return detail::format_of_managed(t.get());
  }
  template <class T>
  static tensor_view<T> view(const dlpack_tensor<M>& t) {
    return detail::view_of_managed<T>(t.get());
  }
};

/// A view as a DLPack tensor on the CPU, for Python. `owner` is kept until the consumer calls the
/// deleter, and keeps the elements alive: a std::shared_ptr, or a container whose elements do not
/// move with it. Views of const become read-only tensors, which DLManagedTensor cannot express.
///
///   auto weights = std::make_shared<std::vector<float>>(64 * 20);
///   auto tensor = export_dlpack<DLManagedTensor>(tensor_view(weights->data(), {64, 20}), weights);
///   return PyCapsule_New(std::move(tensor).release(), "dltensor", ..);
template <detail::dlpack_managed Managed, class T, std::movable Owner>
dlpack_tensor<Managed> export_dlpack(const tensor_view<T>& view, Owner owner) {
  using element = std::remove_const_t<T>;
  constexpr element_format format = format_of<element>();
  static_assert(format.kind != number_kind::other,
                "subfed: DLPack has no code for this element type");
  static_assert(
      detail::dlpack_versioned<Managed> || !std::is_const_v<T>,
      "subfed: DLManagedTensor cannot say that it is read-only: export a view that writes, "
      "or DLManagedTensorVersioned");
  struct holder {
    Managed managed{};
    std::int64_t extents[max_rank]{};
    std::int64_t strides[max_rank]{};
    Owner owner;
    explicit holder(Owner&& o) : owner(std::move(o)) {}
  };
  auto made = std::make_unique<holder>(std::move(owner));
  std::copy(view.extents().begin(), view.extents().end(), made->extents);
  std::copy(view.strides().begin(), view.strides().end(), made->strides);

  auto& tensor = made->managed.dl_tensor;
  tensor.data = const_cast<element*>(view.data_handle());
  tensor.device.device_type = static_cast<decltype(tensor.device.device_type)>(1);  // the CPU
  tensor.device.device_id = 0;
  tensor.ndim = view.rank();
  tensor.dtype.code = static_cast<decltype(tensor.dtype.code)>(detail::dlpack_code(format.kind));
  tensor.dtype.bits = static_cast<decltype(tensor.dtype.bits)>(format.bits);
  tensor.dtype.lanes = 1;
  tensor.shape = made->extents;
  tensor.strides = made->strides;
  tensor.byte_offset = 0;
  if constexpr (detail::dlpack_versioned<Managed>) {
    made->managed.version.major = detail::dlpack_major;
    made->managed.version.minor = 0;
    made->managed.flags = std::is_const_v<T> ? detail::dlpack_read_only : 0;
  }
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* self) { delete static_cast<holder*>(self->manager_ctx); };
  return dlpack_tensor<Managed>(&made.release()->managed);
}

}  // namespace subfed::inline v0
