// SPDX-License-Identifier: MIT
/// A tensor in a buffer of bytes whose element type a file format gives at run time.
#pragma once

#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A dense tensor in a buffer that it does not own; npy_view() and safetensors_view return it. Its
/// elements are read in place: slice<float>(t, ..), or tensor_view<const float>(t). Nothing is
/// written through it. Elements are little-endian: a big-endian machine can read those of several
/// bytes only from an aligned_copy().
class byte_tensor {
 public:
  /// The order of the elements: the last, or the first dimension without gaps.
  enum class order { row_major, column_major };

  /// For readers of formats. `label` is the tensor's name in messages; `data` has all its bytes.
  byte_tensor(std::string label, element_format format, std::vector<std::int64_t> extents,
              order laid_out, const std::byte* data)
      : label_(std::move(label)),
        format_(format),
        extents_(std::move(extents)),
        order_(laid_out),
        data_(data) {
    detail::bytes_of(extents_, format.bits / 8, bytes_);
  }
  /// For elements of a type that C++ and subfed do not have, with the format's name `type`: the
  /// tensor has bytes and a shape, and is refused when it is requested as elements.
  byte_tensor(std::string label, std::string type, std::vector<std::int64_t> extents,
              std::int64_t bytes, const std::byte* data)
      : label_(std::move(label)),
        type_(std::move(type)),
        extents_(std::move(extents)),
        data_(data),
        bytes_(bytes) {}

  int rank() const noexcept { return static_cast<int>(extents_.size()); }
  std::span<const std::int64_t> extents() const noexcept { return extents_; }
  order element_order() const noexcept { return order_; }
  /// The first byte; at any address.
  const std::byte* data() const noexcept { return data_; }
  std::int64_t size_bytes() const noexcept { return bytes_; }
  /// "float", "int64", "bfloat16" ..; for a type that subfed does not have, the format's name.
  std::string element_type() const { return has_elements() ? detail::format_text(format_) : type_; }
  /// Whether subfed has a type for the elements.
  bool has_elements() const noexcept { return format_.kind != number_kind::other; }
  /// Whether the elements are of type T: float, double, half, bfloat16, bool, any integer type, and
  /// the half types of other libraries.
  template <class T>
  bool holds() const noexcept {
    return has_elements() && format_ == format_of<T>();
  }
  /// Whether the address suits elements of type T.
  template <class T>
  bool is_aligned() const noexcept {
    return size_bytes() == 0 || detail::is_aligned<T>(data_);
  }
  /// Whether view_traits can give a view of T in place: the address suits T, and so does the order
  /// of the bytes in an element.
  template <class T>
  bool is_readable_in_place() const noexcept {
    return size_bytes() == 0 || (detail::is_aligned<T>(data_) && !is_turned());
  }
  /// Whether the elements' byte order differs from this machine's.
  bool is_turned() const noexcept { return detail::turns_elements && format_.bits > 8; }

  /// Throws  error when the elements are not of type T, or are bools that are neither 0 nor 1, and
  ///         for more dimensions than views have.
  template <class T>
  void check() const {
    if (!has_elements()) {
      detail::fail("subfed: " + label_ + " has elements of type " + detail::quoted(type_) +
                   ", expected " + detail::format_text(format_of<T>()));
    }
    detail::check_format<T>(label_, format_);
    if (rank() > max_rank) {
      detail::fail("subfed: " + label_ + " has the rank " + std::to_string(rank()) +
                   ", expected 0 to 8");
    }
    if constexpr (std::same_as<T, bool>) {
      const std::byte* const end = data_ + size_bytes();
      if (std::any_of(data_, end, [](std::byte b) { return std::to_integer<int>(b) > 1; })) {
        detail::fail("subfed: " + label_ + " has a bool that is neither 0 nor 1");
      }
    }
  }
  const std::string& label() const noexcept { return label_; }
  element_format format() const noexcept { return format_; }

  /// Strides in elements.
  std::vector<std::int64_t> strides() const {
    constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
    std::vector<std::int64_t> out(extents_.size());
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t r = order_ == order::column_major ? i : out.size() - 1 - i;
      out[r] = stride;
      const std::int64_t extent = (std::max)(extents_[r], std::int64_t{1});
      if (stride <= most / extent) stride *= extent;  // overflows only in an empty tensor
    }
    return out;
  }

 private:
  std::string label_;
  element_format format_ = {};
  std::string type_ = {};
  std::vector<std::int64_t> extents_;
  order order_ = order::row_major;
  const std::byte* data_;
  std::int64_t bytes_ = 0;
};

