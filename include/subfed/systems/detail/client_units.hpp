// SPDX-License-Identifier: MIT
/// Indistinguishable clients of FedDrop's optimiser, taken together.
#pragma once

#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Clients with the same probabilities and the same S form one unit. The number of its unit for
/// each client; units are numbered by their first client.
inline std::vector<std::uint32_t> units_of(const trajectory_similarity& similarity,
                                           std::span<const keep_probabilities> clients) {
  const auto alike = [&](std::size_t x, std::size_t y) {
    const auto p = clients[x].values(), q = clients[y].values();
    if (!std::equal(p.begin(), p.end(), q.begin())) return false;
    for (std::size_t n = 0; n < similarity.nodes(); ++n) {
      if (similarity(n, x, x) != similarity(n, y, y)) return false;
      for (std::size_t j = 0; j < clients.size(); ++j) {
        if (j != x && j != y && similarity(n, x, j) != similarity(n, y, j)) return false;
      }
    }
    return true;
  };
  std::vector<std::uint32_t> out;
  std::vector<std::size_t> first;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    std::uint32_t unit = 0;
    while (unit < first.size() && !alike(first[unit], c)) ++unit;
    if (unit == first.size()) first.push_back(c);
    out.push_back(unit);
  }
  return out;
}

}  // namespace subfed::inline v0::detail
