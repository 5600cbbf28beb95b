// SPDX-License-Identifier: MIT
/// How foreign tensor types are viewed: what an adaptor specialises.
#pragma once

#include <concepts>
#include <type_traits>

namespace subfed::inline v0 {

template <class T>
class tensor_view;

/// How a foreign tensor type is viewed; the headers in adapt/ specialise it, and so can you:
///
///   using element_type   the element type, or void where it is known only at run time
///   owns                 true when the object owns its elements: a temporary is then refused
///   view<T>(v)           tensor_view<T> of v (an lvalue, const or not)
///   format(v)            element_format of v, where element_type is void
///
/// Views can also be made by hand, without a specialisation: tensor_view(data, extents, strides).
template <class V>
struct view_traits;

template <class T>
struct view_traits<tensor_view<T>> {
  using element_type = std::remove_const_t<T>;
  static constexpr bool owns = false;
  template <class U>
  requires std::convertible_to<T*, U*>
  static tensor_view<U> view(const tensor_view<T>& v) { return v; }
};

/// V (a possibly const object, given as an lvalue) can be viewed as tensor_view<T>.
template <class V, class T>
concept viewable_as = requires(V& v) {
  { view_traits<std::remove_const_t<V>>::template view<T>(v) } -> std::same_as<tensor_view<T>>;
};

/// A type that view_traits knows.
template <class V>
concept viewable = requires {
  typename view_traits<std::remove_cvref_t<V>>::element_type;
  { view_traits<std::remove_cvref_t<V>>::owns } -> std::convertible_to<bool>;
};

/// A view of type V (as deduced from V&&) stays valid after the full expression: an lvalue, or a
/// temporary that does not own its elements.
template <class V>
concept borrowed = std::is_lvalue_reference_v<V> || !view_traits<std::remove_cvref_t<V>>::owns;

}  // namespace subfed::inline v0
