// SPDX-License-Identifier: MIT
/// tensor_view<void>: a tensor whose element type is known at run time, for models of mixed types.
#pragma once

#include <subfed/detail/element_format.hpp>
#include <subfed/error.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace subfed::inline v0 {

namespace detail {

/// Calls f.template operator()<E>() with the element type of a format.
///
/// Throws  error for a format that no element type of subfed has.
template <class F>
decltype(auto) with_format(element_format format, F&& f) {
  const auto is = [format]<class E>() { return format == format_of<E>(); };
  if (is.template operator()<float>()) return f.template operator()<float>();
  if (is.template operator()<double>()) return f.template operator()<double>();
  if (is.template operator()<half>()) return f.template operator()<half>();
  if (is.template operator()<bfloat16>()) return f.template operator()<bfloat16>();
  if (is.template operator()<std::int64_t>()) return f.template operator()<std::int64_t>();
  if (is.template operator()<std::int32_t>()) return f.template operator()<std::int32_t>();
  if (is.template operator()<std::int16_t>()) return f.template operator()<std::int16_t>();
  if (is.template operator()<std::int8_t>()) return f.template operator()<std::int8_t>();
  if (is.template operator()<std::uint64_t>()) return f.template operator()<std::uint64_t>();
  if (is.template operator()<std::uint32_t>()) return f.template operator()<std::uint32_t>();
  if (is.template operator()<std::uint16_t>()) return f.template operator()<std::uint16_t>();
  if (is.template operator()<std::uint8_t>()) return f.template operator()<std::uint8_t>();
  if (is.template operator()<bool>()) return f.template operator()<bool>();
  fail("subfed: tensor_view: elements of " + format_text(format) + " are not supported");
}

}  // namespace detail

/// A tensor_view of elements whose type is known at run time: half, bfloat16, float, double, integers
/// of 8 to 64 bits, bool. Made from a typed view or from any tensor that an adaptor knows.
///
/// As an element type void means this everywhere, as it does in void*, and nothing else: each tensor
/// of slice<void>, update<void> or selective_average<void> has a type of its own. A type that is left
/// out, as in slice(global, chosen, local), is that of the arguments.
///
/// tensor_view<const void>: a tensor that is only read.
template <class Void>
requires std::is_void_v<Void>
class tensor_view<Void> {
  template <class E>
  using element = std::conditional_t<std::is_const_v<Void>, const E, E>;

 public:
  using element_type = Void;

  template <class T>
  requires(!std::is_void_v<T> && std::convertible_to<T*, element<std::remove_const_t<T>>*>)
      tensor_view(const tensor_view<T>& typed)
      : data_(typed.data_handle()),
        format_(format_of<std::remove_const_t<T>>()),
        rank_(typed.rank()) {
    static_assert(format_of<std::remove_const_t<T>>().kind != number_kind::other,
                  "subfed: tensor_view<void> knows no elements of this type");
    std::copy(typed.extents().begin(), typed.extents().end(), extents_);
    std::copy(typed.strides().begin(), typed.strides().end(), strides_);
  }

  /// Any tensor that an adaptor knows, given as an lvalue.
  template <class V>
  requires(viewable<V>&& borrowed<V> && !detail::is_tensor_view<std::remove_cvref_t<V>>)
      tensor_view(V&& tensor)
      : tensor_view(seen(tensor)) {}

  /// A read-only view of the same elements.
  template <std::same_as<void> V>
  requires std::is_const_v<Void> tensor_view(const tensor_view<V>& other)
      : data_(other.data_handle()), format_(other.format()), rank_(other.rank()) {
    std::copy(other.extents().begin(), other.extents().end(), extents_);
    std::copy(other.strides().begin(), other.strides().end(), strides_);
  }

  Void* data_handle() const noexcept { return data_; }
  int rank() const noexcept { return rank_; }
  std::int64_t extent(int r) const noexcept { return extents_[r]; }
  std::int64_t stride(int r) const noexcept { return strides_[r]; }
  std::span<const std::int64_t> extents() const noexcept {
    return {extents_, static_cast<std::size_t>(rank_)};
  }
  std::span<const std::int64_t> strides() const noexcept {
    return {strides_, static_cast<std::size_t>(rank_)};
  }
  std::int64_t size() const noexcept {
    if (std::find(extents().begin(), extents().end(), 0) != extents().end()) return 0;
    std::int64_t n = 1;
    for (int r = 0; r < rank_; ++r) n *= extents_[r];
    return n;
  }

  /// As for a typed view.
  bool is_row_major() const noexcept { return detail::is_row_major(extents(), strides()); }

  /// The type of the elements.
  element_format format() const noexcept { return format_; }
  /// "float", "int64", ..
  std::string element_name() const { return detail::format_text(format_); }

  /// The same tensor with its type. Throws error when the elements have another type.
  template <class E>
  tensor_view<element<E>> as() const {
    detail::check_format<E>("the tensor of shape " + detail::shape_text(extents()), format_);
    return {static_cast<element<E>*>(data_), extents(), strides()};
  }

  /// f(the tensor with its type).
  template <class F>
  decltype(auto) visit(F&& f) const {
    return detail::with_format(format_, [&]<class E>() -> decltype(auto) { return f(as<E>()); });
  }

 private:
  template <class V>
  static tensor_view seen(V& tensor) {
    using traits = view_traits<std::remove_const_t<V>>;
    if constexpr (std::is_void_v<typename traits::element_type>) {
      return detail::with_format(traits::format(tensor), [&]<class E>() -> tensor_view {
        return traits::template view<element<E>>(tensor);
      });
    } else {
      return traits::template view<element<typename traits::element_type>>(tensor);
    }
  }

  Void* data_;
  element_format format_;
  int rank_;
  std::int64_t extents_[max_rank]{};
  std::int64_t strides_[max_rank]{};
};

namespace detail {

/// f(view with its type): the view as it is, or visited.
template <class T, class F>
decltype(auto) with_type(const tensor_view<T>& view, F&& f) {
  if constexpr (std::is_void_v<T>) {
    return view.visit(f);
  } else {
    return f(view);
  }
}

/// The view with type E, which its elements are known to have.
template <class E, class T>
auto typed(const tensor_view<T>& view) {
  if constexpr (std::is_void_v<T>) {
    return view.template as<E>();
  } else {
    return view;
  }
}

/// The type of a view's elements.
template <class T>
element_format format_of_view(const tensor_view<T>& view) noexcept {
  if constexpr (std::is_void_v<T>) {
    return view.format();
  } else {
    static_cast<void>(view);
    return format_of<std::remove_const_t<T>>();
  }
}

/// Throws unless both tensors have elements of the same type, or both of floating-point types.
template <class T, class U>
void check_convertible(const char* verb, const std::string& name, const tensor_view<T>& global,
                       const tensor_view<U>& local) {
  if constexpr (std::is_void_v<T> || std::is_void_v<U>) {
    const element_format expected = format_of_view(global);
    const element_format found = format_of_view(local);
    if (expected == found || (is_floating(expected) && is_floating(found))) return;
    fail(std::string("subfed: ") + verb + ": the local tensor '" + name +
             "' has elements of type " + format_text(found) + ", expected " +
             format_text(expected) + " as in the global one",
         {.tensor = name});
  }
}

}  // namespace detail

}  // namespace subfed::inline v0
