// SPDX-License-Identifier: MIT
/// A population of clients for simulations: how many there are, who takes part in a round, and how
/// much of the model each can hold.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Clients of one capacity, and their share of all clients.
struct capacity_class {
  subfed::capacity capacity = 1.0;
  double share = 1;  ///< any positive weight; the shares of a mix are divided by their sum
};

/// Shares of capacities in a population. Plain data; the presets are those of [Rolex].
struct capacity_mix {
  std::vector<capacity_class> classes = {{}};

  /// Equal numbers of clients of 1, 1/2, 1/4, 1/8 and 1/16. [Rolex, Sec. 4]
  static capacity_mix uniform() {
    return {{{capacity::ratio(1, 1), 1},
             {capacity::ratio(1, 2), 1},
             {capacity::ratio(1, 4), 1},
             {capacity::ratio(1, 8), 1},
             {capacity::ratio(1, 16), 1}}};
  }
  /// A share rho of large clients, the others small. [Rolex, Fig. 3]
  ///
  /// Throws  error unless 0 <= rho <= 1.
  static capacity_mix two_classes(subfed::capacity large, subfed::capacity little, double rho) {
    if (rho == 0) return {{{little, 1}}};
    if (rho == 1) return {{{large, 1}}};
    if (!detail::in_unit_interval(rho)) {
      detail::fail("subfed: capacity_mix: the share of large clients is " + detail::text(rho) +
                   ", expected 0 to 1");
    }
    return {{{large, rho}, {little, 1 - rho}}};
  }
  /// Capacities by household income: 1/16 below $75,000, 1/8 to $100,000, 1/4 to $150,000, 1/2 to
  /// $200,000, 1 above [Rolex, Fig. 7]; shares of U.S. households in 2020 [Census].
  static capacity_mix income() {
    return {{{capacity::ratio(1, 1), 10.3},
             {capacity::ratio(1, 2), 8.0},
             {capacity::ratio(1, 4), 15.3},
             {capacity::ratio(1, 8), 12.2},
             {capacity::ratio(1, 16), 54.3}}};
  }
};

/// Whether a client keeps its capacity for the whole run, or draws a new one in every round.
enum class capacity_assignment { fixed, redrawn };

struct cohort_options {
  std::int64_t clients = 100;
  /// Share of the clients that is asked each round: N times this of N clients, rounded as capacities
  /// are.
  double participation = 0.1;
  /// Rounds in a row for which the same clients are asked; FedDrop asks each cohort twice, so that
  /// the keep probabilities of one round are used in the next. [FedDrop, F.5]
  std::int64_t cohort_rounds = 1;
  capacity_mix mix = {};
  /// fixed: the classes get exact shares of the clients (up to rounding), assigned at random.
  /// redrawn: every client draws its class in every round.
  capacity_assignment capacities = capacity_assignment::fixed;
  /// Probability that a client that is asked does not answer, independently of the others.
  double dropout = 0;
  std::uint64_t seed = 0;
};

/// One client that takes part in a round.
struct cohort_member {
  std::uint64_t client = 0;
  std::size_t client_class = 0;  ///< number in the mix
  subfed::capacity capacity = 1.0;

  friend bool operator==(const cohort_member&, const cohort_member&) = default;
};

/// Who takes part in which round: a pure function of the options and the round.
///
/// Numerics  Philox streams of (seed, round, client): the same on every platform. Shares enter
///           through comparisons of doubles.
class cohort_model {
 public:
  /// Throws  error for impossible options; it names the option.
  explicit cohort_model(cohort_options options) : options_(std::move(options)) {
    constexpr std::int64_t most_clients = std::int64_t{1} << 31;
    if (options_.clients < 1 || options_.clients > most_clients) {
      detail::fail("subfed: cohort_model: the number of clients is " +
                   std::to_string(options_.clients) + ", expected 1 to 2^31");
    }
    if (!detail::in_unit_interval(options_.participation)) {
      detail::fail("subfed: cohort_model: the participation is " +
                   detail::text(options_.participation) + ", expected more than 0 and at most 1");
    }
    if (options_.dropout != 0 && !detail::in_unit_interval(options_.dropout)) {
      detail::fail("subfed: cohort_model: the dropout is " + detail::text(options_.dropout) +
                   ", expected 0 to 1");
    }
    if (options_.cohort_rounds < 1) {
      detail::fail("subfed: cohort_model: a cohort is asked for " +
                   std::to_string(options_.cohort_rounds) + " rounds, expected at least 1");
    }
    asked_ = capacity(options_.participation).of(options_.clients, rounding::nearest, 0);
    if (asked_ < 1) {
      detail::fail("subfed: cohort_model: a participation of " +
                   detail::text(options_.participation) + " asks none of " +
                   std::to_string(options_.clients) + " clients");
    }
    settle_shares();
    if (options_.capacities == capacity_assignment::fixed && options_.mix.classes.size() > 1)
      deal_classes();
  }

