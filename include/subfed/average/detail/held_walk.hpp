// SPDX-License-Identifier: MIT
/// The elements of a tensor that a submodel holds.
#pragma once

#include <subfed/detail/loop_nest.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <cstddef>
#include <cstdint>

namespace subfed::inline v0::detail {

/// The loops over the elements of tensor number t that take part, of row-major tensors.
inline loop_nest held_walk(const submodel& sub, std::size_t t) {
  static constexpr char no_data = 0;  // the walk looks at the strides alone
  const selection chosen = sub[tensor_id(t)];
  const tensor_view<const char> local(&no_data, chosen.local_extents());
  return {chosen, sub.parent().tensors()[t].extents, local};
}

/// Calls f(offset in the row-major global tensor, offset in the row-major local one) for every
/// element of a walk.
template <class F>
void for_each_held(const loop_nest& walk, F&& f) {
  walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      f(g + i * walk.global_stride(), l + i * walk.local_stride());
    }
  });
}
template <class F>
void for_each_held(const submodel& sub, std::size_t t, F&& f) {
  for_each_held(held_walk(sub, t), f);
}

}  // namespace subfed::inline v0::detail
