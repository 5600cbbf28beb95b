// SPDX-License-Identifier: MIT
/// FedDrop's optimiser of keep probabilities under the FLOPs budget.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/keep_descent.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

struct keep_optimizer_options {
  double barrier = 1e-4;          ///< mu [FedDrop, Eq. 8]
  std::int64_t iterations = 200;  ///< at most
  double step = 0.1;              ///< the most that a probability changes in the first iteration
  double tolerance = 1e-4;        ///< it ends when no probability may change, or does, by as much
  double smallest = 0.01;         ///< no probability is below
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

/// Nobody watches the iterations.
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
/// from p, or from p made smaller where p does not meet the budget with something to spare, which
/// the constant start does not.
///
/// For a given order of the clients at each node the objective is sum a / q. A step goes to the
/// minimum of that, with the budget's cost taken linear, within a distance that every probability
/// may change by; the a are averaged over the last steps, since orders change back and forth where
/// clients are to be equal. The distance is halved whenever three steps in a row bring hardly any
/// gain. The best probabilities seen are returned. They are a local minimum: for S with positive
/// elements off the diagonal the problem is not convex.
///
/// observer(iteration, q) is called for every step, q with the clients of a node in a row.
///
/// Pre      S is similarity_of the same clients in the same order.
/// Post     g > 0 at every step; every q is in [smallest, 1]; clients with the same S and the same
///          p get the same q.
/// Throws   error for other numbers of clients or nodes, models that differ, options out of range,
///          or a budget that even the smallest probabilities do not meet; nothing is changed then.
/// Numerics Uses std::log: bits may differ between C libraries, so the probabilities have to
///          travel.
/// Cost     O(N C^2) an iteration, O(N C) where the order of the clients has settled.
template <class Observer = detail::no_observer>
keep_report optimize_keep(const trajectory_similarity& similarity, const flops_budget& budget,
                          std::span<keep_probabilities> clients,
                          const keep_optimizer_options& options = {}, Observer&& observer = {}) {
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
  detail::keep_descent descent(similarity, budget, clients, options.barrier, options.smallest);
  keep_report report;
  std::vector<double> best(descent.probabilities().begin(), descent.probabilities().end());
  report.penalised = descent.penalised();
  double radius = options.step;
  int without_gain = 0;
  while (report.iterations < options.iterations) {
    const double change = descent.step(radius);
    ++report.iterations;
    observer(report.iterations, descent.probabilities());
    const double now = descent.penalised();
    if (now < report.penalised) {
      if (report.penalised - now > 1e-5 * std::fabs(now)) without_gain = 0;
      report.penalised = now;
      best.assign(descent.probabilities().begin(), descent.probabilities().end());
    }
    if (++without_gain > 2) {
      radius /= 2;
      without_gain = 0;
    }
    if (radius < options.tolerance || change < options.tolerance) {
      report.stopped = keep_stop::tolerance;
      break;
    }
  }
  std::vector<double> own(similarity.nodes());
  for (std::size_t c = 0; c < clients.size(); ++c) {
    for (std::size_t n = 0; n < own.size(); ++n) own[n] = best[n * clients.size() + c];
    clients[c].assign(own);
  }
  report.objective = trajectory_objective(similarity, clients);
  report.slack = budget.slack(clients);
  report.penalised = report.objective - options.barrier * std::log(report.slack);
  return report;
}

}  // namespace subfed::inline v0
