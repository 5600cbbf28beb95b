// SPDX-License-Identifier: MIT
/// The inner loops of fixed-point sums. Each term is an integer that depends on value, weight and
/// declaration alone, not on the loop that it goes through.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/fixed_point.hpp>
#include <subfed/config.hpp>
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
  double weight;  ///< negative: the terms are taken back
  double factor;  ///< the weight divided by the quantum
  double shift;   ///< its last digit is one quantum
  double bound;
  float bound_of_floats;  ///< the largest float that is not over the bound
  bool narrow;            ///< terms are below 2^51

  term_rule(const fixed_point& sums, double of_weight) noexcept
      : weight(of_weight),
        factor(scaled(of_weight, -sums.exponent())),
        shift(scaled(0x1.8p52, sums.exponent())),
        bound(sums.bound) {
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
    out.weight = -weight;
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

#if defined(__SSE2__)
/// Adds narrow terms, two at a time. The last digit of the shift is one quantum: added to a product,
/// it rounds it to a multiple of that, and the bits of the sum count the quanta. Whether a value is
/// beyond the bound is seen while it is added; its term is wrong then, but can be taken back.
/// Ones: the weight is 1.
template <bool Ones>
class term_lanes {
 public:
  explicit term_lanes(const term_rule& rule) noexcept
      : weight_(rule.weight),
        shift_(_mm_set1_pd(rule.shift)),
        float_bound_(_mm_set1_epi32(std::bit_cast<std::int32_t>(rule.bound_of_floats))),
        bound_(_mm_set1_epi64x(std::bit_cast<std::int64_t>(rule.bound))) {}

  /// As far as whole lanes go. Returns for how many.
  template <bool TakesBack, class X>
  std::int64_t run(const X* from, std::int64_t length, std::int64_t* sums) noexcept {
    constexpr std::int64_t lanes = 16 / sizeof(X);
    __m128i any = _mm_setzero_si128();
    std::int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      // Every run begins new streams, where the processor's own prefetching starts over.
      SUBFED_PREFETCH(reinterpret_cast<std::uintptr_t>(sums + i) + 10 * 64);
      SUBFED_PREFETCH(reinterpret_cast<std::uintptr_t>(from + i) + 6 * 64);
      if constexpr (std::is_same_v<X, float>) {
        const __m128 x = _mm_loadu_ps(from + i);
        const __m128i size = _mm_and_si128(_mm_castps_si128(x), _mm_set1_epi32(0x7FFFFFFF));
        any = _mm_or_si128(any, _mm_sub_epi32(float_bound_, size));
        put<TakesBack>(sums + i, _mm_cvtps_pd(x));
        put<TakesBack>(sums + i + 2, _mm_cvtps_pd(_mm_movehl_ps(x, x)));
      } else {
        const __m128d x = _mm_loadu_pd(from + i);
        const __m128i size =
            _mm_and_si128(_mm_castpd_si128(x), _mm_set1_epi64x(0x7FFFFFFFFFFFFFFF));
        any = _mm_or_si128(any, _mm_sub_epi64(bound_, size));
        put<TakesBack>(sums + i, x);
      }
    }
    constexpr int signs = std::is_same_v<X, float> ? 0x8888 : 0x8080;
    any_ = (_mm_movemask_epi8(any) & signs) != 0;
    return i;
  }
  bool any_beyond() const noexcept { return any_; }

 private:
  template <bool TakesBack>
  void put(std::int64_t* to, __m128d x) const noexcept {
    auto* const at = static_cast<__m128i*>(static_cast<void*>(to));
    const __m128d product = Ones ? x : rounded_product(weight_, x);
    const __m128i bits = _mm_castpd_si128(_mm_add_pd(product, shift_));
    const __m128i term = _mm_sub_epi64(bits, _mm_castpd_si128(shift_));
    const __m128i before = _mm_loadu_si128(at);
    _mm_storeu_si128(at, TakesBack ? _mm_sub_epi64(before, term) : _mm_add_epi64(before, term));
  }

  double weight_;
  __m128d shift_;
  __m128i float_bound_, bound_;
  bool any_ = false;
};

/// Returns for how many values it has added terms: none where one is beyond the bound.
template <bool Ones, class X>
std::int64_t add_in_lanes(const X* from, std::int64_t length, const term_rule& rule,
                          std::int64_t* sums) noexcept {
  term_lanes<Ones> lanes(rule);
  const std::int64_t done = lanes.template run<false>(from, length, sums);
  if (!lanes.any_beyond()) return done;
  lanes.template run<true>(from, length, sums);
  return 0;
}
#endif

/// sums[i] += the term of from[i], float or double. Returns how many values are beyond the bound.
template <class X>
std::int64_t add_contiguous_terms(const X* from, std::int64_t length, const term_rule& rule,
                                  std::int64_t* sums) noexcept {
  std::int64_t done = 0;
#if defined(__SSE2__)
  if (rule.narrow) {
    done = rule.weight == 1 ? add_in_lanes<true>(from, length, rule, sums)
                            : add_in_lanes<false>(from, length, rule, sums);
  }
#endif
  std::int64_t beyond = 0;
  for (std::int64_t i = done; i < length; ++i) {
    const auto x = static_cast<double>(from[i]);
    sums[i] += rule(x);
    beyond += rule.is_beyond(x) ? 1 : 0;
  }
  return beyond;
}

