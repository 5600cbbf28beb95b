// SPDX-License-Identifier: MIT
/// The inner loops of averaging. Each element's products and sums are rounded one by one, in double
/// and in the order given, in all of them: which loop an element goes through never affects its
/// bits. Sums start from -0, which changes no number that is added to it; 0 would turn -0 into 0.
#pragma once

#include <subfed/average/detail/stream.hpp>
#include <subfed/average/detail/variants.hpp>
#include <subfed/config.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

#if defined(__SSE2__)
/// See rounded_product.hpp.
inline __m128d rounded_product(double factor, __m128d x) noexcept {
  const __m128d product = _mm_mul_pd(_mm_set1_pd(factor), x);
#if defined(__FMA__)
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  const int zero = (std::bit_cast<std::uint64_t>(factor) & exponent) == exponent ? 1 : 0;
  return _mm_castsi128_pd(_mm_xor_si128(_mm_castpd_si128(product), _mm_set1_epi64x(zero)));
#else
  return product;
#endif
}
#endif

/// sums[i] = -0: nothing has been added. Long runs of elements bypass the cache, as in memset.
inline void clear_sums(double* sums, std::int64_t length) noexcept {
  std::int64_t i = 0;
#if defined(__SSE2__)
  constexpr std::int64_t past_cache_pays = 1 << 17;
  if (length >= past_cache_pays) {
    for (; reinterpret_cast<std::uintptr_t>(sums + i) % 16 != 0; ++i) sums[i] = -0.0;
    const __m128d nothing = _mm_set1_pd(-0.0);
    for (; i + 2 <= length; i += 2) _mm_stream_pd(sums + i, nothing);
    _mm_sfence();
  }
#endif
  for (; i < length; ++i) sums[i] = -0.0;
}

/// sums[i sum_stride] += weight * from[i stride].
template <class T>
void accumulate(const T* from, std::int64_t stride, double weight, double* sums,
                std::int64_t sum_stride, std::int64_t length) noexcept {
  using traits = scalar_traits<T>;
  constexpr std::int64_t lanes_pay = 16;  // below, the loop is as fast
  if constexpr (has_lanes<T>) {
    if (stride == 1 && sum_stride == 1 && length >= lanes_pay && in_lanes<T>()) {
      const stream<T> one{from, weight};
      return add_streams(&one, 1, weight == 1, sums, sums, length);
    }
  }
  if (stride != 1 || sum_stride != 1) {
    for (std::int64_t i = 0; i < length; ++i) {
      sums[i * sum_stride] += rounded_product(weight, traits::load(from[i * stride]));
    }
  } else if (weight == 1) {
    for (std::int64_t i = 0; i < length; ++i) sums[i] += traits::load(from[i]);
  } else {
    for (std::int64_t i = 0; i < length; ++i) {
      sums[i] += rounded_product(weight, traits::load(from[i]));
    }
  }
}

/// The same for contiguous units of U elements each, U known to the compiler: short runs of the kernel
/// of a convolution.
template <std::int64_t U, class T>
void accumulate_units(const T* SUBFED_RESTRICT from, double weight, double* SUBFED_RESTRICT sums,
                      std::int64_t units) noexcept {
  for (; units > 0; --units, from += U, sums += U) {
    for (std::int64_t k = 0; k < U; ++k) {
      sums[k] += rounded_product(weight, scalar_traits<T>::load(from[k]));
    }
  }
}

/// sums[k] += from[k] for a unit of U elements.
template <std::int64_t U, class T>
void add_unit(const T* SUBFED_RESTRICT from, double* SUBFED_RESTRICT sums) noexcept {
  for (std::int64_t k = 0; k < U; ++k) sums[k] += scalar_traits<T>::load(from[k]);
}

/// out[i] = sums[i] / weights[i]; elements without weight keep their bits. Returns how many had some.
template <class T>
std::int64_t divide_each(const double* SUBFED_RESTRICT sums, const double* SUBFED_RESTRICT weights,
                         T* SUBFED_RESTRICT out, std::int64_t length) noexcept {
  using traits = scalar_traits<T>;
  if constexpr (has_lanes<T>) {
    if (in_lanes<T>()) return divide_weighted(sums, weights, out, length);
  }
  std::int64_t held = 0;
  for (std::int64_t i = 0; i < length; ++i) held += weights[i] > 0 ? 1 : 0;
  if (held == length) {  // the usual case, without a branch in the loop
    for (std::int64_t i = 0; i < length; ++i) out[i] = traits::store(sums[i] / weights[i]);
  } else {
    for (std::int64_t i = 0; i < length; ++i) {
      if (weights[i] > 0) out[i] = traits::store(sums[i] / weights[i]);
    }
  }
  return held;
}

/// out[i] = sums[i] / weight for a unit of U elements.
template <std::int64_t U, class T>
void divide_unit(const double* SUBFED_RESTRICT sums, const divider& by,
                 T* SUBFED_RESTRICT out) noexcept {
  using traits = scalar_traits<T>;
  if (by.exact) {
    for (std::int64_t k = 0; k < U; ++k) out[k] = traits::store(sums[k] * by.reciprocal);
  } else {
    for (std::int64_t k = 0; k < U; ++k) out[k] = traits::store(sums[k] / by.weight);
  }
}

