// SPDX-License-Identifier: MIT
/// Index sets as the kernels read them: tables of 32-bit nodes, one for each distinct submodel and
/// dimension, however many tensors and clients share it.
#pragma once

#include <subfed/cuda/detail/packed_arrays.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda::detail {

/// Where those nodes of a dimension are that take part, in the client's order. Without a table,
/// node i is itself.
struct paired_nodes {
  std::int64_t count = 0;
  std::int64_t first_global = 0;  ///< added to the table's entry
  std::int64_t first_local = 0;
  std::int64_t global_table = no_array;
  std::int64_t local_table = no_array;
};

/// Where the client has a global node: without a table at node + shift, for nodes in [first,
/// first + count); else at table[node], which is negative when the client does not hold it.
struct held_nodes {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t shift = 0;
  std::int64_t table = no_array;
};

/// Makes each table once and puts it into packed arrays.
class node_tables {
 public:
  node_tables(const model& net, packed_arrays& into) : packed_(&into) {
    for (const auto& t : net.tensors()) {
      std::vector<std::size_t> ids;
      for (const dimension& d : t.dimensions) {
        const auto known = std::find(dimensions_.begin(), dimensions_.end(), d);
        ids.push_back(static_cast<std::size_t>(known - dimensions_.begin()));
        if (known == dimensions_.end()) dimensions_.push_back(d);
      }
      ids_.push_back(std::move(ids));
    }
  }

  /// The number of a submodel, the same for the same nodes.
  std::size_t number_of(const submodel& sub) {
    for (std::size_t s = 0; s < submodels_.size(); ++s) {
      if (submodels_[s].same_nodes(sub)) return s;
    }
    submodels_.push_back(sub);
    return submodels_.size() - 1;
  }

  /// Dimension r of tensor t of submodel s. Pre: `chosen` is that selection.
  paired_nodes paired(std::size_t s, std::size_t t, int r, const selection& chosen) {
    const auto [at, is_new] = paired_.try_emplace(key(s, t, r));
    if (is_new) at->second = make_paired(chosen, r);
    return at->second;
  }
  held_nodes held(std::size_t s, std::size_t t, int r, const selection& chosen) {
    const auto [at, is_new] = held_.try_emplace(key(s, t, r));
    if (is_new) at->second = make_held(chosen, r);
    return at->second;
  }

 private:
  using key_type = std::pair<std::size_t, std::size_t>;

  key_type key(std::size_t s, std::size_t t, int r) const {
    return {s, ids_[t][static_cast<std::size_t>(r)]};
  }

  static void check_extent(const selection& chosen, std::int64_t extent) {
    constexpr std::int64_t most = (std::numeric_limits<std::int32_t>::max)();
    if (extent <= most) return;
    subfed::detail::fail("subfed: cuda: tensor '" + chosen.name() + "' has a cut dimension of " +
                         std::to_string(extent) + " elements, expected at most 2^31 - 1");
  }

  paired_nodes make_paired(const selection& chosen, int r) const {
    const selected_dimension& d = chosen.dimension(r);
    paired_nodes out;
    for (const run& x : d.runs) out.count += x.length;
    if (d.runs.empty()) return out;
    if (d.runs.size() == 1) {
      out.first_global = d.runs[0].first;
      out.first_local = d.runs[0].position;
      return out;
    }
    check_extent(chosen, (std::max)(d.global_extent, d.local_extent));
    std::vector<std::int32_t> global, local;
    for (const run& x : d.runs) {
      for (std::int64_t i = 0; i < x.length; ++i) {
        global.push_back(static_cast<std::int32_t>(x.first + i));
        local.push_back(static_cast<std::int32_t>(x.position + i));
      }
    }
    out.global_table = packed_->append(global);
    bool in_place = true;
    for (std::size_t i = 0; i < local.size(); ++i) {
      in_place = in_place && local[i] == static_cast<std::int32_t>(i);
    }
    if (!in_place) out.local_table = packed_->append(local);
    return out;
  }

  held_nodes make_held(const selection& chosen, int r) const {
    const selected_dimension& d = chosen.dimension(r);
    if (d.runs.empty()) return {};
    if (d.runs.size() == 1) {
      const run& x = d.runs[0];
      return {x.first, x.length, x.position - x.first, no_array};
    }
    check_extent(chosen, (std::max)(d.global_extent, d.local_extent));
    std::vector<std::int32_t> table(static_cast<std::size_t>(d.global_extent), -1);
    for (const run& x : d.runs) {
      for (std::int64_t i = 0; i < x.length; ++i) {
        table[static_cast<std::size_t>(x.first + i)] = static_cast<std::int32_t>(x.position + i);
      }
    }
    return {0, d.global_extent, 0, packed_->append(table)};
  }

  packed_arrays* packed_;
  std::vector<dimension> dimensions_;
  std::vector<std::vector<std::size_t>> ids_;  // of each tensor's dimensions
  std::vector<submodel> submodels_;
  std::map<key_type, paired_nodes> paired_;
  std::map<key_type, held_nodes> held_;
};

}  // namespace subfed::inline v0::cuda::detail
