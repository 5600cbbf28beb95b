// SPDX-License-Identifier: MIT
/// The steps of FedDrop's optimiser: all keep probabilities at once, within the budget.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/systems/detail/client_units.hpp>
#include <subfed/systems/detail/portable_log.hpp>
#include <subfed/systems/detail/probability_order.hpp>
#include <subfed/systems/detail/probability_pools.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// The probabilities of all clients, node by node, and what the optimiser's steps derive from them.
/// With the prices c of the budget and its multiplier 1 / k^2, each node minimises
///
///   sum_i a_i / q_i + c_i q_i / k^2  over q that do not rise along the node's order,
///
/// which gives q = k sqrt(a / c), where neighbours in the wrong order are pooled: equal q, sums of
/// a and of c. So clients stay equal where equal is best; turn_ties and part_ties check whether
/// other orders of equal clients would separate them with a gain.
class probability_descent {
 public:
  probability_descent(const trajectory_similarity& similarity, const flops_budget& budget,
                      std::span<const keep_probabilities> clients, double barrier, double smallest)
      : nodes_(similarity.nodes()),
        budget_(budget),
        smallest_(smallest),
        unit_of_(units_of(similarity, clients)),
        units_(static_cast<std::size_t>(*std::max_element(unit_of_.begin(), unit_of_.end())) + 1),
        size_(units_, 0.0),
        q_(nodes_ * units_),
        square_(q_.size() * units_, 0.0f),
        next_(q_.size()),
        a_(q_.size()),
        root_(q_.size()),
        order_(q_.size()) {
    const model& net = clients[0].parent();
    for (std::size_t g = 0; g < net.groups().size(); ++g) {
      fixed_.push_back(static_cast<double>(net.groups()[g].extent));
      groups_.push_back({clients[0].first(group_id(g)), clients[0][group_id(g)].size()});
    }
    for (std::size_t c = 0; c < clients.size(); ++c) {
      size_[unit_of_[c]] += 1;
      for (std::size_t n = 0; n < nodes_; ++n) {
        q_[n * units_ + unit_of_[c]] = (std::max)(clients[c].values()[n], smallest);
      }
    }
    take(similarity, barrier);
    enter();
    for (std::size_t n = 0; n < nodes_; ++n) at(n).build(&q_[n * units_]);
    out_.resize(nodes_ * clients.size());
  }

  /// The clients of a node are contiguous.
  std::span<const double> probabilities() {
    const std::size_t clients = unit_of_.size();
    for (std::size_t n = 0; n < nodes_; ++n) {
      for (std::size_t c = 0; c < clients; ++c) {
        out_[n * clients + c] = q_[n * units_ + unit_of_[c]];
      }
    }
    return out_;
  }
  /// Eq. 8 at the current probabilities, in units of the largest S.
  double penalised() const {
    double sum = 0;
    for (std::size_t i = 0; i < q_.size(); ++i) sum += a_[i] / q_[i];
    return sum - rounded_product(barrier_, portable_log(slack(q_)));
  }

  /// Moves by at most `radius` and returns the largest change.
  double step(double radius) {
    find_prices(sums(q_));
    each_node([&](std::size_t n, const double* price) {
      if (started_) {
        turn_ties(n, price);
      } else {
        part_ties(n, price);
      }
      pools_.build(at(n), price);
      pools_.lay_out(at(n), &root_[n * units_]);
    });
    return go(radius);
  }

  /// For probabilities that have settled: separates ties, and tries clients at other places of the
  /// orders, at the current prices. Goes there, however far that is, and returns whether that
  /// gained anything.
  bool reorder() {
    std::vector<double> all = sums(q_);
    find_prices(all);
    std::vector<std::pair<double, std::size_t>> gains;
    each_node([&](std::size_t n, const double* price) {
      const double before = value(at(n), price);
      part_ties(n, price);
      const double gain = before - sweep(n, price, sweep_for::gain);
      if (gain > 1e-5 * std::fabs(before)) gains.emplace_back(-gain, n);
    });
    // A change at one node changes the prices of others: the largest gain comes first.
    std::sort(gains.begin(), gains.end());
    for (const auto& [gain, n] : gains) {
      std::size_t g = 0;
      while (n < groups_[g].first || n >= groups_[g].first + groups_[g].count) ++g;
      const double* const price = &price_[g * units_];
      sweep(n, price, sweep_for::change);
      pools_.build(at(n), price);
      pools_.lay_out(at(n), &root_[n * units_]);
      for (std::size_t c = 0; c < units_; ++c) {
        double& own = q_[n * units_ + c];
        const double now = clamped(rounded_product(root_[n * units_ + c], k_));
        all[c * groups_.size() + g] += now - own;
        own = now;
      }
      find_prices(all);
    }
    if (gains.empty()) return false;
    each_node([&](std::size_t n, const double* price) {
      pools_.build(at(n), price);
      pools_.lay_out(at(n), &root_[n * units_]);
    });
    go(1);
    return true;
  }

