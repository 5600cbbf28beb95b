// SPDX-License-Identifier: MIT
/// The element type that a verb works on, and its arguments as views.
#pragma once

#include <subfed/tensor_view.hpp>
#include <subfed/view_traits.hpp>

#include <string_view>
#include <type_traits>

namespace subfed::inline v0::detail {

/// The name of an element type in messages.
template <class T>
constexpr std::string_view type_name() noexcept {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_integral_v<T>) {
    constexpr std::string_view names[] = {"int8", "int16", "int32", "int64"};
    constexpr std::string_view unsigned_names[] = {"uint8", "uint16", "uint32", "uint64"};
    constexpr std::size_t width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? names[width] : unsigned_names[width];
  }
  return "another type";
}

/// Named in place of an element type: the arguments' types determine it. (void means that it is
/// known only at run time.)
struct deduced;

/// The element type to work on: the one named, else that of an argument's type; void where it is
/// known only at run time.
template <class Named, class... Vs>
struct common_element;
template <class Named, class V, class... Vs>
struct common_element<Named, V, Vs...> {
 private:
  using own = typename view_traits<std::remove_cvref_t<V>>::element_type;
  using rest = typename common_element<Named, Vs...>::type;

 public:
  static_assert(std::is_void_v<own> || std::is_void_v<rest> || std::is_same_v<own, rest>,
                "subfed: the tensors of one call differ in element type");
  using type = std::conditional_t<std::is_void_v<rest>, own, rest>;
};
template <class Named>
struct common_element<Named> {
  using type = std::conditional_t<std::is_same_v<Named, deduced>, void, Named>;
};

template <class Named, class... Vs>
struct element_of_call {
  static_assert((viewable<Vs> && ...),
                "subfed: not a tensor that subfed knows: include its header from subfed/adapt/, "
                "specialise subfed::view_traits, or make a tensor_view (lazy expressions of Eigen "
                "and xtensor have no elements yet: evaluate them first)");
  using type = typename common_element<Named, Vs...>::type;
  static_assert(!std::is_void_v<type>,
                "subfed: the element type is known only at run time: name it, as in "
                "slice<float>(...)");
};
template <class Named, class... Vs>
using element_of_call_t = typename element_of_call<Named, Vs...>::type;

/// The element type of one tensor of a call: its own, else the one named, else the other tensor's.
template <class Named, class V, class Other>
struct element_beside {
 private:
  template <class W>
  using own_of = typename view_traits<std::remove_cvref_t<W>>::element_type;
  using fallback = std::conditional_t<std::is_same_v<Named, deduced>, own_of<Other>, Named>;

 public:
  using type = std::conditional_t<std::is_void_v<own_of<V>>, fallback, own_of<V>>;
};
template <class Named, class V, class Other>
using element_beside_t = typename element_beside<Named, V, Other>::type;

/// The destination of a verb as a view that writes.
template <class T, class V>
tensor_view<T> destination(V&& tensor) {
  static_assert(
      borrowed<V>,
      "subfed: the destination is a temporary that owns its elements: the result would be "
      "lost");
  static_assert(viewable_as<std::remove_reference_t<V>, T>,
                "subfed: the destination is const, or has another element type");
  return view_traits<std::remove_cvref_t<V>>::template view<T>(tensor);
}

/// The source of a verb as a view that reads; a temporary lives for the duration of the call.
template <class T, class V>
tensor_view<const T> source(const V& tensor) {
  static_assert(viewable_as<const V, const T>, "subfed: the source has another element type");
  return view_traits<V>::template view<const T>(tensor);
}

}  // namespace subfed::inline v0::detail
