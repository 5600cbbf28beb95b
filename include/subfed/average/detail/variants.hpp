// SPDX-License-Identifier: MIT
/// The inner loops of averaging for the instructions that are in use (detail/instructions.hpp). All
/// give the bits of the loops in kernels.hpp, which are the baseline.
#pragma once

#include <subfed/average/detail/stream.hpp>
#include <subfed/config.hpp>
#include <subfed/detail/instructions.hpp>
#include <subfed/scalar.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if SUBFED_VARIANTS
#include <subfed/detail/lanes_avx2.hpp>
#include <subfed/detail/lanes_avx512.hpp>

#include <iterator>
#include <limits>
#include <span>
#include <utility>

#define SUBFED_TARGET SUBFED_AVX2
#define SUBFED_WORD SUBFED_AVX2 __attribute__((always_inline)) inline
namespace subfed::inline v0::detail::avx2 {
#include <subfed/average/detail/float_sums.inc>
// Each after those before it:
#include <subfed/average/detail/lane_kernels.inc>

#include <subfed/average/detail/masked_words.inc>

#include <subfed/average/detail/masked_floats.inc>

#include <subfed/average/detail/masked_kernels.inc>

#include <subfed/average/detail/pattern_kernels.inc>

#include <subfed/average/detail/column_kernels.inc>

#include <subfed/average/detail/run_kernels.inc>
}  // namespace subfed::inline v0::detail::avx2
#undef SUBFED_WORD
#undef SUBFED_TARGET

#define SUBFED_TARGET SUBFED_AVX512
#define SUBFED_WORD SUBFED_AVX512 __attribute__((always_inline)) inline
namespace subfed::inline v0::detail::avx512 {
#include <subfed/average/detail/float_sums.inc>
// Each after those before it:
#include <subfed/average/detail/lane_kernels.inc>

#include <subfed/average/detail/masked_words.inc>

#include <subfed/average/detail/masked_floats.inc>

#include <subfed/average/detail/masked_kernels.inc>

#include <subfed/average/detail/pattern_kernels.inc>

#include <subfed/average/detail/column_kernels.inc>

#include <subfed/average/detail/run_kernels.inc>
}  // namespace subfed::inline v0::detail::avx512
#undef SUBFED_WORD
#undef SUBFED_TARGET
#endif

namespace subfed::inline v0::detail {

template <class T>
inline constexpr bool is_own_float16 = false;
template <int MantissaBits>
inline constexpr bool is_own_float16<float16<MantissaBits>> =
    MantissaBits == 10 || MantissaBits == 7;

/// Element types that have vector loops.
template <class T>
concept has_lanes =
    std::same_as<T, float> || std::same_as<T, double> || is_own_float16<T> || foreign_float16<T>;

/// Whether vector loops are in use for a type.
template <class T>
bool in_lanes() noexcept {
  return has_lanes<T> && instructions_in_use() != instructions::baseline;
}

#if SUBFED_VARIANTS

/// sums[i] = (before ? before[i] : -0) + the streams' sum at i. before may be sums.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
void add_streams(const stream<T>* streams, std::size_t count, bool ones, const double* before,
                 double* sums, std::int64_t length) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::add_streams(streams, count, ones, before, sums, length);
  } else {
    avx2::add_streams(streams, count, ones, before, sums, length);
  }
}

/// out[i] = ((before ? before[i] : -0) + the streams' sum at i) / weight.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
void mean_streams(const stream<T>* streams, std::size_t count, bool ones, const double* before,
                  const divider& by, division how, T* out, std::int64_t length) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::mean_streams(streams, count, ones, before, by, how, out, length);
  } else {
    avx2::mean_streams(streams, count, ones, before, by, how, out, length);
  }
}

/// out[i] = sums[i] / weights[i]; elements without weight keep their bits. Returns how many have some.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
std::int64_t divide_weighted(const double* sums, const double* weights, T* out,
                             std::int64_t length) noexcept {
  return instructions_in_use() == instructions::avx512
             ? avx512::divide_weighted(sums, weights, out, length)
             : avx2::divide_weighted(sums, weights, out, length);
}

