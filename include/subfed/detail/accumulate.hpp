// SPDX-License-Identifier: MIT
/// The inner loops of averaging: adding a stretch of a client's tensor to a tile of sums.
#pragma once

#include <subfed/scalar.hpp>

#include <cstdint>

namespace subfed::inline v0::detail {

/// weight * x, rounded: the compiler may not fuse it with the addition that follows, so that the
/// sums have the same bits with and without FMA instructions.
inline double rounded_product(double weight, double x) noexcept {
#if defined(__clang__)
#pragma clang fp contract(off)
  return weight * x;
#elif defined(__GNUC__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(weight * x);
#else
  return weight * x;
#endif
}

/// sums[i sum_stride] += weight * from[i stride]; products and sums are rounded one by one, in
/// double.
template <class T>
void accumulate(const T* from, std::int64_t stride, double weight, double* sums,
                std::int64_t sum_stride, std::int64_t length) noexcept {
  using traits = scalar_traits<T>;
  const auto add = [&](auto step, auto sum_step) {
    if (weight == 1) {
      for (std::int64_t i = 0; i < length; ++i) {
        sums[i * sum_step] += traits::load(from[i * step]);
      }
    } else {
      for (std::int64_t i = 0; i < length; ++i) {
        sums[i * sum_step] += rounded_product(weight, traits::load(from[i * step]));
      }
    }
  };
  struct one {
    constexpr operator std::int64_t() const noexcept { return 1; }
  };
  if (stride == 1 && sum_stride == 1) {
    add(one{}, one{});
  } else {
    add(stride, sum_stride);
  }
}

}  // namespace subfed::inline v0::detail
