// SPDX-License-Identifier: MIT
/// What one client holds in one round: an index set for each group of a model.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/node_ranges.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/selection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Where a submodel comes from: together with the model and the scheme, all that is needed to
/// derive it again.
struct draw_key {
  std::uint64_t seed = 0;
  std::uint64_t round = 0;
  std::uint64_t client = 0;
  subfed::capacity capacity = 1.0;

  friend bool operator==(const draw_key&, const draw_key&) = default;
};

namespace detail {

/// What is known of one tensor before its views: which elements, and the loops over them for
/// row-major tensors.
struct tensor_plan {
  selection chosen;
  loop_nest row_major;
};

}  // namespace detail

/// One index set per group; every tensor's shape and selection follow from them.
class submodel {
 public:
  /// Sets in the order of the model's groups. draw() makes them from a scheme.
  ///
  /// Throws  error when their number or an extent is not the model's; it names the group.
  submodel(model parent, std::vector<index_set> sets, draw_key origin = {})
      : model_(std::move(parent)), origin_(origin), sets_(std::move(sets)) {
    const auto groups = model_.groups();
    if (sets_.size() != groups.size()) {
      detail::fail("subfed: submodel: " + std::to_string(sets_.size()) +
                   " index sets are given for " + std::to_string(groups.size()) + " groups");
    }
    for (std::size_t g = 0; g < groups.size(); ++g) check_extent(groups[g], sets_[g]);
    taking_part_.resize(sets_.size());
    for (std::size_t g = 0; g < sets_.size(); ++g) {
      taking_part_[g].assign(sets_[g].runs().begin(), sets_[g].runs().end());
    }
  }

  /// All of the model.
  static submodel full(const model& parent) {
    std::vector<index_set> sets;
    for (const auto& group : parent.groups()) sets.push_back(index_set::full(group.extent));
    return {parent, std::move(sets)};
  }

  /// The model that it is part of.
  const model& parent() const noexcept { return model_; }
  const draw_key& origin() const noexcept { return origin_; }

  /// The nodes that the client holds of a group, in the client's order.
  const index_set& operator[](group_id group) const {
    static_cast<void>(model_[group]);  // refuses a foreign group
    return sets_[group.number()];
  }
  /// Number of nodes that the client holds of a group.
  std::int64_t extent(group_id group) const { return (*this)[group].size(); }

  /// Runs of the nodes that take part: all that are held, or fewer after restricted().
  std::span<const run> runs(group_id group) const {
    static_cast<void>(model_[group]);
    return taking_part_[group.number()];
  }

  /// Which elements of a tensor the client holds.
  selection operator[](tensor_id tensor) const {
    const auto& info = model_[tensor];
    if (plan_ != nullptr) return (*plan_)[tensor.number()].chosen;
    std::vector<selected_dimension> out;
    out.reserve(info.dimensions.size());
    const bool is_empty =
        std::find(info.extents.begin(), info.extents.end(), 0) != info.extents.end();
    for (const dimension& d : info.dimensions) out.push_back(expand(d, is_empty));
    return detail::proven_selection::of(std::move(out), info.name);
  }
  /// Shape of the client's tensor.
  std::vector<std::int64_t> extents(tensor_id tensor) const {
    std::vector<std::int64_t> out;
    out.reserve(model_[tensor].dimensions.size());
    for (const dimension& d : model_[tensor].dimensions) out.push_back(local_extent(d));
    return out;
  }

  /// Parameters that the client holds.
  std::int64_t size() const {
    std::int64_t n = 0;
    for (std::size_t t = 0; t < model_.tensors().size(); ++t) {
      std::int64_t elements = 1;
      for (const dimension& d : model_.tensors()[t].dimensions) {
        elements *= local_extent(d);
      }
      n += elements;
    }
    return n;
  }

  /// The same submodel with another set for one group, all of which takes part. Restrictions of
  /// other groups stay.
  ///
  /// Throws  error when the extent is not the group's.
  submodel with(group_id group, index_set nodes) const {
    check_extent(model_[group], nodes);
    submodel out = *this;
    out.taking_part_[group.number()].assign(nodes.runs().begin(), nodes.runs().end());
    out.sets_[group.number()] = std::move(nodes);
    out.plan_ = nullptr;
    return out;
  }

