// SPDX-License-Identifier: MIT
/// From parts back to a dimension.
#pragma once

#include <subfed/dimension.hpp>

#include <cstddef>
#include <span>

namespace subfed::inline v0::detail {

/// The dimension of these parts.
///
/// Throws  error for a repeat or a block below 1, a negative number of whole elements, and as dimension
///         does.
/// Cost    O(n log n) for n parts.
inline dimension dimension_of(std::span<const dimension::part> parts) {
  if (parts.size() > 1) {
    const std::size_t half = parts.size() / 2;
    return concat({dimension_of(parts.first(half)), dimension_of(parts.subspan(half))});
  }
  if (parts.empty()) return concat({});
  const dimension::part& p = parts[0];
  const dimension base =
      p.group == dimension::no_group ? dimension(p.whole) : dimension(group_id(p.group));
  return base.repeat(p.repeat).block(p.block);
}

}  // namespace subfed::inline v0::detail
