// SPDX-License-Identifier: MIT
/// What an average is made of besides its participants, and what the options make of a mean.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_kernels.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// An element that a client's update left out although the client holds it.
struct exclusion {
  std::int64_t offset;  ///< of the element in the row-major global tensor
  std::size_t participant;

  friend auto operator<=>(const exclusion&, const exclusion&) = default;
};

/// What an average is made of besides the participants.
struct average_terms {
  const double* sums = nullptr;  ///< what participants without data have added up, row-major
  const double* weights =
      nullptr;  ///< where there are no participants: the weights of each element
  std::span<const exclusion> exclusions = {};  ///< sorted
  average_options options = {};
  double cohort_weight = 0;

  /// The selective average itself, without options that need the old values.
  bool is_plain() const noexcept {
    return options.divide_by == divisor::holders && options.content == content::parameters &&
           options.step == 1;
  }
};

/// The new value where options are not the plain selective average.
inline double combined(const average_terms& terms, double sum, double weight, double old) noexcept {
  const bool all = terms.options.divide_by == divisor::cohort;
  const double total = all ? terms.cohort_weight : weight;
  const double step = terms.options.step;
  if (terms.options.content == content::deltas) return old + rounded_product(step, sum / total);
  if (all) sum += rounded_product(total - weight, old);
  const double average = sum / total;
  return step == 1 ? average : old + rounded_product(step, average - old);
}

}  // namespace subfed::inline v0::detail
