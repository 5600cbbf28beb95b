// SPDX-License-Identifier: MIT
/// Elements of an update whose floating-point type is not the global tensor's: they are read by
/// loops for their type, called once per run.
#pragma once

#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/scalar.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace subfed::inline v0::detail {

/// The largest finite number of a type that the library knows; infinity for others.
template <class E>
constexpr double largest_of() noexcept {
  if constexpr (std::floating_point<E>) {
    return static_cast<double>((std::numeric_limits<E>::max)());
  } else if constexpr (requires { scalar_traits<E>::mantissa_bits; }) {
    using format = format16<scalar_traits<E>::mantissa_bits>;
    return format::decode(static_cast<std::uint16_t>(format::infinity - 1));
  } else {
    return std::numeric_limits<double>::infinity();
  }
}

/// Whether numbers of a type are so large or so small that sums and products of them may leave the
/// range of double for ordinary weights.
constexpr bool is_far_reaching(double largest) noexcept {
  return largest > static_cast<double>((std::numeric_limits<float>::max)());
}

/// The loops over elements of one type.
struct element_loops {
  std::int64_t size;
  double largest;
  void (*add)(const std::byte* from, std::int64_t stride, double weight, double* sums,
              std::int64_t length);
  void (*add_kernels)(const std::byte* from, double weight, double* sums, std::int64_t units);
  double (*load)(const std::byte* from);
  std::int64_t (*add_terms)(const std::byte* from, std::int64_t stride, const term_rule& rule,
                            std::int64_t* sums, std::int64_t length);
  /// spread_masked; null where there are no vector loops. own: without data.
  void (*spread)(const std::byte* from, const masked_holder<float>& own, std::int64_t length,
                 float* to);
};

using spread_loop = decltype(element_loops::spread);
template <class E>
constexpr spread_loop spread_of() noexcept {
  if constexpr (has_lanes<E> && sizeof(E) <= 4) {
    return
        [](const std::byte* from, const masked_holder<float>& own, std::int64_t length, float* to) {
          const void* const elements = from;
          spread_masked(masked_holder<E>{static_cast<const E*>(elements), own.masks, own.starts,
                                         own.limit, own.weight, own.has_all},
                        length, to);
        };
  } else {
    return nullptr;
  }
}

template <class E>
const E* elements_at(const std::byte* from) noexcept {
  return static_cast<const E*>(static_cast<const void*>(from));
}

template <class E>
inline constexpr element_loops loops_of = {
    static_cast<std::int64_t>(sizeof(E)),
    largest_of<E>(),
    [](const std::byte* from, std::int64_t stride, double weight, double* sums,
       std::int64_t length) { accumulate(elements_at<E>(from), stride, weight, sums, 1, length); },
    [](const std::byte* from, double weight, double* sums, std::int64_t units) {
      accumulate_units<9>(elements_at<E>(from), weight, sums, units);
    },
    [](const std::byte* from) { return scalar_traits<E>::load(*elements_at<E>(from)); },
    [](const std::byte* from, std::int64_t stride, const term_rule& rule, std::int64_t* sums,
       std::int64_t length) {
      return detail::add_terms(elements_at<E>(from), stride, rule, sums, 1, length);
    },
    spread_of<E>()};

/// Stands for an element type that may differ from client to client.
struct any_element {};

/// A pointer to elements of any type.
struct any_pointer {
  const std::byte* at = nullptr;
  const element_loops* loops = nullptr;

  friend any_pointer operator+(any_pointer from, std::int64_t n) noexcept {
    return {from.at + n * from.loops->size, from.loops};
  }
  friend bool operator==(any_pointer a, std::nullptr_t) noexcept { return a.at == nullptr; }
};

template <class E>
struct element_pointer {
  using type = const E*;
  static type from(const E* elements) noexcept { return elements; }
};
template <>
struct element_pointer<any_element> {
  using type = any_pointer;
  template <class E>
  static type from(const E* elements) noexcept {
    return {reinterpret_cast<const std::byte*>(elements), &loops_of<E>};
  }
};
/// const E*, or any_pointer.
template <class E>
using element_pointer_t = typename element_pointer<E>::type;

template <class E>
double load_at(const E* from) noexcept {
  return scalar_traits<E>::load(*from);
}
inline double load_at(any_pointer from) noexcept { return from.loops->load(from.at); }

template <class E>
double largest_at(const E*) noexcept {
  return largest_of<E>();
}
inline double largest_at(any_pointer from) noexcept { return from.loops->largest; }

inline void accumulate(any_pointer from, std::int64_t stride, double weight, double* sums,
                       std::int64_t, std::int64_t length) noexcept {
  from.loops->add(from.at, stride, weight, sums, length);
}
inline std::int64_t add_terms(any_pointer from, std::int64_t stride, const term_rule& rule,
                              std::int64_t* sums, std::int64_t, std::int64_t length) noexcept {
  return from.loops->add_terms(from.at, stride, rule, sums, length);
}
/// Whether elements can be spread over a dense row in vectors.
inline bool can_spread(any_pointer from) noexcept {
  return from.loops->spread != nullptr && instructions_in_use() != instructions::baseline;
}
inline void spread(any_pointer from, const masked_holder<float>& own, std::int64_t length,
                   float* to) noexcept {
  from.loops->spread(from.at, own, length, to);
}
template <std::int64_t U>
void accumulate_units(any_pointer from, double weight, double* sums, std::int64_t units) noexcept {
  if constexpr (U == 9) {
    from.loops->add_kernels(from.at, weight, sums, units);
  } else {
    from.loops->add(from.at, 1, weight, sums, U * units);
  }
}

}  // namespace subfed::inline v0::detail
