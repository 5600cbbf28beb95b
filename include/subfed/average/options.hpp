// SPDX-License-Identifier: MIT
/// What an average divides by, what it does with bad numbers, and what it reports.
#pragma once

#include <subfed/average/fixed_point.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What the weighted sum at an element is divided by.
enum class divisor {
  holders,  ///< the weights of the clients that hold the element [Rolex, Eq. 10]
  cohort,   ///< the weights of all clients of the cohort [Cheng, Alg. 1]; a client that does not
            ///< hold the element counts as one that left it unchanged
};

/// What the clients' tensors contain.
enum class content {
  parameters,  ///< new values
  deltas,      ///< new minus old values
};

/// What happens to an update with a NaN or an infinity among the elements that take part.
enum class non_finite {
  propagate,     ///< it enters the average; with fixed-point sums it is out of bound
  refuse,        ///< error that names client, tensor and element; nothing changes
  skip_client,   ///< the whole update is left out, and counted
  skip_element,  ///< the element is treated as not held by that client, and counted
};

/// What happens to integers and booleans (step counters of batch norm, masks), which are never
/// averaged and never pass through floating point, and to counters (role::counter) of any type. It
/// only matters whether a weight is above 0; divisor and step have no effect.
///
/// The largest delta, or the sum of the deltas, is added to the old value: deltas 3 and 5 turn 100
/// into 105 or 108. Deltas may have another integer type than the global tensor, as signed ones may
/// be needed for an unsigned counter. Integers that do not fit their type are an error, before
/// anything is written. Counters in floating point are merged in double, in the order of the sums,
/// and rounded once; one that is too large is counted in average_report::overflowed. Under `keep`
/// the updates' values are not read.
enum class integer_rule {
  keep,  ///< the server's value stays
  max,   ///< the largest value of the holders; a NaN that takes part stays one
  sum,   ///< the sum over the holders
};

/// What happens to an update whose submodel was drawn for another round than options.round.
enum class late_update {
  refuse,  ///< error that names the client; nothing changes
  skip,    ///< it is left out, counted and listed
  weigh,  ///< an update of an earlier round counts with its weight times late_weight(rounds passed),
          ///< as in buffered asynchronous rounds; one of a later round is left out
};

/// What happens to a second update of a client for the same round, under options.round.
enum class repeated_update {
  refuse,  ///< error that names the client; nothing changes
  skip,    ///< it is left out, counted and listed
};

struct average_options {
  divisor divide_by = divisor::holders;
  subfed::content content = content::parameters;
  /// Server step size alpha: new = old + step (average - old), or old + step average for deltas.
  /// For parameters only; statistics take the average itself, because a step over 1 can make a
  /// variance negative.
  double step = 1;
  non_finite on_non_finite = non_finite::propagate;
  integer_rule integers = integer_rule::keep;
  /// When set, one update is taken for each client and round, and only updates of this round
  /// (except with late_update::weigh); on_late and on_repeated say what happens to the others. A
  /// client whose update was left out for its values may send another. When not set, the caller
  /// decides who reports when and how often.
  ///
  /// An update is averaged into the nodes of the submodel that is passed with it. That must be the
  /// one that was sent to the client, with the round in its origin(): one drawn again with the
  /// server's own round has other nodes, and nothing in the numbers reveals it.
  std::optional<std::uint64_t> round = {};
  late_update on_late = late_update::refuse;
  repeated_update on_repeated = repeated_update::refuse;
  /// For late_update::weigh: the factor for the weight of an update when that many rounds have
  /// passed since its own; finite and not negative. A product that is over 0 and too small for a double
  /// is refused; the factor 0 leaves the values out.
  double (*late_weight)(std::uint64_t rounds_passed) = nullptr;
  /// Not set: sums of doubles. Set: sums that do not depend on the order of the updates.
  std::optional<fixed_point> sums = {};

  friend bool operator==(const average_options&, const average_options&) = default;
};

enum class fate {
  taken,         ///< it is part of the average, with a weight that may be 0
  late,          ///< of an earlier round than options.round
  early,         ///< of a later one
  repeated,      ///< another update of its client and round has been taken
  non_finite,    ///< left out by non_finite::skip_client
  out_of_bound,  ///< left out by out_of_bound::skip_client
};