 private:
  struct node_range {
    std::size_t first, count;
  };
  enum class sweep_for { gain, change };

  template <class F>
  void each_node(F&& f) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t n = groups_[g].first; n < groups_[g].first + groups_[g].count; ++n) {
        f(n, &price_[g * units_]);
      }
    }
  }
  probability_order at(std::size_t n) {
    const std::size_t from = n * units_;
    return {square_.data() + from * units_, std::span(order_).subspan(from, units_),
            std::span(a_).subspan(from, units_)};
  }
  double clamped(double q) const { return (std::min)(1.0, (std::max)(smallest_, q)); }

  /// S of the units and the barrier, both over the largest S (a power of 2), so that floats hold
  /// them.
  void take(const trajectory_similarity& similarity, double barrier) {
    double largest = 0;
    for (std::size_t n = 0; n < nodes_; ++n) {
      for (const double s : similarity.triangle(n)) largest = (std::max)(largest, std::fabs(s));
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    std::vector<double> own(units_ * units_);
    const std::size_t clients = unit_of_.size();
    for (std::size_t n = 0; n < nodes_; ++n) {
      own.assign(own.size(), 0.0);
      const double* s = similarity.triangle(n).data();
      for (std::size_t i = 0; i < clients; ++i) {
        for (std::size_t j = 0; j <= i; ++j, ++s) {
          const double scaled = std::ldexp(*s, -exponent);
          own[unit_of_[i] * units_ + unit_of_[j]] += scaled;
          if (i != j) own[unit_of_[j] * units_ + unit_of_[i]] += scaled;
        }
      }
      std::transform(own.begin(), own.end(),
                     square_.begin() + static_cast<std::ptrdiff_t>(n * units_ * units_),
                     [](double x) { return static_cast<float>(x); });
    }
    barrier_ = (std::min)(std::ldexp(barrier, -exponent), 0x1p500);
  }

  /// sum_n q_c[n] of each group, one client per row.
  std::vector<double> sums(const std::vector<double>& q) const {
    const std::size_t groups = groups_.size();
    std::vector<double> out(units_ * groups), row(units_);
    for (std::size_t g = 0; g < groups; ++g) {
      row.assign(units_, groups_[g].count == 0 ? fixed_[g] : 0.0);
      for (std::size_t n = groups_[g].first; n < groups_[g].first + groups_[g].count; ++n) {
        for (std::size_t c = 0; c < units_; ++c) row[c] += q[n * units_ + c];
      }
      for (std::size_t c = 0; c < units_; ++c) out[c * groups + g] = row[c];
    }
    return out;
  }
  double slack(const std::vector<double>& q) const {
    const std::vector<double> all = sums(q);
    double cost = 0;
    for (std::size_t c = 0; c < units_; ++c) {
      const auto own = std::span(all).subspan(c * groups_.size(), groups_.size());
      cost += rounded_product(size_[c], budget_.cost().at(own));
    }
    return budget_.ratio() - cost / (static_cast<double>(unit_of_.size()) * budget_.cost().dense());
  }

  /// Shrinks the start until the budget is met with a margin: log g is finite there.
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

  /// c, the negative derivative of g with respect to each probability.
  void find_prices(const std::vector<double>& all) {
    const std::size_t groups = groups_.size();
    const double dense = static_cast<double>(unit_of_.size()) * budget_.cost().dense();
    price_.resize(units_ * groups);
    for (std::size_t c = 0; c < units_; ++c) {
      const auto own = budget_.cost().gradient(std::span(all).subspan(c * groups, groups));
      for (std::size_t g = 0; g < groups; ++g) {
        price_[g * units_ + c] = (std::max)(0x1p-900, size_[c] * own[g] / dense);
      }
    }
  }

  /// f(from, to) for each run of equal probabilities of a node's order.
  template <class F>
  void each_tie(std::size_t n, F&& f) {
    const double* const q = &q_[n * units_];
    const std::uint32_t* const order = &order_[n * units_];
    for (std::size_t from = 0, to; from < units_; from = to) {
      to = from + 1;
      while (to < units_ && q[order[to]] == q[order[from]]) ++to;
      if (to != from + 1) f(from, to);
    }
  }

  /// Of two equal neighbours, the one that loses less by decreasing comes second.
  void turn_ties(std::size_t n, const double* price) {
    const probability_order own = at(n);
    each_tie(n, [&](std::size_t from, std::size_t to) {
      const double q = q_[n * units_ + own.order[from]];
      const double z = q / k_ * (q / k_);
      for (std::size_t k = from + 1; k < to; ++k) {
        const std::size_t i = own.order[k - 1], j = own.order[k];
        const double behind = own.a[j] - rounded_product(z, price[j]);
        const double other = own.a[i] - 2 * own.similarity(i, j) - rounded_product(z, price[i]);
        if (other < behind) own.move(k, k - 1);
      }
    });
  }

  /// Puts equal ones in an order along which they separate, if there is one: decreasing alone, a
  /// set T of them loses sum over T of (S_ii + 2 sum of S_ij with j below - z c_i) + sum over pairs
  /// in T. T is grown from nothing by the least loss, or from all by leaving out the largest.
  void part_ties(std::size_t n, const double* price) {
    const probability_order own = at(n);
    each_tie(n, [&](std::size_t from, std::size_t to) {
      const double q = q_[n * units_ + own.order[from]];
      double z = q / k_ * (q / k_);
      if (!started_) {
        double gain = 0, cost = 0;
        for (std::size_t k = from; k < to; ++k) {
          gain += own.a[own.order[k]];
          cost += price[own.order[k]];
        }
        z = gain / cost;
      }
      members_.assign(own.order.begin() + static_cast<std::ptrdiff_t>(from),
                      own.order.begin() + static_cast<std::ptrdiff_t>(to));
      alone_.clear();
      for (std::size_t k = 0; k < members_.size(); ++k) {
        const std::size_t i = members_[k];
        double loss = own.a[i] - rounded_product(z, price[i]);
        for (std::size_t l = k + 1; l < members_.size(); ++l) {
          loss -= 2 * own.similarity(i, members_[l]);
        }
        alone_.push_back(loss);
      }
      const bool few = members_.size() <= 16, lowest = q == smallest_;
      double least = 0;
      for (const double side : {1.0, -1.0}) {
        if (!few && lowest == (side > 0)) continue;
        const double loss = grow(own, side);
        if (loss < least) {
          least = loss;
          place_.assign(grown_.begin(), grown_.end());
        }
      }
      if (!(least < 0)) return;
      for (std::size_t k = 0; k < place_.size(); ++k) {
        std::size_t there = from + k;
        while (own.order[there] != place_[k]) ++there;
        own.move(there, from + k);
      }
    });
  }
  /// side 1: from nothing; -1: from all. Leaves the members in grown_, the last to decrease first,
  /// and returns the least loss on the way.
  double grow(const probability_order& own, double side) {
    const std::size_t count = members_.size();
    loss_.assign(alone_.begin(), alone_.end());
    double sum = 0;
    if (side < 0) {
      for (std::size_t x = 0; x < count; ++x) {
        for (std::size_t y = 0; y < count; ++y) {
          if (x != y) loss_[x] += 2 * own.similarity(members_[x], members_[y]);
        }
      }
      for (std::size_t x = 0; x < count; ++x) sum += 0.5 * (alone_[x] + loss_[x]);
    }
    left_.resize(count);
    for (std::size_t x = 0; x < count; ++x) left_[x] = static_cast<std::uint32_t>(x);
    grown_.resize(count);
    double least = 0;
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t best = 0;
      for (std::size_t y = 1; y < left_.size(); ++y) {
        const double apart = side * (loss_[left_[y]] - loss_[left_[best]]);
        if (apart < 0 || (apart == 0 && members_[left_[y]] < members_[left_[best]])) best = y;
      }
      const std::size_t x = left_[best];
      left_[best] = left_.back();
      left_.pop_back();
      sum += side * loss_[x];
      if (k + 1 < count) least = (std::min)(least, sum);
      grown_[side > 0 ? count - 1 - k : k] = members_[x];
      const float* const row = own.square + members_[x] * units_;
      for (const std::uint32_t y : left_) {
        loss_[y] += 2 * side * static_cast<double>(row[members_[y]]);
      }
    }
    return least;
  }

  /// The minimum of a node's term along its order.
  double value(const probability_order& own, const double* price) {
    pools_.build(own, price);
    double sum = 0;
    for (const auto& p : pools_) {
      const double q = clamped(rounded_product(pools_.root_of(p), k_));
      sum += p.gain / q + p.cost / k_ * (q / k_);
    }
    return sum;
  }
  /// Tries other orders of a node's clients: all orders of up to four; else each client at other
  /// places, all of them for up to 16, the neighbouring ones for more. Returns the minimum; if only
  /// the gain is wanted, the order is unchanged.
  double sweep(std::size_t n, const double* price, sweep_for purpose) {
    const probability_order own = at(n);
    const auto better = [&](double now, double v) { return v < now - 1e-9 * std::fabs(now); };
    double least = value(own, price);
    place_.assign(own.order.begin(), own.order.end());
    grown_ = place_;
    if (units_ <= 4) {
      left_ = place_;
      std::sort(left_.begin(), left_.end());
      do {
        reach(own, left_);
        if (const double v = value(own, price); better(least, v)) least = v, place_ = left_;
      } while (std::next_permutation(left_.begin(), left_.end()));
    } else {
      const std::size_t farthest = units_ <= 16 ? units_ : 1;
      for (std::size_t from = 0; from < units_; ++from) {
        std::size_t best = from, there = from;
        const std::size_t last = (std::min)(units_ - 1, from + farthest);
        for (std::size_t to = from - (std::min)(from, farthest); to <= last; ++to) {
          if (to == from) continue;
          own.move(there, to);
          there = to;
          if (const double v = value(own, price); better(least, v)) least = v, best = to;
        }
        own.move(there, best);
      }
      place_.assign(own.order.begin(), own.order.end());
    }
    reach(own, purpose == sweep_for::gain ? grown_ : place_);
    return least;
  }
  static void reach(const probability_order& own, const std::vector<std::uint32_t>& wanted) {
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      std::size_t there = k;
      while (own.order[there] != wanted[k]) ++there;
      own.move(there, k);
    }
  }

  double go(double radius) {
    choose(radius);
    started_ = true;
    double largest = 0;
    for (std::size_t i = 0; i < q_.size(); ++i) {
      largest = (std::max)(largest, std::fabs(next_[i] - q_[i]));
    }
    q_.swap(next_);
    for (std::size_t n = 0; n < nodes_; ++n) at(n).update(&q_[n * units_]);
    return largest;
  }

  /// g - mu k^2 with next = root k within the radius; it decreases with k.
  double place(double k, double radius) {
    for (std::size_t i = 0; i < q_.size(); ++i) {
      const double low = (std::max)(smallest_, q_[i] - radius);
      const double high = (std::min)(1.0, q_[i] + radius);
      next_[i] = (std::min)(high, (std::max)(low, rounded_product(root_[i], k)));
    }
    return slack(next_) - rounded_product(rounded_product(barrier_, k), k);
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
    // Regula falsi, with the weight of an end that does not move halved; every fourth step takes
    // the middle.
    for (int i = 1; high - low > 1e-7 * high; ++i) {
      const double part =
          i % 4 == 0 ? 0.5 : (std::min)(0.95, (std::max)(0.05, below / (below - above)));
      const double k = low + rounded_product(part, high - low);
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
  double barrier_ = 0, smallest_;
  std::vector<std::uint32_t> unit_of_;  ///< of each client
  std::size_t units_;
  std::vector<double> size_;  ///< clients of each unit
  std::vector<double> q_;
  std::vector<float> square_;  ///< S, in the precision needed to choose a step
  std::vector<double> next_, a_, root_, price_, out_;
  std::vector<std::uint32_t> order_;
  std::vector<double> fixed_;
  std::vector<node_range> groups_;
  double k_ = 1;
  bool started_ = false;
  // Scratch of one node.
  probability_pools pools_;
  std::vector<double> alone_, loss_;
  std::vector<std::uint32_t> members_, left_, grown_, place_;
};

}  // namespace subfed::inline v0::detail
