// SPDX-License-Identifier: MIT
/// Element types that are known only at run time.
#pragma once

#include <subfed/scalar.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

namespace subfed::inline v0 {

/// What kind of number an element is.
enum class number_kind { other, signed_integer, unsigned_integer, floating, brain, boolean };

/// The type of a tensor's elements, where it is known only at run time: the result of format() of a
/// view_traits.
struct element_format {
  number_kind kind = number_kind::other;
  int bits = 0;

  friend bool operator==(const element_format&, const element_format&) = default;
};

namespace detail {

template <class T>
inline constexpr int own_mantissa_bits = 0;
template <int MantissaBits>
inline constexpr int own_mantissa_bits<float16<MantissaBits>> = MantissaBits;

}  // namespace detail

/// The format of T; its kind is `other` when files and other libraries have no such numbers.
template <class T>
constexpr element_format format_of() noexcept {
  if constexpr (std::same_as<T, bool>) {
    return {number_kind::boolean, 8};
  } else if constexpr (std::is_integral_v<T>) {
    return {std::is_signed_v<T> ? number_kind::signed_integer : number_kind::unsigned_integer,
            static_cast<int>(sizeof(T) * 8)};
  } else if constexpr (std::same_as<T, float> || std::same_as<T, double>) {
    return {number_kind::floating, static_cast<int>(sizeof(T) * 8)};
  } else if constexpr (detail::own_mantissa_bits<T> != 0) {
    return {detail::own_mantissa_bits<T> == 10 ? number_kind::floating : number_kind::brain, 16};
  } else if constexpr (detail::foreign_float16<T>) {
    return {std::numeric_limits<T>::digits == 11 ? number_kind::floating : number_kind::brain, 16};
  } else {
    return {};
  }
}

}  // namespace subfed::inline v0
