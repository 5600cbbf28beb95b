// SPDX-License-Identifier: MIT
/// Parts in which operators divide an axis by their number alone.
#pragma once

#include <subfed/graph/detail/axes.hpp>
#include <subfed/graph/detail/walk.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace subfed::inline v0::detail {

/// Parts that are equal by their number, as chunk makes them, must be cut alike: a client's network divides
/// what it has in the middle.
class equal_parts {
 public:
  explicit equal_parts(graph_walk& walk) : w_(walk) {
    std::vector<taken_part>& all = w_.taken;
    std::sort(all.begin(), all.end(), [](const taken_part& a, const taken_part& b) {
      if (a.value != b.value) return a.value < b.value;
      return a.dimension != b.dimension ? a.dimension < b.dimension : a.begin < b.begin;
    });
    for (std::size_t i = 0, j = 0; i < all.size(); i = j) {
      std::int64_t end = 0;
      bool is_equal = true;
      for (j = i;
           j < all.size() && all[j].value == all[i].value && all[j].dimension == all[i].dimension;
           ++j) {
        if (j != i && all[j].begin == all[j - 1].begin) continue;  // taken twice
        is_equal = is_equal && all[j].begin == end &&
                   w_.space.extent(all[j].part) == w_.space.extent(all[i].part);
        end += w_.space.extent(all[j].part);
      }
      if (is_equal && j - i > 1 && end == w_.values[all[i].value].extents[all[i].dimension]) {
        rows_.push_back({i, j});
      }
    }
  }
  /// Makes parts whole that cannot be cut alike; whether there were any.
  bool make_alike() {
    bool changed = false;
    for (const auto& [begin, end] : rows_) {
      const auto first = form(w_.taken[begin].part);
      bool is_alike = true, is_whole = true;
      for (std::size_t i = begin; i < end; ++i) {
        is_alike = is_alike && form(w_.taken[i].part) == first;
        is_whole = is_whole && w_.space.is_whole(w_.taken[i].part);
      }
      if (is_alike || is_whole) continue;
      const std::size_t why =
          w_.space.reason("it is divided in equal parts, which could not be cut alike");
      for (std::size_t i = begin; i < end; ++i) w_.space.make_whole(w_.taken[i].part, why);
      changed = true;
    }
    return changed;
  }

 private:
  /// Nodes that can be cut, with how often each occurs; whole ones by their number.
  std::vector<std::int64_t> form(const value_axis& a) {
    std::vector<std::int64_t> out;
    for (const factor_product& p : w_.space.leaves(a)) {
      std::int64_t inner = 1;
      for (std::size_t i = p.size(); i-- > 0;) {
        const std::int64_t e = w_.space.extent(p[i]);
        if (w_.space.is_whole(p[i])) {
          inner *= e;
        } else {
          out.insert(out.end(), {inner, -e});
          inner = 1;
        }
      }
      out.push_back(inner);
    }
    return out;
  }
  struct row {
    std::size_t begin, end;
  };
  graph_walk& w_;
  std::vector<row> rows_;  // of taken parts
};

/// Makes whole what is divided in equal parts that cannot be cut alike.
inline void cut_parts_alike(graph_walk& w) {
  equal_parts parts(w);
  while (parts.make_alike()) {
  }
}

}  // namespace subfed::inline v0::detail
