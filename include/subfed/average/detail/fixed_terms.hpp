// SPDX-License-Identifier: MIT
/// The inner loops of fixed-point sums. Each term is an integer that depends on value, weight and
/// declaration alone, not on the loop that it goes through.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/fixed_point.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// The integer nearest to t, of two the even one, by the bits: nothing that -ffast-math could
/// simplify. Pre: |t| < 2^63.
inline std::int64_t nearest_by_bits(double t) noexcept {
  constexpr std::uint64_t magnitude = 0x7FFFFFFFFFFFFFFFu;
  constexpr double whole = 0x1p52;  // from here on doubles are integers
  const auto bits = std::bit_cast<std::uint64_t>(t);
  if ((bits & magnitude) >= std::bit_cast<std::uint64_t>(whole))
    return static_cast<std::int64_t>(t);
  const double size = std::bit_cast<double>(bits & magnitude);
  const std::int64_t n =
      std::bit_cast<std::int64_t>(size + whole) - std::bit_cast<std::int64_t>(whole);
  return bits > magnitude ? -n : n;
}

/// The same by an instruction where there is one. Pre: the mode is to nearest (float_mode).
inline std::int64_t nearest_integer(double t) noexcept {
#if defined(__SSE2__) && defined(__x86_64__)
  return _mm_cvtsd_si64(_mm_set_sd(t));
#else
  return nearest_by_bits(t);
#endif
}

/// A weight rounded to a multiple of the weights' quantum. Pre: it is not over the total.
inline double fixed_weight(double weight, const fixed_point& sums) noexcept {
  const double least = sums.weight_quantum();
  if (weight < least / 2) return 0;
  const std::int64_t exponent = exponent_of(least);
  return scaled(static_cast<double>(nearest_integer(scaled(weight, -exponent))), exponent);
}

/// What turns the values of one update into terms.
struct term_rule {
  double factor;  ///< the weight divided by the quantum; negative: the terms are taken back
  double bound;
  float bound_of_floats;  ///< the largest float that is not over the bound
  bool narrow;            ///< terms are below 2^51

  term_rule(const fixed_point& sums, double weight) noexcept
      : factor(scaled(weight, -sums.exponent())), bound(sums.bound) {
    constexpr float largest = (std::numeric_limits<float>::max)();
    bound_of_floats = bound >= static_cast<double>(largest) ? largest : static_cast<float>(bound);
    if (static_cast<double>(bound_of_floats) > bound) {
      bound_of_floats = std::bit_cast<float>(std::bit_cast<std::uint32_t>(bound_of_floats) - 1);
    }
    const double most = rounded_product(factor, bound);
    narrow = most < 0x1p51 && most > -0x1p51;
  }

  term_rule negated() const noexcept {
    term_rule out = *this;
    out.factor = -factor;
    return out;
  }
  bool is_beyond(double x) const noexcept {
    constexpr std::uint64_t magnitude = 0x7FFFFFFFFFFFFFFFu;
    return (std::bit_cast<std::uint64_t>(x) & magnitude) > std::bit_cast<std::uint64_t>(bound);
  }
  /// What is beyond the bound counts as the bound, a NaN too.
  std::int64_t operator()(double x) const noexcept {
    constexpr std::uint64_t sign = 0x8000000000000000u;
    if (is_beyond(x)) {
      x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(bound) |
                                (std::bit_cast<std::uint64_t>(x) & sign));
    }
    return nearest_integer(rounded_product(factor, x));
  }
};

/// Whether any of the values is beyond the bound. Without a branch in the loop.
inline bool any_beyond(const float* from, std::int64_t length, const term_rule& rule) noexcept {
  const auto bound = std::bit_cast<std::uint32_t>(rule.bound_of_floats);
  std::uint32_t any = 0;  // the sign: of a difference below 0
  for (std::int64_t i = 0; i < length; ++i) {
    any |= bound - (std::bit_cast<std::uint32_t>(from[i]) & 0x7FFFFFFFu);
  }
  return any >> 31 != 0;
}
inline bool any_beyond(const double* from, std::int64_t length, const term_rule& rule) noexcept {
  const auto bound = std::bit_cast<std::uint64_t>(rule.bound);
  std::uint64_t any = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    any |= bound - (std::bit_cast<std::uint64_t>(from[i]) & 0x7FFFFFFFFFFFFFFFu);
  }
  return any >> 63 != 0;
}