  const cohort_options& options() const noexcept { return options_; }
  /// Clients that are asked in a round.
  std::int64_t asked() const noexcept { return asked_; }
  /// Share of a class; they add up to 1.
  ///
  /// Throws  error when there is no such class.
  double share(std::size_t client_class) const {
    if (client_class >= shares_.size()) {
      detail::fail("subfed: cohort_model: class number " + std::to_string(client_class) +
                   " is asked for, but the mix has " + std::to_string(shares_.size()));
    }
    return shares_[client_class];
  }

  /// The class of a client in a round.
  ///
  /// Throws  error when there is no such client.
  std::size_t class_of(std::uint64_t client, std::uint64_t round) const {
    if (client >= static_cast<std::uint64_t>(options_.clients)) {
      detail::fail("subfed: cohort_model: client " + std::to_string(client) +
                       " is asked for, but there are " + std::to_string(options_.clients),
                   {.client = client});
    }
    if (shares_.size() == 1) return 0;
    if (options_.capacities == capacity_assignment::fixed) {
      return dealt_[static_cast<std::size_t>(client)];
    }
    random_stream stream(options_.seed, round, client, "subfed cohort capacity");
    return class_at(stream.next_unit());
  }

  /// The clients that take part in a round, ascending: drawn without replacement, anew every
  /// cohort_rounds rounds, less those that drop out of this one.
  ///
  /// Cost  O(n log n) for n clients.
  std::vector<cohort_member> members(std::uint64_t round) const {
    std::vector<cohort_member> out;
    const auto add = [&](std::uint64_t client) {
      if (options_.dropout > 0) {
        random_stream stream(options_.seed, round, client, "subfed cohort dropout");
        if (stream.next_unit() < options_.dropout) return;
      }
      const std::size_t own = class_of(client, round);
      out.push_back({client, own, options_.mix.classes[own].capacity});
    };
    const auto all = static_cast<std::uint64_t>(options_.clients);
    if (asked_ == options_.clients) {
      for (std::uint64_t client = 0; client < all; ++client) add(client);
      return out;
    }
    // Floyd's sampling: one of 0 .. j that has not been chosen yet, or j itself.
    const std::uint64_t drawn = round / static_cast<std::uint64_t>(options_.cohort_rounds);
    random_stream stream(options_.seed, drawn, 0, "subfed cohort members");
    std::set<std::uint64_t> chosen;
    for (std::uint64_t j = all - static_cast<std::uint64_t>(asked_); j < all; ++j) {
      if (!chosen.insert(stream.below(j + 1)).second) chosen.insert(j);
    }
    for (const std::uint64_t client : chosen) add(client);
    return out;
  }

 private:
  void settle_shares() {
    double largest = 0;
    for (const capacity_class& c : options_.mix.classes) {
      if (!detail::is_finite_double(c.share) || !(c.share > 0)) {
        detail::fail("subfed: cohort_model: the share of capacity " +
                     detail::text(c.capacity.value()) + " is " + detail::text(c.share) +
                     ", expected a positive number");
      }
      largest = (std::max)(largest, c.share);
    }
    if (options_.mix.classes.empty()) {
      detail::fail("subfed: cohort_model: the mix has no capacity");
    }
    // A power of two, which rounds nothing, keeps the sum in the range of its numbers.
    int exponent = 0;
    static_cast<void>(std::frexp(largest, &exponent));
    double sum = 0;
    for (const capacity_class& c : options_.mix.classes) {
      shares_.push_back(std::ldexp(c.share, -exponent));
      sum += shares_.back();
    }
    for (double& share : shares_) share /= sum;
  }

  std::size_t class_at(double unit) const {
    for (std::size_t c = 0; c + 1 < shares_.size(); ++c) {
      if (unit < shares_[c]) return c;
      unit -= shares_[c];
    }
    return shares_.size() - 1;
  }

  /// Largest remainders: whole parts first, then one more for those that lost most; then shuffled.
  void deal_classes() {
    const auto all = static_cast<double>(options_.clients);
    std::vector<std::int64_t> numbers;
    std::vector<double> lost;
    for (const double share : shares_) {
      const double exact = detail::rounded_product(share, all);
      const double whole = exact + detail::rounded_product(1e-9, exact);
      numbers.push_back(static_cast<std::int64_t>(whole));
      lost.push_back(exact - static_cast<double>(numbers.back()));
    }
    std::vector<std::size_t> order(shares_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
    std::int64_t left =
        options_.clients - std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
    for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++numbers[order[i]];
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      dealt_.insert(dealt_.end(), detail::memory_size<std::uint32_t>(numbers[c]),
                    static_cast<std::uint32_t>(c));
    }
    dealt_.resize(detail::memory_size<std::uint32_t>(options_.clients));
    random_stream stream(options_.seed, 0, 0, "subfed cohort classes");
    for (std::size_t i = dealt_.size(); i > 1; --i) {
      std::swap(dealt_[i - 1], dealt_[static_cast<std::size_t>(stream.below(i))]);
    }
  }

  cohort_options options_;
  std::int64_t asked_ = 0;
  std::vector<double> shares_;
  std::vector<std::uint32_t> dealt_;  // class of each client, when fixed
};

}  // namespace subfed::inline v0
