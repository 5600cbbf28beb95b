// SPDX-License-Identifier: MIT
/// Sums of integers instead of doubles: the same bits in any order, from any tree of merges.
#pragma once

#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

namespace subfed::inline v0 {

/// What happens to an update with a value beyond fixed_point::bound among the elements that take
/// part. A NaN is beyond every bound, and so is an infinity; neither can be clipped.
enum class out_of_bound {
  refuse,       ///< error that names client, tensor and element; nothing changes
  skip_client,  ///< the whole update is left out, and counted
  clip,         ///< the value counts as the bound, with its sign, and is counted
};

/// Sums in 64-bit integers: average_options::sums. Integers are added exactly, so the average has
/// the same bits for any order of the updates, any tree of merges, and any number of threads,
/// processes and machines, in one pass and streaming:
///
///   subfed::selective_average<float> mean(net, {.sums = subfed::fixed_point{.bound = 4, .clients = 100}});
///
/// Each product of weight and value is rounded once to a multiple of the quantum, a power of two
/// that follows from this declaration alone:
///
///   p      = the weight, rounded to a multiple of 2^(c(total_weight) - 52)
///   q      = 2^(c(bound) + c(total_weight) - min(62, 50 + floor(log2(clients))))
///   term   = the integer nearest to the double nearest to p x / q; ties to the even one
///   sum    = q times the sum of the terms;  c(y): the least integer with 2^c(y) >= y
///
/// Sums of weights are exact too. No sum can overflow: |x| <= bound, and weights that add up to more
/// than total_weight are refused (one part in a million is allowed for their rounding).
///
/// Numerics  An average of n holders with total weight P differs from the exact one by at most
///           n q / (2 P) + 2^-51 bound, before it is rounded to T: error_bound(n, P). For equal
///           weights and up to 4096 clients this is less than 2^-47 bound. A result of 0 is +0.
struct fixed_point {
  double bound = 1;          ///< of |x|, for all parameters and statistics: 2^-400 to 2^400
  std::int64_t clients = 1;  ///< updates that are expected: more of them are less exact
  double total_weight =
      0;  ///< the largest sum of weights, 2^-400 to 2^400; 0: that of `clients` ones
  out_of_bound on_out_of_bound = out_of_bound::refuse;

  /// The largest sum of weights.
  constexpr double total() const noexcept {
    return total_weight == 0 ? static_cast<double>(clients) : total_weight;
  }
  /// The largest sum of rounded weights.
  constexpr double most() const noexcept { return total() * (1 + 0x1p-20); }
  /// The quantum of sums is 2 to this power.
  constexpr std::int64_t exponent() const noexcept {
    const std::int64_t more = 63 - std::countl_zero(static_cast<std::uint64_t>(clients));
    return ceiling_of(bound) + ceiling_of(total()) - (std::min)(std::int64_t{62}, 50 + more);
  }
  /// Of sums: 2 to the power of exponent().
  constexpr double quantum() const noexcept { return detail::power_of_two(exponent()); }
  /// Of weights.
  constexpr double weight_quantum() const noexcept {
    return detail::power_of_two(ceiling_of(total()) - 52);
  }
  /// How much an average over so many holders with that total weight may differ from the exact one,
  /// before it is rounded to its type.
  constexpr double error_bound(std::int64_t holders, double weight) const noexcept {
    return static_cast<double>(holders) * (quantum() / 2) / weight + bound * 0x1p-51;
  }

  friend bool operator==(const fixed_point&, const fixed_point&) = default;

 private:
  /// The least e with 2^e >= x.
  static constexpr std::int64_t ceiling_of(double x) noexcept {
    const bool is_power = (std::bit_cast<std::uint64_t>(x) & 0xFFFFFFFFFFFFFu) == 0;
    return detail::exponent_of(x) + (is_power ? 0 : 1);
  }
};

namespace detail {

inline void check_fixed_point(const fixed_point& sums) {
  const auto is_usual = [](double x) {
    return is_finite_double(x) && x >= power_of_two(-400) && x <= power_of_two(400);
  };
  const auto refuse = [](const char* what, const std::string& found, const char* expected) {
    fail(std::string("subfed: fixed_point: ") + what + " is " + found + ", expected " + expected);
  };
  if (!is_usual(sums.bound)) refuse("bound", text(sums.bound), "2^-400 to 2^400");
  if (sums.clients < 1) refuse("clients", std::to_string(sums.clients), "1 or more");
  if (!is_usual(sums.total())) refuse("total_weight", text(sums.total()), "2^-400 to 2^400");
}

}  // namespace detail

}  // namespace subfed::inline v0
