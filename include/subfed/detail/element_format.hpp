// SPDX-License-Identifier: MIT
/// Element types that are known only at run time: their names in messages, and whether they are T.
#pragma once

#include <subfed/element_format.hpp>
#include <subfed/error.hpp>

#include <cstdint>
#include <string>

namespace subfed::inline v0::detail {

/// Whether elements are floating-point numbers, which are converted to one another.
constexpr bool is_floating(element_format format) noexcept {
  return format.kind == number_kind::floating || format.kind == number_kind::brain;
}

/// Whether elements are integers or booleans.
constexpr bool is_integer(element_format format) noexcept {
  return format.kind == number_kind::signed_integer ||
         format.kind == number_kind::unsigned_integer || format.kind == number_kind::boolean;
}

/// "float", "int64", "bfloat16": the way element types are named in messages.
inline std::string format_text(element_format format) {
  switch (format.kind) {
    case number_kind::signed_integer:
      return "int" + std::to_string(format.bits);
    case number_kind::unsigned_integer:
      return "uint" + std::to_string(format.bits);
    case number_kind::floating:
      if (format.bits == 16) return "half";
      if (format.bits == 32) return "float";
      if (format.bits == 64) return "double";
      return "float" + std::to_string(format.bits);
    case number_kind::brain:
      return "bfloat" + std::to_string(format.bits);
    case number_kind::boolean:
      return format.bits == 8 ? "bool" : "bool" + std::to_string(format.bits);
    case number_kind::other:
      break;
  }
  return "another type";
}

/// Throws unless the elements are of type T: "subfed: the DLPack tensor has elements of type int64,
/// expected float".
template <class T>
void check_format(const std::string& tensor, element_format found) {
  constexpr element_format expected = format_of<T>();
  static_assert(expected.kind != number_kind::other,
                "subfed: no tensor whose type is known only at run time has elements of this type");
  if (found == expected) return;
  fail("subfed: " + tensor + " has elements of type " + format_text(found) + ", expected " +
       format_text(expected));
}

/// Whether a T may be at the address.
template <class T>
bool is_aligned(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % alignof(T) == 0;
}

}  // namespace subfed::inline v0::detail
