// SPDX-License-Identifier: MIT
/// The first nodes: HeteroFL's static submodels and FjORD's ordered dropout.
#pragma once

#include <subfed/scheme.hpp>

#include <cstdint>

namespace subfed::inline v0 {

/// S = {0 .. L-1}. [Rolex, Eq. 6] with floor; [FjORD, 3.1] with ceil. Sets are nested in the
/// capacity; the last K - L nodes are never held.
struct prefix {
  rounding round_to = rounding::floor;
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;

  /// The convention of [Rolex, Eq. 6]: floor.
  static prefix paper() { return {}; }
  /// The convention of the released HeteroFL code: ceil.
  static prefix released() { return {rounding::ceil, 1}; }
  /// Ordered dropout at width p = beta: ceil. [FjORD, 3.1]
  static prefix ordered() { return {rounding::ceil, 1}; }

  index_set operator()(const draw_request& where) const {
    return index_set::prefix(where.extent, where.kept(round_to, minimum));
  }
};

}  // namespace subfed::inline v0