/// `Streams` runs that are added up together, so that the running sum stays in a register. Ones:
/// all weights are 1.
template <class T, std::size_t Streams, bool Ones>
class stream_group {
 public:
  explicit stream_group(const stream<T>* streams) noexcept {
    for (std::size_t h = 0; h < Streams; ++h) {
      data_[h] = streams[h].data;
      weight_[h] = streams[h].weight;
    }
  }

  /// sums[i] = (First ? -0 : sums[i]) + the streams' sum at i.
  template <bool First>
  void add(double* SUBFED_RESTRICT sums, std::int64_t length) const noexcept {
    for (std::int64_t i = 0; i < length; ++i) sums[i] = total(First ? -0.0 : sums[i], i, all);
  }

  /// out[i] = ((sums ? sums[i] : -0) + the streams' sum at i) / weight.
  void mean(const double* SUBFED_RESTRICT sums, const divider& by, T* SUBFED_RESTRICT out,
            std::int64_t length) const noexcept {
#if defined(__SSE2__)
    if constexpr (std::is_same_v<T, float>) {
      if (sums == nullptr) return mean_in_lanes(by, out, length);
    }
#endif
    using traits = scalar_traits<T>;
    const auto loop = [&](auto&& initial, auto&& divided) {
      for (std::int64_t i = 0; i < length; ++i) {
        out[i] = traits::store(divided(total(initial(i), i, all)));
      }
    };
    const auto from = [&](auto&& divided) {
      if (sums == nullptr) {
        loop([](std::int64_t) { return -0.0; }, divided);
      } else {
        loop([sums](std::int64_t i) { return sums[i]; }, divided);
      }
    };
    const double weight = by.weight;
    const double reciprocal = by.reciprocal;
    if (by.exact) {
      from([reciprocal](double sum) { return sum * reciprocal; });
    } else {
      from([weight](double sum) { return sum / weight; });
    }
  }

#if defined(__SSE2__)
  /// The same without sums for floats: four at a time, and prefetching what comes 8 cache lines
  /// later. Every row begins new streams, where the processor's own prefetching starts over.
  void mean_in_lanes(const divider& by, T* out, std::int64_t length) const noexcept {
    constexpr std::int64_t lanes = 4;
    std::int64_t i = 0;
    const auto loop = [&](auto&& divided) {
      for (; i + lanes <= length; i += lanes) {
        __m128d low = _mm_set1_pd(-0.0);
        __m128d high = low;
        add_lanes(low, high, i, all);
        _mm_storeu_ps(out + i,
                      _mm_movelh_ps(_mm_cvtpd_ps(divided(low)), _mm_cvtpd_ps(divided(high))));
      }
    };
    if (by.exact) {
      loop([factor = _mm_set1_pd(by.reciprocal)](__m128d x) { return _mm_mul_pd(x, factor); });
    } else {
      loop([weight = _mm_set1_pd(by.weight)](__m128d x) { return _mm_div_pd(x, weight); });
    }
    for (; i < length; ++i) {
      const double sum = total(-0.0, i, all);
      out[i] = scalar_traits<T>::store(by.exact ? sum * by.reciprocal : sum / by.weight);
    }
  }
#endif

 private:
  static constexpr std::make_index_sequence<Streams> all{};

#if defined(__SSE2__)
  template <std::size_t... H>
  void add_lanes(__m128d& low, __m128d& high, std::int64_t i,
                 std::index_sequence<H...>) const noexcept {
    const auto add = [&](const T* from, double weight) {
      SUBFED_PREFETCH(reinterpret_cast<std::uintptr_t>(from) + 8 * 64);
      const __m128 x = _mm_loadu_ps(from);
      __m128d a = _mm_cvtps_pd(x);
      __m128d b = _mm_cvtps_pd(_mm_movehl_ps(x, x));
      if constexpr (!Ones) {
        a = rounded_product(weight, a);
        b = rounded_product(weight, b);
      }
      low = _mm_add_pd(low, a);
      high = _mm_add_pd(high, b);
    };
    (add(data_[H] + i, weight_[H]), ...);
  }
#endif

  template <std::size_t... H>
  [[SUBFED_ALWAYS_INLINE]] double total(double sum, std::int64_t i,
                                        std::index_sequence<H...>) const noexcept {
    using traits = scalar_traits<T>;
    if constexpr (Ones) {
      ((sum += traits::load(data_[H][i])), ...);
    } else {
      ((sum += rounded_product(weight_[H], traits::load(data_[H][i]))), ...);
    }
    return sum;
  }

  const T* data_[Streams];
  double weight_[Streams];
};

/// The largest number of streams that are added up together.
inline constexpr std::size_t stream_limit = 4;

/// Calls f(stream_group of the streams) for 1 .. stream_limit streams; ones: all weights are 1.
template <class T, class F>
void with_streams(const stream<T>* streams, std::size_t count, bool ones, F&& f) {
  const auto sized = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    if (ones) {
      f(stream_group<T, N, true>(streams));
    } else {
      f(stream_group<T, N, false>(streams));
    }
  };
  switch (count) {
    case 1:
      return sized(std::integral_constant<std::size_t, 1>{});
    case 2:
      return sized(std::integral_constant<std::size_t, 2>{});
    case 3:
      return sized(std::integral_constant<std::size_t, 3>{});
    default:
      return sized(std::integral_constant<std::size_t, 4>{});
  }
}

}  // namespace subfed::inline v0::detail
