// SPDX-License-Identifier: MIT
/// Which elements of a global tensor a local one holds, dimension by dimension.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/index_set.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Where one dimension of a local tensor is in that of the global one. Local positions that no run
/// names do not take part (label rows that a client does not have). Runs are checked by the
/// selection that uses them.
struct selected_dimension {
  std::int64_t global_extent = 0;
  std::int64_t local_extent = 0;
  std::vector<run> runs = {};

  selected_dimension() = default;
  selected_dimension(std::int64_t global, std::int64_t local, std::vector<run> named)
      : global_extent(global), local_extent(local), runs(std::move(named)) {}
  /// Position p is node s[p].
  selected_dimension(const index_set& s)
      : global_extent(s.extent()), local_extent(s.size()), runs(s.runs().begin(), s.runs().end()) {}

  /// All positions, each in its place.
  bool is_whole() const noexcept {
    return local_extent == global_extent &&
           (global_extent == 0 || (runs.size() == 1 && runs[0] == run{0, 0, global_extent}));
  }
};

namespace detail {
struct proven_selection;
}

/// local(p, q, ..) is global(rows[p], cols[q], ..): one index set per dimension.
///
/// Made from index sets, selection{rows, cols}, or by a submodel, which expands its groups' sets to
/// the dimensions of a tensor.
class selection {
 public:
  /// Selects the one element of a rank-0 tensor.
  selection() = default;
  /// Throws  error for a rank over 8, or more than 2^63 - 1 elements.
  selection(std::initializer_list<index_set> sets) : dimensions_(sets.begin(), sets.end()) {
    check_shape();
  }
  /// `name` appears in error messages.
  ///
  /// Throws  error as above, and for runs that leave their dimension, are empty, or share a
  ///         position or a node.
  /// Cost    O(n log n) for n runs.
  explicit selection(std::vector<selected_dimension> dimensions, std::string name = {})
      : dimensions_(std::move(dimensions)), name_(std::move(name)) {
    for (std::size_t r = 0; r < dimensions_.size(); ++r) check_runs(r);
    check_shape();
  }

  int rank() const noexcept { return static_cast<int>(dimensions_.size()); }
  const selected_dimension& dimension(int r) const noexcept {
    return dimensions_[static_cast<std::size_t>(r)];
  }
  /// Shape of the global tensor.
  std::vector<std::int64_t> global_extents() const {
    std::vector<std::int64_t> out;
    for (const auto& d : dimensions_) out.push_back(d.global_extent);
    return out;
  }
  /// Shape of the local tensor.
  std::vector<std::int64_t> local_extents() const {
    std::vector<std::int64_t> out;
    for (const auto& d : dimensions_) out.push_back(d.local_extent);
    return out;
  }
  /// The tensor's name, empty when it has none.
  const std::string& name() const noexcept { return name_; }

 private:
  friend struct detail::proven_selection;

  [[noreturn]] void refuse(const std::string& what) const {
    detail::fail(
        "subfed: selection: " + (name_.empty() ? "" : "of tensor '" + name_ + "': ") + what,
        {.tensor = name_});
  }

  /// A rank up to 8, and extents that can be multiplied in any order.
  void check_shape() const {
    if (dimensions_.size() > static_cast<std::size_t>(max_rank)) {
      refuse("the rank " + std::to_string(dimensions_.size()) + " is over 8");
    }
    const std::vector<std::int64_t> extents = global_extents();
    if (!detail::fits_in_any_order(extents) || !detail::fits_in_any_order(local_extents())) {
      refuse("the shapes " + detail::shape_text(extents) + " and " +
             detail::shape_text(local_extents()) +
             " have more than 2^63 - 1 elements, extents of 0 left out");
    }
  }

  void check_runs(std::size_t r) const {
    const selected_dimension& d = dimensions_[r];
    const auto refuse_run = [&](const run& a, const std::string& why) {
      refuse("the run {" + std::to_string(a.position) + ", " + std::to_string(a.first) + ", " +
             std::to_string(a.length) + "} of dimension " + std::to_string(r) + ", from " +
             std::to_string(d.global_extent) + " to " + std::to_string(d.local_extent) +
             " elements, " + why);
    };
    if (d.global_extent < 0 || d.local_extent < 0) {
      refuse("dimension " + std::to_string(r) + " has the extents " +
             std::to_string(d.global_extent) + " and " + std::to_string(d.local_extent) +
             ", expected none that is negative");
    }
    for (const run& a : d.runs) {
      if (a.length < 1) refuse_run(a, "is empty");
      if (a.position < 0 || a.position > d.local_extent - a.length || a.first < 0 ||
          a.first > d.global_extent - a.length) {
        refuse_run(a, "leaves it");
      }
    }
    for (const auto begin : {&run::position, &run::first}) {
      std::vector<run> sorted = d.runs;
      std::sort(sorted.begin(), sorted.end(),
                [begin](const run& a, const run& b) { return a.*begin < b.*begin; });
      for (std::size_t i = 1; i < sorted.size(); ++i) {
        if (sorted[i].*begin - sorted[i - 1].*begin < sorted[i - 1].length) {
          refuse_run(sorted[i], "meets another");
        }
      }
    }
  }

  std::vector<selected_dimension> dimensions_;
  std::string name_;
};

namespace detail {

/// Selections that need no check: those of index sets and a model, which have been checked.
struct proven_selection {
  static selection of(std::vector<selected_dimension> dimensions, std::string name) {
    selection out;
    out.dimensions_ = std::move(dimensions);
    out.name_ = std::move(name);
    return out;
  }
};

}  // namespace detail

}  // namespace subfed::inline v0
