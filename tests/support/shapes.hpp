// SPDX-License-Identifier: MIT
/// RapidCheck generators that shrink: shapes, layouts, sets of nodes.
#pragma once

#include <rapidcheck.h>
#include <subfed/index_set.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {

/// Rank 0 .. most_rank; extents 0, 1, 2 and primes.
inline rc::Gen<extents_type> gen_extents(int most_rank) {
  return rc::gen::mapcat(rc::gen::inRange(0, most_rank + 1), [](int rank) {
    return rc::gen::container<extents_type>(
        static_cast<std::size_t>(rank),
        rc::gen::weightedElement<std::int64_t>(
            {{1, 0}, {4, 1}, {4, 2}, {4, 3}, {3, 5}, {1, 4}, {1, 7}}));
  });
}

/// A layout without two indices for one element, with a seed that shrinks towards row-major.
inline rc::Gen<layout> gen_layout(const extents_type& extents) {
  return rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 100000), [extents](std::uint64_t seed) {
    if (seed == 0) return row_major(extents);
    seeded random(seed);
    return random_layout(random, extents);
  });
}

/// A layout for a tensor that is only read: stride 0 too.
inline rc::Gen<layout> gen_source_layout(const extents_type& extents) {
  return rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 100000), [extents](std::uint64_t seed) {
    if (seed == 0) return row_major(extents);
    seeded random(seed);
    return random_source_layout(random, extents);
  });
}

/// Distinct nodes of [0, extent), in any order.
inline rc::Gen<std::vector<std::int64_t>> gen_nodes(std::int64_t extent) {
  return rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 100000), [extent](std::uint64_t seed) {
    seeded random(seed);
    return random_nodes(random, extent);
  });
}

}  // namespace support