/// The means of rows with the same holders; what nobody holds keeps its bits. Afterwards
/// holders are past the last row.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
void pattern_mean(const masked_pattern& pattern, const pattern_holders<T>& holders,
                  const pattern_rows<T>& rows) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::pattern_mean(pattern, holders, rows);
  } else {
    avx2::pattern_mean(pattern, holders, rows);
  }
}

/// pattern_mean for many holders.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
void columns_mean(const column_pattern& pattern, const pattern_holders<T>& holders,
                  const pattern_rows<T>& rows) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::columns_mean(pattern, holders, rows);
  } else {
    avx2::columns_mean(pattern, holders, rows);
  }
}

/// pattern_mean for holders of few runs.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
void runs_mean(const run_pattern& pattern, const pattern_holders<T>& holders,
               const pattern_rows<T>& rows) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::runs_mean(pattern, holders, rows);
  } else {
    avx2::runs_mean(pattern, holders, rows);
  }
}

/// The means of a row's elements that somebody holds; others keep their bits. Returns how many.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
std::int64_t masked_mean(const masked_row<T>& row) noexcept {
  return instructions_in_use() == instructions::avx512 ? avx512::masked_mean(row)
                                                       : avx2::masked_mean(row);
}

/// to[i] = one holder's element i of a row as a float, or -0.
///
/// Pre  in_lanes<T>(); to has room for a multiple of 16
template <has_lanes T>
void spread_masked(const masked_holder<T>& own, std::int64_t length, float* to) noexcept {
  if (instructions_in_use() == instructions::avx512) {
    avx512::spread_masked(own, length, to);
  } else {
    avx2::spread_masked(own, length, to);
  }
}

/// masked_mean of a row whose sums are known: holders need no data. out[i] = sums[i] / the holders' weight.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
std::int64_t divide_masked(const masked_row<T>& row, const double* sums) noexcept {
  return instructions_in_use() == instructions::avx512 ? avx512::divide_masked(row, sums)
                                                       : avx2::divide_masked(row, sums);
}

/// sums[i] += (or -=) the term of from[i], as far as whole vectors go. Returns for how many.
///
/// Pre  in_lanes<T>()
template <has_lanes T>
std::int64_t add_narrow_terms(const T* from, std::int64_t length, const narrow_terms& rule,
                              std::int64_t* sums, bool& any_beyond) noexcept {
  return instructions_in_use() == instructions::avx512
             ? avx512::add_narrow_terms(from, length, rule, sums, any_beyond)
             : avx2::add_narrow_terms(from, length, rule, sums, any_beyond);
}

#else

template <has_lanes T>
std::int64_t add_narrow_terms(const T*, std::int64_t, const narrow_terms&, std::int64_t*,
                              bool&) noexcept {
  return 0;
}
template <has_lanes T>
void add_streams(const stream<T>*, std::size_t, bool, const double*, double*,
                 std::int64_t) noexcept {}
template <has_lanes T>
void mean_streams(const stream<T>*, std::size_t, bool, const double*, const divider&, division, T*,
                  std::int64_t) noexcept {}
template <has_lanes T>
std::int64_t divide_weighted(const double*, const double*, T*, std::int64_t) noexcept {
  return 0;
}
template <has_lanes T>
std::int64_t masked_mean(const masked_row<T>&) noexcept {
  return 0;
}
template <has_lanes T>
void spread_masked(const masked_holder<T>&, std::int64_t, float*) noexcept {}
template <has_lanes T>
std::int64_t divide_masked(const masked_row<T>&, const double*) noexcept {
  return 0;
}
template <has_lanes T>
void pattern_mean(const masked_pattern&, const pattern_holders<T>&,
                  const pattern_rows<T>&) noexcept {}
template <has_lanes T>
void columns_mean(const column_pattern&, const pattern_holders<T>&,
                  const pattern_rows<T>&) noexcept {}
template <has_lanes T>
void runs_mean(const run_pattern&, const pattern_holders<T>&, const pattern_rows<T>&) noexcept {}

#endif

}  // namespace subfed::inline v0::detail
