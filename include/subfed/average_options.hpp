// SPDX-License-Identifier: MIT
/// What an average divides by, what it does with bad numbers, and what it reports.
#pragma once

#include <subfed/error.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

namespace subfed::inline v0 {

/// What the weighted sum at an element is divided by.
enum class divisor {
  holders,  ///< the weights of the clients that hold the element [Rolex, Eq. 10]
  cohort,   ///< the weights of all clients of the cohort [Cheng, Alg. 1]; a client that does not
            ///< hold the element counts as one that left it as it was
};

/// What the clients' tensors contain.
enum class content {
  parameters,  ///< new values
  deltas,      ///< new minus old values
};

/// What happens to an update with a NaN or an infinity among the elements that take part.
enum class non_finite {
  propagate,     ///< it enters the average
  refuse,        ///< error that names client, tensor and element; nothing changes
  skip_client,   ///< the whole update is left out, and counted
  skip_element,  ///< the element is treated as not held by that client, and counted
};

/// What becomes of integers and booleans (step counters of batch norm, masks), which are never
/// averaged and never pass through floating point. Weights only say who takes part.
enum class integer_rule {
  keep,  ///< the server's value stays
  max,   ///< the largest value of the holders
  sum,   ///< the sum over the holders; error when it does not fit the type
};

struct average_options {
  divisor divide_by = divisor::holders;
  subfed::content content = content::parameters;
  /// Server step size alpha: new = old + step (average - old), or old + step average for deltas. Of
  /// parameters; statistics take the average itself, as a step over 1 makes a variance negative.
  double step = 1;
  non_finite on_non_finite = non_finite::propagate;
  integer_rule integers = integer_rule::keep;
  /// When set, updates drawn for another round and second updates of a client are refused, with an
  /// error, and counted; a client whose update selective_average skipped may send another. When not
  /// set, who reports when and how often is the caller's business.
  std::optional<std::uint64_t> round = {};

  friend bool operator==(const average_options&, const average_options&) = default;
};

/// What an average did.
struct average_report {
  std::int64_t clients = 0;           ///< updates that took part
  std::int64_t refused_clients = 0;   ///< of another round, or for the second time
  std::int64_t skipped_clients = 0;   ///< left out by non_finite::skip_client
  std::int64_t skipped_elements = 0;  ///< left out by non_finite::skip_element
  std::int64_t held = 0;              ///< global elements that were written
  std::int64_t unheld = 0;            ///< global elements that nobody held: their bits stay
  std::int64_t kept = 0;  ///< integers under integer_rule::keep, and local tensors: as they were
  std::int64_t overflowed = 0;  ///< results of finite values that became infinite, as they are
                                ///< beyond the largest number of the global tensor's type

  friend bool operator==(const average_report&, const average_report&) = default;
};

namespace detail {

inline bool is_finite_double(double x) noexcept {
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  return (std::bit_cast<std::uint64_t>(x) & exponent) != exponent;
}

inline void check_weight(double weight, const std::string& client) {
  if (is_finite_double(weight) && weight >= 0) return;
  fail("subfed: average: the weight of " + client + " is " +
       (is_finite_double(weight) ? text(weight) : "not finite") +
       ", expected a finite number that is not negative");
}

/// Finite weights whose sum is not would divide infinity by infinity.
inline void check_total_weight(double total) {
  if (is_finite_double(total)) return;
  fail("subfed: average: the weights of the cohort add up to more than a double holds");
}

inline void check_options(const average_options& options) {
  if (is_finite_double(options.step)) return;
  fail("subfed: average: the step is not finite");
}

}  // namespace detail

}  // namespace subfed::inline v0
