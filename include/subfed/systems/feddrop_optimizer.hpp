// SPDX-License-Identifier: MIT
/// FedDrop's optimiser of keep probabilities under the FLOPs budget.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/systems/detail/probability_descent.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

struct keep_optimizer_options {
  double barrier = 1e-4;          ///< mu [FedDrop, Eq. 8]
  std::int64_t iterations = 200;  ///< at most
  double step = 0.1;              ///< the largest change of a probability in the first iteration
  double tolerance = 1e-4;  ///< it ends when no probability can change, or changes, by as much
  double smallest = 0.01;   ///< lower limit of the probabilities
};

/// Why the optimiser ended.
enum class keep_stop { tolerance, iterations };

struct keep_report {
  double objective = 0;         ///< Eq. 7 at the result
  double penalised = 0;         ///< Eq. 8 at the result
  double slack = 0;             ///< g at the result, above 0
  std::int64_t iterations = 0;  ///< steps taken
  keep_stop stopped = keep_stop::iterations;
};

namespace detail {

/// No observer of the iterations.
struct no_observer {
  void operator()(std::int64_t, std::span<const double>) const noexcept {}
};

inline void check_keep_options(const keep_optimizer_options& options) {
  const auto positive = [](const char* what, double x) {
    if (x > 0 && is_finite_double(x)) return;
    fail(std::string("subfed: optimize_keep: the ") + what + " is " + text(x) +
         ", expected a positive number");
  };
  positive("barrier", options.barrier);
  positive("step", options.step);
  positive("tolerance", options.tolerance);
  if (!in_unit_interval(options.smallest)) {
    fail("subfed: optimize_keep: the smallest keep probability is " + text(options.smallest) +
         ", expected in (0, 1]");
  }
  if (options.iterations < 0) {
    fail("subfed: optimize_keep: " + std::to_string(options.iterations) + " iterations");
  }
}

}  // namespace detail

/// Replaces the keep probabilities p of a round's clients by q for the next round:
///
///   minimise  sum over n, i, j of S^n_ij / max(q_i[n], q_j[n])  -  mu log g(q)    [FedDrop, Eq. 8]
///
/// from p, or from smaller probabilities where p does not meet the budget with a margin, as is the
/// case for the constant start.
///
/// For a given order of the clients at each node the objective is sum a / q. A step goes to the
/// minimum of that along the order, with the budget's cost linearised, within a maximum change of
/// every probability. Equal clients are put in the order in which separating them gains most, and
/// stay equal where it gains nothing. The maximum change is halved whenever three steps in a row
/// gain hardly anything. Where the probabilities have settled, other orders are tried, and an
/// iteration goes there, however far that is. The best probabilities found are returned. For S with
/// positive elements off the diagonal the problem is not convex: with few clients the result is the
/// minimum in nearly all cases, with many it may be a local one.
///
/// iterations * step limits how far a round changes the probabilities, unless they settle before. S
/// of one round is partly noise, and training works better when a round goes a small part of the
/// way: the trainer takes three iterations of 0.02 (docs/methods.md).
///
/// observer(iteration, q) is called for every step; in q the clients of a node are contiguous.
///
/// Pre      S is similarity_of the same clients in the same order.
/// Post     g > 0 at every step; every q is in [smallest, 1]; clients with the same S and the same
///          p get the same q.
/// Throws   error for other numbers of clients or nodes, models that differ, options out of range,
///          similarities that are not finite or overflow the objective, or a budget that even the
///          smallest probabilities do not meet; nothing has been changed then.
/// Numerics Elements of S, divided by the largest one, enter the steps as floats; sums are in
///          double; the same bits everywhere.
/// Cost     O(N C^2) per iteration, O(N C) while the order of the clients stays the same.
template <class Observer = detail::no_observer>
keep_report optimize_keep(const trajectory_similarity& similarity, const flops_budget& budget,
                          std::span<keep_probabilities> clients,
                          const keep_optimizer_options& options = {}, Observer&& observer = {}) {
  const detail::float_mode mode;
  detail::check_keep_options(options);
  if (clients.empty() || clients.size() != similarity.clients()) {
    detail::fail("subfed: optimize_keep: " + std::to_string(clients.size()) +
                 " clients are given, expected " + std::to_string(similarity.clients()) +
                 " as in the similarity, and at least 1");
  }
  for (const keep_probabilities& keep : clients) {
    if (!(keep.parent() == budget.cost().parent()) || keep.values().size() != similarity.nodes()) {
      detail::fail(
          "subfed: optimize_keep: the keep probabilities are of another model than the budget or "
          "the similarity");
    }
  }
  double size = 0;
  for (std::size_t n = 0; n < similarity.nodes(); ++n) {
    for (const double s : similarity.triangle(n)) size += 2 * (std::fabs(s) / options.smallest);
  }
  if (!detail::is_finite_double(size)) {
    detail::fail(
        "subfed: optimize_keep: a similarity is not finite, or they are so large that the "
        "objective is not");
  }
  detail::probability_descent descent(similarity, budget, clients, options.barrier,
                                      options.smallest);
  keep_report report;
  std::vector<double> best(descent.probabilities().begin(), descent.probabilities().end());
  report.penalised = descent.penalised();
  double radius = options.step;
  int without_gain = 0;
  const auto look = [&] {
    ++report.iterations;
    observer(report.iterations, descent.probabilities());
    const double now = descent.penalised();
    if (now < report.penalised) {
      if (report.penalised - now > 1e-5 * std::fabs(now)) without_gain = 0;
      report.penalised = now;
      const auto q = descent.probabilities();
      best.assign(q.begin(), q.end());
    }
  };
  double settled = std::numeric_limits<double>::infinity();
  while (report.iterations < options.iterations) {
    const double change = descent.step(radius);
    look();
    if (++without_gain > 2) {
      radius /= 2;
      without_gain = 0;
    }
    if (radius >= options.tolerance && change >= options.tolerance) continue;
    const bool gained = settled - report.penalised > 1e-5 * std::fabs(report.penalised);
    settled = report.penalised;
    if (gained && report.iterations == options.iterations) break;
    if (!gained || !descent.reorder()) {
      report.stopped = keep_stop::tolerance;
      break;
    }
    look();
    radius = options.step;
    without_gain = 0;
  }
  std::vector<double> own(similarity.nodes());
  for (std::size_t c = 0; c < clients.size(); ++c) {
    for (std::size_t n = 0; n < own.size(); ++n) own[n] = best[n * clients.size() + c];
    clients[c].assign(own);
  }
  report.objective = trajectory_objective(similarity, clients);
  report.slack = budget.slack(clients);
  report.penalised = report.objective -
                     detail::rounded_product(options.barrier, detail::portable_log(report.slack));
  return report;
}

}  // namespace subfed::inline v0