/// The element type is known only at run time, so name it. Elements are read in place, not copied.
///
/// Throws  error when the elements are not of the requested type, when their address is not
///         suitably aligned for it (use aligned_copy() then; reading them in place would be
///         undefined), when the machine is big-endian and an element has several bytes (also
///         aligned_copy()), or when a bool is neither 0 nor 1.
/// Cost    O(rank); of bools one read of all of them.
template <>
struct view_traits<byte_tensor> {
  using element_type = void;
  static constexpr bool owns = false;

  static element_format format(const byte_tensor& t) {
    if (!t.has_elements()) {
      detail::fail("subfed: " + t.label() + " has elements of type " +
                   detail::quoted(t.element_type()) + ", which are available only as bytes");
    }
    return t.format();
  }

  template <class T>
  requires std::is_const_v<T>
  static tensor_view<T> view(const byte_tensor& t) {
    using element = std::remove_const_t<T>;
    t.check<element>();
    if (!t.is_aligned<element>()) {
      detail::fail("subfed: " + t.label() + " is at an address that is not a multiple of " +
                   std::to_string(alignof(element)) + ": use aligned_copy<" +
                   detail::format_text(format_of<element>()) + ">() of it");
    }
    if (!t.is_readable_in_place<element>()) {
      detail::fail("subfed: " + t.label() + " is little-endian, unlike this machine: use " +
                   "aligned_copy<" + detail::format_text(format_of<element>()) + ">() of it");
    }
    // An empty tensor may be anywhere, and is not read.
    const auto* const data = t.size_bytes() == 0 ? nullptr : reinterpret_cast<T*>(t.data());
    return {data, t.extents(), t.strides()};
  }
};

/// A row-major tensor that owns its elements.
template <class T>
class dense_tensor {
 public:
  /// Elements with the value T{}.
  explicit dense_tensor(std::span<const std::int64_t> extents)
      : extents_(extents.begin(), extents.end()),
        elements_(std::make_unique<T[]>(elements(extents_))) {}

  T* data() noexcept { return elements_.get(); }
  const T* data() const noexcept { return elements_.get(); }
  std::span<const std::int64_t> extents() const noexcept { return extents_; }

 private:
  static std::size_t elements(std::span<const std::int64_t> extents) {
    // As many as a view can have; it refuses more with a message.
    static constexpr T any{};
    return static_cast<std::size_t>(tensor_view<const T>(&any, extents).size());
  }

  std::vector<std::int64_t> extents_;
  std::unique_ptr<T[]> elements_;
};

template <class E>
struct view_traits<dense_tensor<E>> {
  using element_type = E;
  static constexpr bool owns = true;
  template <class T, class Self>
  requires std::convertible_to<decltype(std::declval<Self&>().data()), T*>
  static tensor_view<T> view(Self& t) { return {t.data(), t.extents()}; }
};

/// A copy of the elements of a tensor in a buffer, aligned and in this machine's byte order, so
/// that they can be read and written:
///
///   const auto w = aligned_copy<float>(file["fc1.weight"]);
///
/// Throws  error when the elements are not of type T, or are bools that are neither 0 nor 1.
template <class T>
dense_tensor<T> aligned_copy(const byte_tensor& from) {
  from.check<T>();
  dense_tensor<T> out(from.extents());
  if (from.size_bytes() == 0) return out;
  if (from.element_order() == byte_tensor::order::row_major) {
    detail::copy_elements(from.data(), reinterpret_cast<std::byte*>(out.data()),
                          static_cast<std::size_t>(from.size_bytes()) / sizeof(T), sizeof(T));
    return out;
  }
  const std::vector<std::int64_t> strides = from.strides();
  const tensor_view<T> places(out.data(), from.extents(), strides);  // only to walk the offsets
  T* to = out.data();
  detail::for_each_offset(places, [&](std::int64_t o) {
    detail::copy_elements(from.data() + o * static_cast<std::int64_t>(sizeof(T)),
                          reinterpret_cast<std::byte*>(to++), 1, sizeof(T));
  });
  return out;
}

}  // namespace subfed::inline v0
