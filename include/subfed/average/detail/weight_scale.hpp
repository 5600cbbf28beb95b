// SPDX-License-Identifier: MIT
/// The power of two by which weights are multiplied so that sums and products stay in the range of
/// double. The bits of a result that would have been correct without it do not change. The rule is
/// in docs/numerics.md.
#pragma once

#include <subfed/average/detail/wide_number.hpp>
#include <subfed/scalar.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// How the weights of a tensor's holders are scaled.
struct weight_scale {
  std::int64_t exponent = 0;  ///< times 2 to its power
  bool wide = false;          ///< they are too far apart: every element needs wide numbers
};

/// For sums that are computed in one pass. far_reaching: see is_far_reaching().
///
/// Values in the range of float (2^-149 to 2^128) may have weights from 2^-800 to 2^400. Doubles
/// may be as small as 2^-1074: with weights from 2^110 on, all products have 53 bits; with whole
/// numbers for weights, denormal products are exact. Sums that are too large are detected
/// afterwards.
inline weight_scale scale_of(std::span<const double> weights, bool far_reaching) noexcept {
  if (weights.empty()) return {};
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  const std::int64_t low = exponent_of(*least);
  const std::int64_t high = exponent_of(*most);
  if (far_reaching) {
    const auto is_whole = [](double w) {
      return w >= 1 && w < 0x1p62 && static_cast<double>(static_cast<std::int64_t>(w)) == w;
    };
    if (std::all_of(weights.begin(), weights.end(), is_whole)) return {};
    if (high - low > 400) return {0, true};
    return {110 - low, false};
  }
  if (low >= -400 && high <= 400) return {};
  if (high - low > 800) return {0, true};
  return {-high, false};
}

/// The smallest and the largest exponent among finite numbers that are not 0.
class exponent_range {
 public:
  template <class E>
  void take(const E* from, std::int64_t stride, std::int64_t length) noexcept {
    const auto bits_of = [&](std::int64_t i) {
      return std::bit_cast<std::uint64_t>(scalar_traits<E>::load(from[i * stride])) & magnitude;
    };
    std::int64_t i = 0;
#if defined(__SSE2__)
    if constexpr (std::is_same_v<E, double>) {
      if (stride == 1) i = take_lanes(from, length);
    }
#endif
    for (; i < length; ++i) include(bits_of(i) - 1, bits_of(i));  // the largest for 0
    if (most_ < infinity) return;
    most_ = before_;
    for (i = 0; i < length; ++i) {
      if (bits_of(i) < infinity) most_ = (std::max)(most_, bits_of(i));
    }
    before_ = most_;
  }

  bool empty() const noexcept { return most_ == 0; }
  std::int64_t low() const noexcept { return exponent_of(std::bit_cast<double>(least_ + 1)); }
  std::int64_t high() const noexcept { return exponent_of(std::bit_cast<double>(most_)); }

 private:
#if defined(__SSE2__)
  /// Four at a time, in independent lanes. Returns how many.
  std::int64_t take_lanes(const double* from, std::int64_t length) noexcept {
    const __m128d size = _mm_castsi128_pd(_mm_set1_epi64x(static_cast<long long>(magnitude)));
    const __m128d inf = _mm_castsi128_pd(_mm_set1_epi64x(static_cast<long long>(infinity)));
    __m128d least[2] = {inf, inf};
    __m128d most[2] = {_mm_setzero_pd(), _mm_setzero_pd()};
    std::int64_t i = 0;
    for (; i + 4 <= length; i += 4) {
      for (int k = 0; k < 2; ++k) {
        const __m128d x = _mm_and_pd(_mm_loadu_pd(from + i + 2 * k), size);
        // The second operand where the first is a NaN.
        most[k] = _mm_max_pd(x, most[k]);
        const __m128d zero = _mm_cmpeq_pd(x, _mm_setzero_pd());
        least[k] = _mm_min_pd(_mm_or_pd(x, _mm_and_pd(zero, inf)), least[k]);
      }
    }
    for (int k = 0; k < 2; ++k) {
      double lows[2], highs[2];
      _mm_storeu_pd(lows, least[k]);
      _mm_storeu_pd(highs, most[k]);
      for (int j = 0; j < 2; ++j) {
        include(std::bit_cast<std::uint64_t>(lows[j]) - 1, std::bit_cast<std::uint64_t>(highs[j]));
      }
    }
    return i;
  }
#endif

  static constexpr std::uint64_t magnitude = 0x7FFFFFFFFFFFFFFFu;
  static constexpr std::uint64_t infinity = 0x7FF0000000000000u;
  static constexpr std::uint64_t no_bits = ~std::uint64_t{0};

  void include(std::uint64_t least, std::uint64_t most) noexcept {
    least_ = (std::min)(least_, least);
    most_ = (std::max)(most_, most);
    if (most_ < infinity) before_ = most_;
  }

  std::uint64_t least_ = no_bits;  ///< minus 1
  std::uint64_t most_ = 0;
  std::uint64_t before_ = 0;  ///< most_ without values that are not finite
};

/// The range of the exponents of a sum's products, and the power of two by which the sum is
/// multiplied.
struct product_range {
  std::int64_t low = 0;
  std::int64_t high = -1;  ///< less than low: none yet
  std::int64_t exponent = 0;

  bool empty() const noexcept { return high < low; }
  friend bool operator==(const product_range&, const product_range&) = default;
  void include(std::int64_t from, std::int64_t to) noexcept {
    low = empty() ? from : (std::min)(low, from);
    high = empty() ? to : (std::max)(high, to);
  }
  /// Chooses a new exponent where necessary. False: the products are too far apart.
  bool choose() noexcept {
    constexpr std::int64_t least = -1022;     // of a double with 53 bits
    constexpr std::int64_t most = 1023 - 60;  // leaves room for 2^60 of them
    if (empty()) return true;
    if (low + exponent >= least && high + exponent <= most) return true;
    if (high - low > most - least) return false;
    if (low >= least && high <= most) {
      exponent = 0;
    } else {
      exponent = (most + least) / 2 - (low + high) / 2;
      while (low + exponent < least) ++exponent;
      while (high + exponent > most) --exponent;
    }
    return true;
  }
};

}  // namespace subfed::inline v0::detail
