// SPDX-License-Identifier: MIT
/// The steps of FedDrop's optimiser: all keep probabilities at once, within the budget.
#pragma once

#include <subfed/detail/keep_order.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// The probabilities of all clients, node by node, and what the steps of the optimiser need of
/// them.
class keep_descent {
 public:
  keep_descent(const trajectory_similarity& similarity, const flops_budget& budget,
               std::span<const keep_probabilities> clients, double barrier, double smallest)
      : nodes_(similarity.nodes()),
        budget_(budget),
        barrier_(barrier),
        smallest_(smallest),
        clients_(clients.size()),
        q_(similarity.nodes() * clients.size()),
        square_(q_.size() * clients.size()),
        next_(q_.size()),
        a_(q_.size()),
        root_(q_.size()),
        order_(q_.size()),
        group_(q_.size()) {
    const model& net = clients[0].parent();
    for (std::size_t g = 0; g < net.groups().size(); ++g) {
      fixed_.push_back(static_cast<double>(net.groups()[g].extent));
      groups_.push_back({clients[0].first(group_id(g)), clients[0][group_id(g)].size()});
    }
    for (std::size_t c = 0; c < clients_; ++c) {
      for (std::size_t n = 0; n < nodes_; ++n) {
        q_[n * clients_ + c] = (std::max)(clients[c].values()[n], smallest);
      }
    }
    for (std::size_t n = 0; n < nodes_; ++n) {
      float* const own = square_.data() + n * clients_ * clients_;
      for (std::size_t i = 0; i < clients_; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          own[i * clients_ + j] = own[j * clients_ + i] = static_cast<float>(similarity(n, i, j));
        }
      }
    }
    enter();
    for (std::size_t n = 0; n < nodes_; ++n) at(n).build(&q_[n * clients_]);
    mean_ = a_;
  }

  std::span<const double> probabilities() const noexcept { return q_; }
  /// Eq. 8 at the current probabilities.
  double penalised() const {
    double sum = 0;
    for (std::size_t i = 0; i < q_.size(); ++i) sum += a_[i] / q_[i];
    return sum - barrier_ * std::log(slack(q_));
  }

  /// Moves by at most `radius` and returns the largest change.
  double step(double radius) {
    find_roots();
    choose(radius);
    double largest = 0;
    for (std::size_t i = 0; i < q_.size(); ++i) {
      largest = (std::max)(largest, std::fabs(next_[i] - q_[i]));
    }
    q_.swap(next_);
    for (std::size_t n = 0; n < nodes_; ++n) at(n).update(&q_[n * clients_]);
    for (std::size_t i = 0; i < a_.size(); ++i) mean_[i] += 0.5 * (a_[i] - mean_[i]);
    return largest;
  }

 private:
  struct node_range {
    std::size_t first, count;
  };

  keep_order at(std::size_t n) {
    const std::size_t from = n * clients_;
    return {square_.data() + from * clients_, std::span(order_).subspan(from, clients_),
            std::span(group_).subspan(from, clients_), std::span(a_).subspan(from, clients_)};
  }

  /// sum_n q_c[n] of each group, a client in a row.
  std::vector<double> sums(const std::vector<double>& q) const {
    const std::size_t groups = groups_.size();
    std::vector<double> out(clients_ * groups), row(clients_);
    for (std::size_t g = 0; g < groups; ++g) {
      row.assign(clients_, groups_[g].count == 0 ? fixed_[g] : 0.0);
      for (std::size_t n = groups_[g].first; n < groups_[g].first + groups_[g].count; ++n) {
        for (std::size_t c = 0; c < clients_; ++c) row[c] += q[n * clients_ + c];
      }
      for (std::size_t c = 0; c < clients_; ++c) out[c * groups + g] = row[c];
    }
    return out;
  }
  double slack(const std::vector<double>& q) const {
    const std::vector<double> all = sums(q);
    double cost = 0;
    for (std::size_t c = 0; c < clients_; ++c) {
      cost += budget_.cost().at(std::span(all).subspan(c * groups_.size(), groups_.size()));
    }
    return budget_.ratio() - cost / (static_cast<double>(clients_) * budget_.cost().dense());
  }

  /// Shrinks the start until the budget is met with something to spare: log g is finite there.
  void enter() {
    next_.assign(q_.size(), smallest_);
    const double most = slack(next_);
    if (!(most > 0)) {
      fail("subfed: optimize_keep: with all keep probabilities at the smallest, " +
           text(smallest_) + ", the clients cost " + text(budget_.ratio() - most) +
           " of the model, which is not below the ratio " + text(budget_.ratio()));
    }
    const double spare = (std::min)(1e-3 * budget_.ratio(), most / 2);
    if (slack(q_) >= spare) return;
    double low = 0, high = 1;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      for (std::size_t k = 0; k < q_.size(); ++k) {
        next_[k] = (std::max)(smallest_, middle * q_[k]);
      }
      (slack(next_) >= spare ? low : high) = middle;
    }
    for (double& p : q_) p = (std::max)(smallest_, low * p);
  }

  /// root = sqrt(a / c), c the derivative of g by the probability with its sign changed.
  void find_roots() {
    const std::vector<double> all = sums(q_);
    const std::size_t groups = groups_.size();
    std::vector<double> price(clients_ * groups);
    for (std::size_t c = 0; c < clients_; ++c) {
      const auto own = budget_.cost().gradient(std::span(all).subspan(c * groups, groups));
      for (std::size_t g = 0; g < groups; ++g) {
        price[g * clients_ + c] = own[g] / (static_cast<double>(clients_) * budget_.cost().dense());
      }
    }
    for (std::size_t g = 0; g < groups; ++g) {
      for (std::size_t n = groups_[g].first; n < groups_[g].first + groups_[g].count; ++n) {
        for (std::size_t c = 0; c < clients_; ++c) {
          const double gain = mean_[n * clients_ + c], cost = price[g * clients_ + c];
          root_[n * clients_ + c] = !(gain > 0) ? 0
                                    : cost > 0  ? (std::min)(std::sqrt(gain / cost), 0x1p500)
                                                : 0x1p500;
        }
      }
    }
  }

  /// g - mu k^2 with next = root k within the radius; it falls with k.
  double place(double k, double radius) {
    for (std::size_t i = 0; i < q_.size(); ++i) {
      const double low = (std::max)(smallest_, q_[i] - radius);
      const double high = (std::min)(1.0, q_[i] + radius);
      next_[i] = (std::min)(high, (std::max)(low, root_[i] * k));
    }
    return slack(next_) - barrier_ * k * k;
  }
  /// Finds the k where g = mu k^2, from the side where the budget is met.
  void choose(double radius) {
    double low = k_, high = k_, factor = 1.02, below = place(k_, radius), above = below;
    if (below > 0) {
      while (above > 0) {
        if (high != low) low = high, below = above;
        above = place(high *= factor, radius);
        factor *= factor;
      }
    } else {
      while (!(below > 0) && low > 0) {
        if (high != low) high = low, above = below;
        below = place(low /= factor, radius);
        factor *= factor;
      }
    }
    // Regula falsi, with the weight of an end that stays halved; every fourth time the middle.
    for (int i = 1; high - low > 1e-7 * high; ++i) {
      const double part =
          i % 4 == 0 ? 0.5 : (std::min)(0.95, (std::max)(0.05, below / (below - above)));
      const double k = low + part * (high - low);
      if (!(k > low && k < high)) break;
      const double now = place(k, radius);
      if (now > 0) {
        low = k, below = now, above /= 2;
        if (now < 1e-3 * barrier_ * k * k) break;
      } else {
        high = k, above = now, below /= 2;
      }
    }
    k_ = low > 0 ? low : 1;
    place(low, radius);
  }

  std::size_t nodes_;
  const flops_budget& budget_;
  double barrier_, smallest_;
  std::size_t clients_;
  std::vector<double> q_;
  std::vector<float> square_;  ///< S, in the precision that choosing a step needs
  std::vector<double> next_, a_, mean_, root_;
  std::vector<std::uint32_t> order_, group_;
  std::vector<double> fixed_;
  std::vector<node_range> groups_;
  double k_ = 1;
};

}  // namespace subfed::inline v0::detail
