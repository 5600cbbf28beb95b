// SPDX-License-Identifier: MIT
/// The inner loops of averaging. Each element's products and sums are rounded one by one, in double
/// and in the order given, in all of them: which loop an element goes through never shows in its
/// bits.
#pragma once

#include <subfed/config.hpp>
#include <subfed/scalar.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace subfed::inline v0::detail {

/// factor * x, rounded, for a finite factor: no compiler fuses it with the addition that follows, so
/// that sums have the same bits with and without FMA instructions. Neither pragmas nor barriers do
/// (Clang ignores them under -ffp-contract=fast, GCC drops them from loops that it vectorises), but an
/// integer operation in between does; its operand stays the same in a loop.
inline double rounded_product(double factor, double x) noexcept {
#if defined(__x86_64__) && !defined(__FMA__)
  return factor * x;  // nothing to fuse with
#else
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  const std::uint64_t zero = (std::bit_cast<std::uint64_t>(factor) & exponent) == exponent ? 1 : 0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(factor * x) ^ zero);
#endif
}

/// One client's stretch of elements.
template <class T>
struct stream {
  const T* data;
  double weight;
};

/// Division by a weight: by its reciprocal where that gives the same bits.
struct divider {
  double weight;
  double reciprocal;
  bool exact;  ///< weight is a power of two far from the ends of the range

  explicit divider(double w) noexcept : weight(w), reciprocal(1 / w) {
    const auto bits = std::bit_cast<std::uint64_t>(w);
    const auto exponent = bits >> 52;
    exact = (bits & 0xFFFFFFFFFFFFFu) == 0 && exponent > 1023 - 64 && exponent < 1023 + 64;
  }
};

/// sums[i sum_stride] += weight * from[i stride].
template <class T>
void accumulate(const T* from, std::int64_t stride, double weight, double* sums,
                std::int64_t sum_stride, std::int64_t length) noexcept {
  using traits = scalar_traits<T>;
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

/// out[i] = sums[i] / weights[i]; elements without weight keep their bits. Returns how many had some.
template <class T>
std::int64_t divide_each(const double* SUBFED_RESTRICT sums, const double* SUBFED_RESTRICT weights,
                         T* SUBFED_RESTRICT out, std::int64_t length) noexcept {
  using traits = scalar_traits<T>;
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

/// `Streams` stretches that are added up at once, so that the running sum stays in a register.
/// Ones: all weights are 1.
template <class T, std::size_t Streams, bool Ones>
class stream_group {
 public:
  explicit stream_group(const stream<T>* streams) noexcept {
    for (std::size_t h = 0; h < Streams; ++h) {
      data_[h] = streams[h].data;
      weight_[h] = streams[h].weight;
    }
  }

  /// sums[i] = (First ? 0 : sums[i]) + the streams' sum at i.
  template <bool First>
  void add(double* SUBFED_RESTRICT sums, std::int64_t length) const noexcept {
    for (std::int64_t i = 0; i < length; ++i) sums[i] = total(First ? 0.0 : sums[i], i, all);
  }

  /// out[i] = ((sums ? sums[i] : 0) + the streams' sum at i) / weight.
  void mean(const double* SUBFED_RESTRICT sums, const divider& by, T* SUBFED_RESTRICT out,
            std::int64_t length) const noexcept {
    using traits = scalar_traits<T>;
    const auto loop = [&](auto&& initial, auto&& divided) {
      for (std::int64_t i = 0; i < length; ++i) {
        out[i] = traits::store(divided(total(initial(i), i, all)));
      }
    };
    const auto from = [&](auto&& divided) {
      if (sums == nullptr) {
        loop([](std::int64_t) { return 0.0; }, divided);
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

 private:
  static constexpr std::make_index_sequence<Streams> all{};

  template <std::size_t... H>
  double total(double sum, std::int64_t i, std::index_sequence<H...>) const noexcept {
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

/// The most streams that are added up at once.
inline constexpr std::size_t stream_limit = 4;

/// Calls f(stream_group of the streams) for 1 .. stream_limit streams.
template <class T, class F>
void with_streams(const stream<T>* streams, std::size_t count, F&& f) {
  bool ones = true;
  for (std::size_t h = 0; h < count; ++h) ones = ones && streams[h].weight == 1;
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
