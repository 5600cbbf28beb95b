// SPDX-License-Identifier: MIT
/// From sums without masks to the state of a streaming average.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/fixed_point.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/dimension.hpp>
#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

class opened_sums {
 public:
  /// sums: the words of the plan, modulo 2^64. Survivors ascend.
  opened_sums(const round_plan& plan, std::span<const std::uint64_t> sums,
              std::vector<std::size_t> survivors)
      : plan_(plan), sums_(sums), survivors_(std::move(survivors)) {
    class_weight_.resize(plan.class_size.size(), 0);
    for (const std::size_t p : survivors_) {
      weight_ += plan.participants[p].weight;
      class_weight_[plan.class_of[p]] += plan.participants[p].weight;
    }
  }

  double weight() const noexcept { return weight_; }
  std::int64_t clients() const noexcept { return static_cast<std::int64_t>(survivors_.size()); }

  /// Throws  error for a sum that no updates within the bound have. Masks that did not cancel leave 64
  ///         random bits.
  void check() const {
    const fixed_point& sums = *plan_.options.average.sums;
    const double most = scaled(weight_ * sums.bound, -sums.exponent()) * (1 + 0x1p-20) +
                        static_cast<double>(clients());
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!plan_.tensors[t].sent) continue;
      const auto bits = released(t);
      for (std::size_t i = 0; i < elements(t); ++i) {
        if (!is_set(bits, i) || std::fabs(static_cast<double>(sum(t, i))) <= most) continue;
        const auto& info = plan_.net.tensors()[t];
        fail("subfed: secure: the sum of tensor '" + info.name + "' at global element " +
                 index_text(static_cast<std::int64_t>(i), info.extents) + impossible,
             {.tensor = info.name});
      }
    }
  }

  /// The state that the survivors' updates give. Seen: rounds and clients.
  ///
  /// Throws  error for a row's weight that its class does not have; nothing is lost then.
  template <class Seen>
  void write(std::vector<tensor_sums>& state, holder_list& holders, bool& dense, Seen& seen) const {
    for (const std::size_t p : survivors_) {
      const secure_participant& of = plan_.participants[p];
      holders.add(of.sub, of.weight);
      if (plan_.options.average.round) seen.insert({of.sub.origin().round, of.sub.origin().client});
    }
    std::size_t bytes_of_weights = 0;
    for (std::size_t t = 0; t < state.size(); ++t) {
      if (plan_.tensors[t].sent) open_tensor(t, holders, state[t]);
      if (state[t].weights.empty()) bytes_of_weights += 8 * state[t].fixed_sums.size();
    }
    // As in selective_average::add: many different submodels take more memory than weights.
    if (holders.bytes() <= static_cast<std::int64_t>(bytes_of_weights)) return;
    for (std::size_t t = 0; t < state.size(); ++t) state[t].keep_weights(tensor_id(t), holders);
    dense = true;
    holders = {};
  }

 private:
  static constexpr const char* impossible =
      " is beyond what the survivors' weights and the bound allow: a key is wrong, or an update is";

  std::size_t elements(std::size_t t) const noexcept {
    return static_cast<std::size_t>(plan_.tensors[t].elements);
  }
  std::int64_t sum(std::size_t t, std::size_t i) const noexcept {
    return static_cast<std::int64_t>(sums_[static_cast<std::size_t>(plan_.tensors[t].first) + i]);
  }
  std::span<const std::uint64_t> released(std::size_t t) const {
    return plan_.released.words(tensor_id(t));
  }
  static bool is_set(std::span<const std::uint64_t> bits, std::size_t i) noexcept {
    return (bits[i / 64] >> (i % 64) & 1) != 0;
  }

  void open_tensor(std::size_t t, const holder_list& holders, tensor_sums& to) const {
    const auto bits = released(t);
    to.begin_fixed_sums(plan_.net.tensors()[t].extents);
    for (std::size_t i = 0; i < to.fixed_sums.size(); ++i) {
      if (is_set(bits, i)) to.fixed_sums[i] = sum(t, i);
    }
    if (plan_.tensors[t].has_rows) {
      to.keep_weights(tensor_id(t), {});
      add_row_weights(t, to);
    } else if (plan_.tensors[t].withheld != 0) {
      to.keep_weights(tensor_id(t), holders);
    }
    for (std::size_t i = 0; i < to.weights.size(); ++i) {
      if (!is_set(bits, i)) to.weights[i] = 0;
    }
  }

  /// The weights of a tensor with private rows: what each class has sent for each row.
  void add_row_weights(std::size_t t, tensor_sums& to) const {
    const std::size_t rows = plan_.tensors[t].rows_of;
    const group_id group = plan_.options.private_rows[rows];
    const std::int64_t extent = plan_.net[group].extent;
    const std::int64_t unit = exponent_of(plan_.options.average.sums->weight_quantum());
    std::set<std::size_t> done;
    for (const std::size_t p : survivors_) {
      if (!plan_.sends_rows(p) || !done.insert(plan_.class_of[p]).second) continue;
      const submodel& sub = plan_.participants[p].sub;
      for (const run& r : sub.runs(group)) {
        for (std::int64_t node = r.first; node < r.first + r.length; ++node) {
          const std::uint64_t word = plan_.first_row(p, rows) + static_cast<std::uint64_t>(node);
          const auto sent = static_cast<std::int64_t>(sums_[static_cast<std::size_t>(word)]);
          const double weight = scaled(static_cast<double>(sent), unit);
          if (!(weight >= 0 && weight <= class_weight_[plan_.class_of[p]])) {
            const std::string& name = plan_.net[group].name;
            fail("subfed: secure: the weight of row " + std::to_string(node) + " of group '" +
                     name + "'" + impossible,
                 {.group = name});
          }
          if (!(weight > 0)) continue;
          const submodel row = sub.restricted(group, index_set::window(extent, node, 1));
          to.add_weight(rows_alone(row[tensor_id(t)], t, group), weight);
        }
      }
      // What is concatenated with the rows has no labels: all clients of the class take part.
      const submodel beside = sub.restricted(group, index_set(extent, {}));
      to.add_weight(beside[tensor_id(t)], class_weight_[plan_.class_of[p]]);
    }
  }
  /// Without what is concatenated with the nodes of a group, which one part of one dimension has.
  selection rows_alone(const selection& chosen, std::size_t t, group_id group) const {
    const auto& dimensions = plan_.net.tensors()[t].dimensions;
    std::vector<selected_dimension> out;
    for (int r = 0; r < chosen.rank(); ++r) {
      out.push_back(chosen.dimension(r));
      std::int64_t begin = 0;
      for (const dimension::part& p : dimensions[static_cast<std::size_t>(r)].parts()) {
        const bool bound = p.group != dimension::no_group;
        const std::int64_t nodes = bound ? plan_.net.groups()[p.group].extent : p.whole;
        const std::int64_t end = begin + p.repeat * nodes * p.block;
        if (p.group == group.number()) clip(out.back().runs, begin, end);
        begin = end;
      }
    }
    return proven_selection::of(std::move(out), chosen.name());
  }
  static void clip(std::vector<run>& runs, std::int64_t begin, std::int64_t end) {
    std::vector<run> all;
    all.swap(runs);
    for (const run& r : all) {
      const std::int64_t first = (std::max)(r.first, begin);
      const std::int64_t last = (std::min)(r.first + r.length, end);
      if (first < last) runs.push_back({r.position + (first - r.first), first, last - first});
    }
  }

  const round_plan& plan_;
  std::span<const std::uint64_t> sums_;
  std::vector<std::size_t> survivors_;
  std::vector<double> class_weight_;
  double weight_ = 0;
};

}  // namespace subfed::inline v0::detail