  /// The same tensors, but of this group only the given nodes take part: they alone are copied,
  /// averaged and counted. So a client that lacks a class does not contribute to that class's row
  /// of the output layer: sub.restricted(classes, index_set(10, labels)). [Rolex, A.2; HeteroFL]
  ///
  /// Throws  error when the extent is not the group's.
  /// Cost    O(n log n) for n runs of both sets, and a copy of the others.
  submodel restricted(group_id group, const index_set& nodes) const {
    const auto& info = model_[group];
    if (nodes.extent() != info.extent) {
      detail::fail("subfed: submodel: the restriction of group '" + info.name +
                   "' has the extent " + std::to_string(nodes.extent()) + ", expected " +
                   std::to_string(info.extent));
    }
    submodel out = *this;
    out.plan_.reset();
    out.taking_part_[group.number()] =
        detail::common_runs(taking_part_[group.number()], detail::ranges_of(nodes.runs()));
    return out;
  }

  /// The same submodel with its plan: the copies of all tensors, computed once for row-major
  /// tensors instead of in every call. slice, scatter and the averages use it; it pays off where a
  /// submodel is small or is used more than once. Copies share it; with() and restricted() drop it.
  ///
  /// Cost  A plan is as large as the runs of all tensors.
  submodel planned() const {
    if (plan_ != nullptr) return *this;
    std::vector<detail::tensor_plan> made;
    made.reserve(model_.tensors().size());
    for (std::size_t t = 0; t < model_.tensors().size(); ++t) {
      selection chosen = (*this)[tensor_id(t)];
      detail::loop_nest walk(chosen);
      made.push_back({std::move(chosen), std::move(walk)});
    }
    submodel out = *this;
    out.plan_ = std::make_shared<const std::vector<detail::tensor_plan>>(std::move(made));
    return out;
  }
  /// The same submodel without its plan, for keeping many of them.
  submodel unplanned() const {
    submodel out = *this;
    out.plan_ = {};
    return out;
  }
  /// The same model, the same nodes in the same order, taking part alike; origins may differ.
  bool same_nodes(const submodel& other) const {
    if (plan_ != nullptr && plan_ == other.plan_) return true;
    return sets_ == other.sets_ && taking_part_ == other.taking_part_ && model_ == other.model_;
  }

 private:
  friend struct detail::internals;
  /// For each tensor; empty without a plan.
  std::span<const detail::tensor_plan> plans() const noexcept {
    if (plan_ == nullptr) return {};
    return *plan_;
  }
  bool has_shape(tensor_id tensor, std::span<const std::int64_t> extents) const {
    const auto& dimensions = model_[tensor].dimensions;
    return std::equal(dimensions.begin(), dimensions.end(), extents.begin(), extents.end(),
                      [&](const dimension& d, std::int64_t e) { return local_extent(d) == e; });
  }
  static void check_extent(const model::group_info& group, const index_set& nodes) {
    if (nodes.extent() == group.extent) return;
    detail::fail("subfed: submodel: the index set of group '" + group.name + "' has the extent " +
                 std::to_string(nodes.extent()) + ", expected " + std::to_string(group.extent));
  }

  std::int64_t local_extent(const dimension& d) const {
    std::int64_t out = 0;
    for (const dimension::part& p : d.parts()) {
      const bool bound = p.group != dimension::no_group;
      out += p.repeat * p.block * (bound ? sets_[p.group].size() : p.whole);
    }
    return out;
  }

  /// More than 2^20 copies of some nodes have no runs in a tensor without elements.
  ///
  /// Cost  O(parts) and that of the runs; copies of a whole group form a single run.
  selected_dimension expand(const dimension& d, bool is_empty) const {
    selected_dimension out;
    for (const dimension::part& p : d.parts()) {
      const bool bound = p.group != dimension::no_group;
      const std::int64_t global = bound ? sets_[p.group].extent() : p.whole;
      const std::int64_t local = bound ? sets_[p.group].size() : p.whole;
      const run all{0, 0, global};
      const std::span<const run> runs =
          bound ? std::span<const run>(taking_part_[p.group]) : std::span<const run>(&all, 1);
      if (local == global && runs.size() == 1 && runs[0] == all) {
        detail::append_run(out.runs,
                           run{out.local_extent, out.global_extent, p.repeat * global * p.block});
      } else if (!runs.empty() && !(is_empty && p.repeat > std::int64_t{1} << 20)) {
        out.runs.reserve(out.runs.size() + runs.size());
        for (std::int64_t copy = 0; copy < p.repeat; ++copy) {
          for (const run& r : runs) {
            detail::append_run(
                out.runs,
                run{out.local_extent + (copy * local + r.position) * p.block,
                    out.global_extent + (copy * global + r.first) * p.block, r.length * p.block});
          }
        }
      }
      out.global_extent += p.repeat * global * p.block;
      out.local_extent += p.repeat * local * p.block;
    }
    return out;
  }

  model model_;
  draw_key origin_;
  std::vector<index_set> sets_;
  std::vector<std::vector<run>> taking_part_;
  std::shared_ptr<const std::vector<detail::tensor_plan>> plan_ = nullptr;
};

}  // namespace subfed::inline v0
