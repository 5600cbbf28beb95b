// SPDX-License-Identifier: MIT
/// What an average consists of besides its participants, and what the options do to a mean.
#pragma once

#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace subfed::inline v0::detail {

/// What one part of the work did.
struct part_report {
  std::int64_t held = 0;
  std::int64_t skipped = 0;
  std::int64_t overflowed = 0;
  std::int64_t first_overflow = -1;  ///< the row-major global offset of one of them

  void count_overflow(std::int64_t offset) noexcept {
    ++overflowed;
    if (first_overflow < 0 || offset < first_overflow) first_overflow = offset;
  }
};

/// Whether results are written, or only counted.
enum class pass { writes, rehearses };

/// What an average consists of besides the participants. Weights, including the cohort's, may have
/// been multiplied by a power of two.
struct average_terms {
  const double* sums = nullptr;  ///< what participants without data have added up, row-major
  const std::int64_t* fixed_sums = nullptr;  ///< the same, in options.sums
  const double* weights =
      nullptr;  ///< where there are no participants: the weights of each element
  average_options options = {};
  double cohort_weight = 0;
  double weight_rounding = 0;         ///< relative: how far apart two sums of all weights may be
  double largest = 0;                 ///< the largest number of the types that went into the sums
  std::int64_t weights_exponent = 0;  ///< `weights` times 2 to its power go with the sums
  bool wide = false;  ///< weights are so far apart that every element needs wide numbers
  pass does = pass::writes;
  double quantum = 1;  ///< of fixed-point sums

  bool has_sums() const noexcept { return sums != nullptr || fixed_sums != nullptr; }
  /// Pre: has_sums().
  double sum_at(std::int64_t offset) const noexcept {
    return fixed_sums == nullptr ? sums[offset] : value_of_sum(fixed_sums[offset], quantum);
  }
  /// Where results may exceed a number, they exceed this one: the largest of the types, or of what
  /// fixed-point sums hold.
  double largest_of_values(double of_types) const noexcept {
    return options.sums ? 2 * options.sums->bound : of_types;
  }

  /// The selective average itself, without options that need the old values.
  bool is_plain() const noexcept {
    return options.divide_by == divisor::holders && options.content == content::parameters &&
           options.step == 1;
  }
};

/// How far apart sums of so many weights in different orders may be, in parts of them.
inline double rounding_of_weights(std::int64_t clients) noexcept {
  return static_cast<double>(clients) * std::numeric_limits<double>::epsilon();
}

/// The weight of the clients that do not hold an element of which the holders have this weight. The forms
/// of the average add weights in different orders: what may come from their rounding is nobody's.
inline double absent_weight(const average_terms& terms, double weight) noexcept {
  const double absent = terms.cohort_weight - weight;
  const bool may_be_rounding =
      !terms.wide &&
      std::fabs(absent) <= rounded_product(terms.cohort_weight, terms.weight_rounding);
  return may_be_rounding ? 0 : absent;
}

/// The new value where options are not the plain selective average. Of doubles or wide numbers.
inline double combined(const average_terms& terms, double sum, double weight, double old) noexcept {
  const bool all = terms.options.divide_by == divisor::cohort;
  const double total = all ? terms.cohort_weight : weight;
  const double step = terms.options.step;
  if (terms.options.content == content::deltas) return old + rounded_product(step, sum / total);
  // Where no client is absent the old value does not enter, finite or not.
  const double absent = all ? absent_weight(terms, weight) : 0;
  if (absent != 0) sum += rounded_product(absent, old);
  const double average = sum / total;
  return step == 1 ? average : old + rounded_product(step, average - old);
}

/// Whether the old value enters the new one.
inline bool takes_old(const average_terms& terms, double weight) noexcept {
  return terms.options.content == content::deltas || terms.options.step != 1 ||
         (terms.options.divide_by == divisor::cohort && absent_weight(terms, weight) != 0);
}

/// Whether combined() may lose what clients that do not hold a tiny element contribute to the sum.
inline bool loses_old(const average_terms& terms, double weight, double old) noexcept {
  if (terms.options.divide_by != divisor::cohort || terms.options.content == content::deltas) {
    return false;
  }
  const double absent = absent_weight(terms, weight);
  const double part = rounded_product(absent, old);
  constexpr double tiny = power_of_two(-960);
  return absent != 0 && old != 0 && part < tiny && part > -tiny;
}

/// The new value, plain or combined(), where sums or products leave the range of double. A mean
/// that rounding takes over the largest double becomes the largest double. Pre: the weight is
/// positive, old finite.
inline double careful_value(const average_terms& terms, wide_number sum, wide_number weight,
                            double old) noexcept {
  const bool all = terms.options.divide_by == divisor::cohort;
  const bool deltas = terms.options.content == content::deltas;
  const double step = terms.options.step;
  const wide_number total = all ? wide_number(terms.cohort_weight) : weight;
  const wide_number before(old);
  wide_number out;
  if (deltas) {
    out = before + wide_number(step) * (sum / total);
  } else {
    const wide_number absent = total - weight;
    const bool enters = all && !absent.is_zero() && absent_weight(terms, weight.value()) != 0;
    if (enters) sum = sum + absent * before;
    out = sum / total;
    if (step != 1) out = before + wide_number(step) * (out - before);
  }
  const double value = out.value();
  constexpr double largest = (std::numeric_limits<double>::max)();
  const bool is_mean = !deltas && step >= 0 && step <= 1;
  if (is_mean && !is_finite_double(value)) return std::signbit(value) ? -largest : largest;
  return value;
}

}  // namespace subfed::inline v0::detail
