// SPDX-License-Identifier: MIT
/// How evenly items (nodes, parameters) were held, from how often each was held.
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Times held -> items that were held that often.
using count_histogram = std::map<std::int64_t, std::int64_t>;

/// Evenness of n counts x_1 .. x_n.
struct evenness {
  std::int64_t items = 0;  ///< n
  std::int64_t min = 0;    ///< times that the least held item was held
  std::int64_t max = 0;    ///< times that the most held item was held
  double mean = 0;
  double variance = 0;      ///< sum (x_i - mean)^2 / n
  std::int64_t unseen = 0;  ///< items that were never held
  double unseen_share = 0;  ///< unseen / items, 0 for no items
  /// Gini coefficient, sum_i (2 i - n - 1) x_i / (n sum_i x_i) over ascending x_i: 0 when all were
  /// held equally often, near 1 when only a few were held. 0 for all zeros.
  double gini = 0;
  /// Shannon's entropy of the shares p_i = x_i / sum x over its largest value, -sum p_i log
  /// p_i / log n: 1 when all were held equally often, 0 when only one was held. 1 for all zeros and
  /// for n < 2.
  double entropy = 1;
};

/// Evenness of counts that a histogram lists.
///
/// Throws    error for a negative count or number of items, or more than 2^63 - 1 items.
/// Numerics  Sums in double over ascending counts; the variance by the deviations from the mean.
inline evenness evenness_of(const count_histogram& histogram) {
  evenness out;
  double total = 0;
  for (const auto& [times, items] : histogram) {
    if (times < 0 || items < 0) {
      detail::fail("subfed: evenness: " + std::to_string(items) + " items were held " +
                   std::to_string(times) + " times, expected a number that is not negative");
    }
    if (items == 0) continue;
    if (out.items == 0) out.min = times;
    out.max = times;
    if (!detail::add(out.items, items)) {
      detail::fail("subfed: evenness: more than 2^63 - 1 items");
    }
    if (times == 0) out.unseen = items;
    total += detail::rounded_product(static_cast<double>(times), static_cast<double>(items));
  }
  if (out.items == 0) return out;
  const auto n = static_cast<double>(out.items);
  out.mean = total / n;
  out.unseen_share = static_cast<double>(out.unseen) / n;
  double before = 0;  // items held less often
  double ranked = 0;
  double squares = 0;
  double disorder = 0;
  for (const auto& [times, items] : histogram) {
    const auto x = static_cast<double>(times);
    const auto w = static_cast<double>(items);
    ranked += detail::rounded_product(x * w, 2 * before + w - n);
    before += w;
    squares += detail::rounded_product(w * (x - out.mean), x - out.mean);
    if (x > 0) disorder -= w * (x / total) * std::log(x / total);
  }
  out.variance = squares / n;
  // For nearly even counts the sum can round to less than 0.
  if (total > 0) out.gini = (std::max)(ranked / (n * total), 0.0);
  if (total > 0 && out.items > 1) out.entropy = disorder / std::log(n);
  return out;
}

/// Evenness of counts.
///
/// Throws  error for a negative count.
/// Cost    O(n log n).
inline evenness evenness_of(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end());
  count_histogram histogram;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    histogram.emplace_hint(histogram.end(), sorted[i], static_cast<std::int64_t>(end - i));
    i = end;
  }
  return evenness_of(histogram);
}

}  // namespace subfed::inline v0
