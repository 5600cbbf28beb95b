// SPDX-License-Identifier: MIT
/// Expected FLOPs under keep probabilities, FedDrop's budget, and the constant start that meets it.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/cost/workload.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/systems/feddrop.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// flops(f, p_c): the operations of one forward pass when every dimension has the expected number
/// of kept elements. [FedDrop, Eq. 9 and 10]
///
///   sum over operations of price x positions x product over dimensions of E[elements kept]
///
/// Each factor is a linear function of sum_n p_c[n] of each group. Where one operation uses a group
/// in two dimensions (hidden to hidden of an LSTM) the paper's product of means is below the exact
/// expectation by sum p (1 - p).
class expected_flops {
 public:
  /// Throws  error when the workload is of another model, or has cost 0.
  expected_flops(model net, const workload& work,
                 const cost_rule& rule = cost_rule::feddrop_equations())
      : net_(std::move(net)) {
    cost_rule unbiased = rule;
    unbiased.bias = 0;
    const submodel all = submodel::full(net_);
    const std::vector<std::int64_t> both = work.counts(all, rule);
    const std::vector<std::int64_t> weights = work.counts(all, unbiased);
    for (std::size_t o = 0; o < both.size(); ++o) {
      const auto& operation = work.operations()[o];
      add(operation.elements, weights[o]);
      if (!operation.bias.empty()) add(operation.bias, both[o] - weights[o]);
    }
    std::vector<double> full;
    for (const auto& group : net_.groups()) full.push_back(static_cast<double>(group.extent));
    dense_ = at(full);
    if (!(dense_ > 0)) {
      detail::fail("subfed: expected_flops: the workload has no operation that costs anything");
    }
  }

  const model& parent() const noexcept { return net_; }
  /// flops(f): of the whole model.
  double dense() const noexcept { return dense_; }

  /// flops(f, p_c).
  ///
  /// Throws  error for probabilities of another model.
  double operator()(const keep_probabilities& keep) const { return at(group_sums(keep)); }

  /// From the expected number of kept nodes of each group of the model.
  double at(std::span<const double> sums) const {
    double out = 0;
    for (const term& t : terms_) {
      double product = t.coefficient;
      for (const factor& f : t.factors) product = detail::rounded_product(product, f.at(sums));
      out += product;
    }
    return out;
  }
  /// The derivative with respect to the number of kept nodes of each group: the price of a node's
  /// probability.
  std::vector<double> gradient(std::span<const double> sums) const {
    std::vector<double> out(sums.size(), 0.0);
    for (const term& t : terms_) {
      for (std::size_t own = 0; own < t.factors.size(); ++own) {
        double others = t.coefficient;
        for (std::size_t f = 0; f < t.factors.size(); ++f) {
          if (f != own) others *= t.factors[f].at(sums);
        }
        for (const auto& [group, times] : t.factors[own].groups) {
          out[group] += detail::rounded_product(others, times);
        }
      }
    }
    return out;
  }

  /// sum_n p_c[n] of each group; for a group that is never cut, its extent.
  ///
  /// Throws  error for probabilities of another model.
  std::vector<double> group_sums(const keep_probabilities& keep) const {
    if (!(keep.parent() == net_)) {
      detail::fail("subfed: expected_flops: the keep probabilities are of another model");
    }
    std::vector<double> out;
    for (std::size_t g = 0; g < net_.groups().size(); ++g) {
      const auto& group = net_.groups()[g];
      double sum = group.cut == cut::never ? static_cast<double>(group.extent) : 0.0;
      for (const double p : keep[group_id(g)]) sum += p;
      out.push_back(sum);
    }
    return out;
  }

 private:
  /// Elements of a dimension: constant + sum over groups of times x nodes kept.
  struct factor {
    double constant = 0;
    std::vector<std::pair<std::size_t, double>> groups = {};

    double at(std::span<const double> sums) const {
      double out = constant;
      for (const auto& [group, times] : groups) {
        out += detail::rounded_product(times, sums[group]);
      }
      return out;
    }
  };
  struct term {
    double coefficient;  ///< price x positions
    std::vector<factor> factors;
  };

  void add(const std::vector<dimension>& dimensions, std::int64_t count) {
    std::int64_t elements = 1;
    for (const dimension& d : dimensions) elements *= net_.extent(d);
    if (count == 0 || elements == 0) return;
    term made{static_cast<double>(count / elements), {}};
    for (const dimension& d : dimensions) {
      factor f;
      for (const dimension::part& p : d.parts()) {
        const auto times = static_cast<double>(p.repeat * p.block);
        if (p.group == dimension::no_group) {
          f.constant += times * static_cast<double>(p.whole);
        } else {
          f.groups.emplace_back(p.group, times);
        }
      }
      made.factors.push_back(std::move(f));
    }
    terms_.push_back(std::move(made));
  }

  model net_;
  std::vector<term> terms_;
  double dense_ = 0;
};

/// The limit on the total cost of a round's clients: g(p) >= 0 with
///
///   g(p) = r - sum over c of flops(f, p_c) / (|C| flops(f))          [FedDrop, Eq. 5]
class flops_budget {
 public:
  /// Throws  error when the ratio r is not in (0, 1].
  flops_budget(expected_flops cost, double ratio) : cost_(std::move(cost)), ratio_(ratio) {
    if (!detail::in_unit_interval(ratio)) {
      detail::fail("subfed: flops_budget: the ratio " + detail::text(ratio) + " is outside (0, 1]");
    }
  }

  const expected_flops& cost() const noexcept { return cost_; }
  double ratio() const noexcept { return ratio_; }

  /// g(p).
  ///
  /// Throws  error for no client, or probabilities of another model.
  double slack(std::span<const keep_probabilities> clients) const {
    if (clients.empty()) detail::fail("subfed: flops_budget: there is no client");
    double sum = 0;
    for (const keep_probabilities& keep : clients) sum += cost_(keep);
    return ratio_ - sum / (static_cast<double>(clients.size()) * cost_.dense());
  }

  /// The constant p of all nodes and clients with g(p) = 0, from which training starts and which
  /// UniDrop keeps: the largest double with g(p) >= 0. [FedDrop, 3.5]
  ///
  /// Throws  error unless what is never dropped costs less than the budget.
  double constant_start() const {
    const detail::float_mode mode;
    const auto share = [&](double p) {
      std::vector<double> sums;
      for (const auto& group : cost_.parent().groups()) {
        sums.push_back(static_cast<double>(group.extent) * (group.cut == cut::never ? 1 : p));
      }
      return cost_.at(sums) / cost_.dense();
    };
    if (ratio_ - share(1) >= 0) return 1;
    if (!(share(0) < ratio_)) {
      detail::fail("subfed: flops_budget: what is never dropped costs " + detail::text(share(0)) +
                   " of the model, expected less than the ratio " + detail::text(ratio_));
    }
    double low = 0, high = 1;
    for (int i = 0; i < 1100; ++i) {
      const double middle = low + (high - low) / 2;
      if (middle == low || middle == high) break;
      (ratio_ - share(middle) >= 0 ? low : high) = middle;
    }
    return low;
  }

 private:
  expected_flops cost_;
  double ratio_;
};

}  // namespace subfed::inline v0
