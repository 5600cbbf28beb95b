// SPDX-License-Identifier: MIT
/// What all ends of a round of secure aggregation agree on.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/dimension.hpp>
#include <subfed/error.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// What is known of a client before the round: its submodel, with its key as origin(), and its weight.
struct secure_participant {
  submodel sub;
  double weight = 1;
};

struct secure_options {
  /// With fixed-point sums. They wrap modulo 2^64 while they are masked; total_weight is best the largest
  /// weight that one parameter can get. A value beyond the bound, and a NaN, is for the client to
  /// refuse or to clip.
  average_options average = {};
  /// How many clients open a mask together, and how many must survive: more than half of all, or the
  /// server could open one round twice with two halves. Where up to a third of the clients may collude
  /// with the server: 2 n / 3 + 1 of n.
  std::int64_t threshold = 0;
  /// A parameter with fewer surviving holders is never opened: of two, each learns the other.
  std::int64_t least_holders = 3;
  /// A parameter is left out unless it has so many holders more when the masks are made. Where more of
  /// its holders drop out, clients refuse to open the round. Clients that collude count like dropouts.
  std::int64_t expected_dropouts = 0;
  /// Groups of which nobody else learns for which nodes a client has data: label rows.
  std::vector<group_id> private_rows = {};
};

namespace detail {

/// Throws  error for options that are not for secure sums.
inline void check_secure_options(const secure_options& options, std::size_t participants) {
  const auto refuse = [](const std::string& what) { fail("subfed: secure: " + what); };
  const average_options& average = options.average;
  check_options("secure", average);
  if (!average.sums) refuse("average.sums is not set; masks cancel in fixed-point sums only");
  if (average.sums->on_out_of_bound == out_of_bound::skip_client) {
    refuse("on_out_of_bound is skip_client, which nobody can do behind masks");
  }
  if (average.on_non_finite != non_finite::propagate &&
      average.on_non_finite != non_finite::refuse) {
    refuse("on_non_finite skips what nobody sees behind masks");
  }
  if (average.integers != integer_rule::keep) {
    refuse("integers and counters are not sent, so that their rule is keep");
  }
  if (average.on_late != late_update::refuse || average.on_repeated != repeated_update::refuse) {
    refuse("on_late and on_repeated are refuse: a round takes one update of each of its clients");
  }
  const auto all = static_cast<std::int64_t>(participants);
  if (options.threshold < 2 || options.threshold > all || 2 * options.threshold <= all) {
    refuse("the threshold is " + std::to_string(options.threshold) +
           ", expected more than half of the " + std::to_string(all) +
           " participants, at least 2 and at most all");
  }
  if (options.least_holders < 3) {
    refuse("least_holders is " + std::to_string(options.least_holders) +
           ", expected 3 or more: of two, each learns the other");
  }
  if (options.expected_dropouts < 0 || options.expected_dropouts > all) {
    refuse("expected_dropouts is " + std::to_string(options.expected_dropouts) +
           ", expected 0 to " + std::to_string(all));
  }
}

}  // namespace detail

}  // namespace subfed::inline v0
