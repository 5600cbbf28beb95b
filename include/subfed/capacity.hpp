// SPDX-License-Identifier: MIT
/// From a client's capacity beta and a layer of K nodes to L, the number of nodes kept.
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace subfed::inline v0 {

/// How beta K becomes a whole number of nodes. [Rolex, Eq. 4-6] floor; [FjORD] and the released
/// code of FedRolex, HeteroFL, Flower and FedScale: ceil. nearest rounds halves up.
enum class rounding { floor, ceil, nearest };

/// The share of a model's nodes that a client holds: beta in (0, 1].
///
/// Remembers how precisely it was given. 0.07 is not a binary fraction, so 0.07 * 100 is
/// 7.000000000000001 in double and 7.0000002 in float. A product that is within the given number's
/// own rounding error of a whole number (or of a half, where halves matter) counts as that number.
/// A ratio of integers is exact, and so is 1.
class capacity {
 public:
  /// Throws  error when beta is not in (0, 1], NaN included.
  constexpr capacity(double beta) : capacity(beta, std::numeric_limits<double>::epsilon()) {}
  constexpr capacity(float beta)
      : capacity(static_cast<double>(beta), std::numeric_limits<float>::epsilon()) {}
  template <std::integral Integer>
  constexpr capacity(Integer beta) : capacity(static_cast<double>(beta)) {}

  /// beta = numerator / denominator, without rounding.
  ///
  /// Throws  error unless 0 < numerator <= denominator < 2^31.
  static constexpr capacity ratio(std::int64_t numerator, std::int64_t denominator) {
    constexpr std::int64_t largest = (std::numeric_limits<std::int32_t>::max)();
    if (numerator <= 0 || denominator < numerator) {
      detail::fail("subfed: capacity: the ratio " + std::to_string(numerator) + "/" +
                   std::to_string(denominator) + " is outside (0, 1]");
    }
    if (denominator > largest) {
      detail::fail("subfed: capacity: the denominator of the ratio " + std::to_string(numerator) +
                   "/" + std::to_string(denominator) + " is over " + std::to_string(largest));
    }
    capacity out(static_cast<double>(numerator) / static_cast<double>(denominator));
    out.numerator_ = numerator;
    out.denominator_ = denominator;
    return out;
  }

  constexpr double value() const noexcept { return value_; }

  /// The parts of a capacity, to be sent; from_parts() restores the capacity.
  struct parts {
    double value;
    double relative_error;     ///< of the value
    std::int64_t numerator;    ///< 0 where it is no ratio
    std::int64_t denominator;  ///< 0 where it is no ratio
    friend bool operator==(const parts&, const parts&) = default;
  };
  constexpr parts to_parts() const noexcept {
    return {value_, relative_error_, numerator_, denominator_};
  }
  /// Throws  error for values that are not the parts of a capacity.
  static constexpr capacity from_parts(const parts& p) {
    if (p.numerator != 0 || p.denominator != 0) {
      const capacity out = ratio(p.numerator, p.denominator);
      if (out.value_ == p.value && out.relative_error_ == p.relative_error) return out;
      detail::fail("subfed: capacity: the value " + detail::text(p.value) + " is not that of " +
                   std::to_string(p.numerator) + "/" + std::to_string(p.denominator));
    }
    if (p.relative_error != 0 && !detail::in_unit_interval(p.relative_error)) {
      detail::fail("subfed: capacity: the relative error " + detail::text(p.relative_error) +
                   " is outside [0, 1]");
    }
    return {p.value, p.relative_error};
  }

  /// beta (1 - part): what is left of the share without a part of it. It carries part's own
  /// rounding error.
  ///
  /// Throws  error when part is not in [0, 1), or is so close to 1 that nothing is left.
  constexpr capacity without(double part) const {
    if (part == 0) return *this;
    if (!detail::in_unit_interval(part)) {
      detail::fail("subfed: capacity: the part " + detail::text(part) + " is outside [0, 1)");
    }
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    return {value_ * (1 - part), relative_error_ + epsilon / (1 - part)};
  }

  /// Nodes kept of `extent`: beta * extent, rounded, then at least `minimum` (but never more than
  /// `extent`). An extent of 0 keeps 0.
  ///
  /// Throws  error when extent or minimum is negative.
  constexpr std::int64_t of(std::int64_t extent, rounding mode = rounding::floor,
                            std::int64_t minimum = 1) const {
    if (extent < 0 || minimum < 0) {
      detail::fail("subfed: capacity: extent " + std::to_string(extent) + " and minimum " +
                   std::to_string(minimum) + " must not be negative");
    }
    std::int64_t kept = denominator_ != 0 ? of_ratio(extent, mode) : of_value(extent, mode);
    if (kept < minimum) kept = minimum;
    return kept < extent ? kept : extent;
  }

  friend constexpr bool operator==(const capacity&, const capacity&) = default;

 private:
  constexpr capacity(double beta, double relative_error)
      : value_(beta), relative_error_(relative_error) {
    if (!detail::in_unit_interval(beta)) {
      detail::fail("subfed: capacity: " + detail::text(beta) + " is outside (0, 1]");
    }
  }

  constexpr std::int64_t of_ratio(std::int64_t extent, rounding mode) const noexcept {
    // extent = q d + r, so extent n / d = q n + r n / d with r n < 2^62.
    const std::int64_t whole = extent / denominator_ * numerator_;
    const std::int64_t rest = extent % denominator_ * numerator_;
    switch (mode) {
      case rounding::floor:
        return whole + rest / denominator_;
      case rounding::ceil:
        return whole + (rest + denominator_ - 1) / denominator_;
      default:
        return whole + (2 * (rest % denominator_) >= denominator_) + rest / denominator_;
    }
  }

  constexpr std::int64_t of_value(std::int64_t extent, rounding mode) const noexcept {
    if (value_ == 1) return extent;
    const double product = detail::rounded_product(value_, static_cast<double>(extent));
    const auto below = static_cast<std::int64_t>(product);
    const double fraction = product - static_cast<double>(below);
    const double slack = detail::rounded_product(2 * relative_error_, product);
    if (fraction <= slack) return below;
    if (1 - fraction <= slack) return below + 1;
    switch (mode) {
      case rounding::floor:
        return below;
      case rounding::ceil:
        return below + 1;
      default:
        return below + (fraction >= 0.5 - slack ? 1 : 0);
    }
  }

  double value_;
  double relative_error_;
  std::int64_t numerator_ = 0;  // 0/0: not given as a ratio
  std::int64_t denominator_ = 0;
};

}  // namespace subfed::inline v0
