// SPDX-License-Identifier: MIT
/// What a scheme is given, and what a scheme is.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>

namespace subfed::inline v0 {

/// A request for one set of nodes: for which client, when, of which group. It has everything that a
/// scheme may depend on, so a set can be derived again anywhere and never has to travel.
struct draw_request {
  std::uint64_t seed = 0;           ///< of the whole run
  std::uint64_t round = 0;          ///< j, from 0
  std::uint64_t client = 0;         ///< its number, the same in every round
  std::string_view group = {};      ///< the group's name
  std::int64_t extent = 0;          ///< K, nodes of the group
  subfed::capacity capacity = 1.0;  ///< beta, the client's share

  /// L, the nodes to keep.
  std::int64_t kept(rounding mode = rounding::floor, std::int64_t minimum = 1) const {
    return capacity.of(extent, mode, minimum);
  }
};

/// Any copyable callable from a draw request to an index_set: a pure function, without state or
/// global generator. A lambda is one:
///   [](const draw_request& s) { return index_set::prefix(s.extent, s.kept()); }
template <class S>
concept scheme = std::copy_constructible<S> && requires(const S& s, const draw_request& where) {
  { s(where) } -> std::convertible_to<index_set>;
};

}  // namespace subfed::inline v0