/// values[i] = from[i stride].
template <class E>
void load_values(const E* from, std::int64_t stride, std::int64_t length, double* values) noexcept {
  if constexpr (has_lanes<E>) {
    if (stride == 1 && in_lanes<E>()) {
      const stream<E> one{from, 1};
      return add_streams(&one, 1, true, nullptr, values, length);  // onto -0, which changes nothing
    }
  }
  for (std::int64_t i = 0; i < length; ++i) values[i] = scalar_traits<E>::load(from[i * stride]);
}

/// sums[i sum_stride] += the term of from[i stride]. Returns how many values are beyond the bound.
template <class E>
std::int64_t add_terms(const E* from, std::int64_t stride, const term_rule& rule,
                       std::int64_t* sums, std::int64_t sum_stride, std::int64_t length) noexcept {
  if constexpr (has_lanes<E>) {
    if (stride == 1 && sum_stride == 1 && rule.narrow && in_lanes<E>()) {
      narrow_terms terms{rule.weight, rule.shift, rule.bound, false};
      bool any_beyond = false;
      const std::int64_t done = add_narrow_terms(from, length, terms, sums, any_beyond);
      std::int64_t beyond = 0;
      if (any_beyond) {
        terms.takes_back = true;
        add_narrow_terms(from, length, terms, sums, any_beyond);
      }
      for (std::int64_t i = any_beyond ? 0 : done; i < length; ++i) {
        const double x = scalar_traits<E>::load(from[i]);
        sums[i] += rule(x);
        beyond += rule.is_beyond(x) ? 1 : 0;
      }
      return beyond;
    }
  }
  if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
    if (stride == 1 && sum_stride == 1) return add_contiguous_terms(from, length, rule, sums);
  }
  constexpr std::int64_t block = 256;
  double values[block];
  std::int64_t beyond = 0;
  for (std::int64_t b = 0; b < length; b += block) {
    const std::int64_t here = (std::min)(length - b, block);
    load_values(from + b * stride, stride, here, values);
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

/// Whether any of the values is beyond the bound: one loop without a branch for floats and doubles.
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
template <class E>
bool any_beyond(const E* from, std::int64_t stride, std::int64_t length,
                const term_rule& rule) noexcept {
  if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
    if (stride == 1) return any_beyond(from, length, rule);
  }
  constexpr std::int64_t block = 256;
  double values[block];
  for (std::int64_t b = 0; b < length; b += block) {
    const std::int64_t here = (std::min)(length - b, block);
    load_values(from + b * stride, stride, here, values);
    if (any_beyond(values, here, rule)) return true;
  }
  return false;
}

/// out[i] = the value of sums[i], divided by a weight.
template <class T>
void fixed_mean(const std::int64_t* SUBFED_RESTRICT sums, double quantum, double weight,
                T* SUBFED_RESTRICT out, std::int64_t length) noexcept {
  // Divided by a multiple of the weight that is a power of two: nothing else is rounded.
  const divider by(scaled(weight, -exponent_of(quantum)));
  std::int64_t i = 0;
  if constexpr (has_lanes<T> && sizeof(T) == 2) {
    if (in_lanes<T>()) {
      constexpr std::int64_t block = 512;
      double values[block];
      for (; i < length; i += block) {
        const std::int64_t here = (std::min)(length - i, block);
        for (std::int64_t k = 0; k < here; ++k) values[k] = static_cast<double>(sums[i + k]);
        mean_streams<T>(nullptr, 0, true, values, by, division::by_instruction, out + i, here);
      }
      return;
    }
  }
#if defined(__SSE2__) && defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>) {
    const auto two = [sums](std::int64_t at) {
      const __m128d none = _mm_setzero_pd();
      return _mm_unpacklo_pd(_mm_cvtsi64_sd(none, sums[at]), _mm_cvtsi64_sd(none, sums[at + 1]));
    };
    const auto loop = [&](auto&& divided) {
      for (; i + 4 <= length; i += 4) {
        const __m128 low = _mm_cvtpd_ps(divided(two(i)));
        _mm_storeu_ps(out + i, _mm_movelh_ps(low, _mm_cvtpd_ps(divided(two(i + 2)))));
      }
    };
    if (by.exact) {
      loop([factor = _mm_set1_pd(by.reciprocal)](__m128d x) { return _mm_mul_pd(x, factor); });
    } else {
      loop([all = _mm_set1_pd(by.weight)](__m128d x) { return _mm_div_pd(x, all); });
    }
  }
#endif
  for (; i < length; ++i) {
    const auto sum = static_cast<double>(sums[i]);
    out[i] = scalar_traits<T>::store(by.exact ? sum * by.reciprocal : sum / by.weight);
  }
}

/// The double nearest to a sum of terms, times the quantum.
inline double value_of_sum(std::int64_t sum, double quantum) noexcept {
  return static_cast<double>(sum) * quantum;
}

}  // namespace subfed::inline v0::detail
