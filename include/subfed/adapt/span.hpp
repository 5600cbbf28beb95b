// SPDX-License-Identifier: MIT
/// std::span, std::vector, std::array and C arrays as tensor views of rank 1.
#pragma once

#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// What a flat sequence must hold to be a tensor: numbers. A sequence of tensors does not match.
template <class T>
concept number = std::is_arithmetic_v<std::remove_cv_t<T>> || averageable<std::remove_cv_t<T>>;

template <class T, class Sequence>
tensor_view<T> view_of_sequence(Sequence& sequence) {
  return {std::data(sequence), {as_size(std::size(sequence))}};
}

template <class Sequence, class T>
concept sequence_of = std::convertible_to<decltype(std::data(std::declval<Sequence&>())), T*>;

}  // namespace detail

/// A bias vector, or a flat buffer of rank 1. For a buffer of more dimensions give its shape:
/// tensor_view<float>(weights.data(), {64, 20}).
template <detail::number E, std::size_t Extent>
struct view_traits<std::span<E, Extent>> {
  using element_type = std::remove_cv_t<E>;
  static constexpr bool owns = false;
  template <class T, detail::sequence_of<T> Self>
  static tensor_view<T> view(Self& v) {
    return detail::view_of_sequence<T>(v);
  }
};

/// Not for std::vector<bool>, which has no bools in memory.
template <detail::number E, class Allocator>
requires(!std::same_as<E, bool>) struct view_traits<std::vector<E, Allocator>> {
  using element_type = E;
  static constexpr bool owns = true;
  template <class T, detail::sequence_of<T> Self>
  static tensor_view<T> view(Self& v) {
    return detail::view_of_sequence<T>(v);
  }
};

template <detail::number E, std::size_t Size>
struct view_traits<std::array<E, Size>> {
  using element_type = std::remove_cv_t<E>;
  static constexpr bool owns = true;
  template <class T, detail::sequence_of<T> Self>
  static tensor_view<T> view(Self& v) {
    return detail::view_of_sequence<T>(v);
  }
};

template <detail::number E, std::size_t Size>
struct view_traits<E[Size]> {
  using element_type = std::remove_cv_t<E>;
  static constexpr bool owns = true;
  template <class T, detail::sequence_of<T> Self>
  static tensor_view<T> view(Self& v) {
    return detail::view_of_sequence<T>(v);
  }
};

}  // namespace subfed::inline v0