#if defined(__SSE2__)
/// The terms of two values within the bound. Pre: the rule is narrow.
inline __m128i terms_in_lanes(double factor, __m128d x) noexcept {
  constexpr double shift = 0x1.8p52;  // its last digit is 1: the sum is rounded to an integer
  const __m128d sum = _mm_add_pd(rounded_product(factor, x), _mm_set1_pd(shift));
  return _mm_sub_epi64(_mm_castpd_si128(sum), _mm_set1_epi64x(std::bit_cast<std::int64_t>(shift)));
}
inline void add_in_lanes(std::int64_t* to, __m128i terms) noexcept {
  auto* const at = static_cast<__m128i*>(static_cast<void*>(to));
  _mm_storeu_si128(at, _mm_add_epi64(_mm_loadu_si128(at), terms));
}
#endif

/// Adds as many values as have been counted as within the bound. Pre: the rule is narrow.
inline void add_narrow_terms(const float* from, std::int64_t length, const term_rule& rule,
                             std::int64_t* sums) noexcept {
  std::int64_t i = 0;
#if defined(__SSE2__)
  for (; i + 4 <= length; i += 4) {
    const __m128 x = _mm_loadu_ps(from + i);
    add_in_lanes(sums + i, terms_in_lanes(rule.factor, _mm_cvtps_pd(x)));
    add_in_lanes(sums + i + 2, terms_in_lanes(rule.factor, _mm_cvtps_pd(_mm_movehl_ps(x, x))));
  }
#endif
  for (; i < length; ++i) sums[i] += rule(static_cast<double>(from[i]));
}
inline void add_narrow_terms(const double* from, std::int64_t length, const term_rule& rule,
                             std::int64_t* sums) noexcept {
  std::int64_t i = 0;
#if defined(__SSE2__)
  for (; i + 2 <= length; i += 2) {
    add_in_lanes(sums + i, terms_in_lanes(rule.factor, _mm_loadu_pd(from + i)));
  }
#endif
  for (; i < length; ++i) sums[i] += rule(from[i]);
}

/// sums[i] += the term of from[i], float or double. Returns how many values are beyond the bound.
template <class X>
std::int64_t add_contiguous_terms(const X* from, std::int64_t length, const term_rule& rule,
                                  std::int64_t* sums) noexcept {
  constexpr std::int64_t block = 1024;  // is still in the cache when it is added
  std::int64_t beyond = 0;
  for (std::int64_t b = 0; b < length; b += block) {
    const std::int64_t end = (std::min)(length, b + block);
    const bool any = any_beyond(from + b, end - b, rule);
    if (!any && rule.narrow) {
      add_narrow_terms(from + b, end - b, rule, sums + b);
      continue;
    }
    for (std::int64_t i = b; i < end; ++i) sums[i] += rule(static_cast<double>(from[i]));
    for (std::int64_t i = b; any && i < end; ++i) {
      beyond += rule.is_beyond(static_cast<double>(from[i])) ? 1 : 0;
    }
  }
  return beyond;
}

/// sums[i sum_stride] += the term of from[i stride]. Returns how many values are beyond the bound.
template <class E>
std::int64_t add_terms(const E* from, std::int64_t stride, const term_rule& rule,
                       std::int64_t* sums, std::int64_t sum_stride, std::int64_t length) noexcept {
  if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
    if (stride == 1 && sum_stride == 1) return add_contiguous_terms(from, length, rule, sums);
  }
  constexpr std::int64_t block = 256;
  double values[block];
  std::int64_t beyond = 0;
  for (std::int64_t b = 0; b < length; b += block) {
    const std::int64_t here = (std::min)(length - b, block);
    for (std::int64_t i = 0; i < here; ++i) {
      values[i] = scalar_traits<E>::load(from[(b + i) * stride]);
    }
    if (sum_stride == 1) {
      beyond += add_contiguous_terms(values, here, rule, sums + b);
      continue;
    }
    for (std::int64_t i = 0; i < here; ++i) {
      sums[(b + i) * sum_stride] += rule(values[i]);
      beyond += rule.is_beyond(values[i]) ? 1 : 0;
    }
  }
  return beyond;
}

/// The double nearest to a sum of terms, times the quantum.
inline double value_of_sum(std::int64_t sum, double quantum) noexcept {
  return static_cast<double>(sum) * quantum;
}

}  // namespace subfed::inline v0::detail