/// What happened to an update. As a condition: whether it was taken.
///
///   if (const auto outcome = mean.add(sub, tensors, weight); !outcome) ask_again(outcome.client);
struct update_outcome {
  subfed::fate fate = subfed::fate::taken;
  std::uint64_t client = 0;           ///< of the submodel's origin()
  std::uint64_t round = 0;            ///< of the submodel's origin()
  double weight = 0;                  ///< with which it counts; 0: it holds nothing
  std::int64_t skipped_elements = 0;  ///< left out by non_finite::skip_element; see add()
  std::string tensor = {};    ///< with the first value that is not finite or out of bound; "": none
  std::int64_t element = -1;  ///< of that tensor: its row-major global number
  std::int64_t clipped_elements = 0;  ///< by out_of_bound::clip

  explicit operator bool() const noexcept { return fate == subfed::fate::taken; }
  friend bool operator==(const update_outcome&, const update_outcome&) = default;
};

/// What an average did.
struct average_report {
  std::int64_t clients = 0;           ///< updates that took part
  std::int64_t refused_clients = 0;   ///< refused with an error: of another round, or repeated
  std::int64_t skipped_clients = 0;   ///< left out by non_finite or out_of_bound::skip_client
  std::int64_t late_clients = 0;      ///< left out by on_late: of another round
  std::int64_t repeated_clients = 0;  ///< left out by on_repeated
  std::int64_t skipped_elements = 0;  ///< left out by non_finite::skip_element
  std::int64_t held = 0;              ///< global elements that were written
  std::int64_t unheld = 0;            ///< global elements that nobody held: their bits stay
  std::int64_t kept = 0;  ///< integers and counters under integer_rule::keep, and local tensors
  std::int64_t overflowed = 0;  ///< results of finite values that became infinite, being
                                ///< beyond the largest number of the global tensor's type
  /// The first `most_listed` updates that were left out, in the order in which they were checked.
  /// The counts above include all.
  std::vector<update_outcome> left_out = {};
  std::int64_t clipped_elements = 0;  ///< by out_of_bound::clip

  static constexpr std::size_t most_listed = 1024;

  friend bool operator==(const average_report&, const average_report&) = default;
};

namespace detail {

inline void check_weight(const char* verb, double weight, const std::string& client,
                         error_subject about = {}) {
  if (is_finite_double(weight) && weight >= 0) return;
  fail(std::string("subfed: ") + verb + ": the weight of " + client + " is " +
           (is_finite_double(weight) ? text(weight) : "not finite") +
           ", expected a finite number that is not negative",
       std::move(about));
}

/// Finite weights whose sum is infinite would divide infinity by infinity.
inline void check_total_weight(const char* verb, double total, const average_options& options) {
  if (!is_finite_double(total)) {
    fail(std::string("subfed: ") + verb +
         ": the weights of the cohort add up to more than a double can hold");
  }
  if (!options.sums || total <= options.sums->most()) return;
  fail(std::string("subfed: ") + verb + ": the weights of the cohort add up to " + text(total) +
       ", more than the total_weight of its fixed-point sums, " + text(options.sums->total()));
}

inline void check_options(const char* verb, const average_options& options) {
  const std::string start = std::string("subfed: ") + verb + ": ";
  if (!is_finite_double(options.step)) fail(start + "the step is not finite");
  if (options.sums) check_fixed_point(*options.sums);
  const bool weighs = options.on_late == late_update::weigh;
  if (weighs != (options.late_weight != nullptr)) {
    fail(start + (weighs ? "on_late is weigh, but no late_weight is given"
                         : "a late_weight is given, but on_late is not weigh"));
  }
  const bool by_round =
      options.on_late != late_update::refuse || options.on_repeated != repeated_update::refuse;
  if (by_round && !options.round) {
    fail(start + "on_late or on_repeated is set, but no round is given");
  }
}

/// Lists an update that was left out, and counts it by its fate.
inline void leave_out(average_report& report, update_outcome outcome) {
  switch (outcome.fate) {
    case fate::taken:
      return;
    case fate::late:
    case fate::early:
      ++report.late_clients;
      break;
    case fate::repeated:
      ++report.repeated_clients;
      break;
    case fate::non_finite:
    case fate::out_of_bound:
      ++report.skipped_clients;
      break;
  }
  if (report.left_out.size() < average_report::most_listed) {
    report.left_out.push_back(std::move(outcome));
  }
}

}  // namespace detail

}  // namespace subfed::inline v0
