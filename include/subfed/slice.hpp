// SPDX-License-Identifier: MIT
/// Copying a submodel's tensor out of the global one. The inverse of scatter.
#pragma once

#include <subfed/detail/call_elements.hpp>
#include <subfed/detail/copy_rows.hpp>
#include <subfed/detail/copy_run.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/staged_rows.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace subfed::inline v0 {

/// Copies the selected elements of the global tensor:
///
///   local(p, q, ..) = global(rows[p], cols[q], ..)
///
/// Shapes    global chosen.global_extents(); local chosen.local_extents(); any strides.
/// Post      scatter(local, chosen, global) then changes nothing.
/// Throws    error when a shape differs, when local has several indices for one element, or when
///           the two overlap in memory; nothing has been written then.
/// Numerics  Bits are copied, NaN payloads included. Between different floating-point types
///           elements are rounded once, to nearest, ties to even.
/// Cost      Reads and writes each selected element once. Where gaps in a row are small they may be read,
///           too: no other thread should write to the global tensor meanwhile, even to other nodes.
template <class T = detail::deduced, class Global, class Local>
void slice(const Global& global, const selection& chosen, Local&& local) {
  using read = detail::convertible_element_t<T, Global, Local>;
  using written = detail::convertible_element_t<T, Local, Global>;
  const tensor_view<const read> from = detail::source<read>(global);
  const tensor_view<written> to = detail::destination<written>(std::forward<Local>(local));
  detail::check_shape("slice", "global", chosen.name(), from.extents(), chosen.global_extents());
  detail::check_shape("slice", "local", chosen.name(), to.extents(), chosen.local_extents());
  detail::check_unique("slice", "local", chosen.name(), to);
  detail::check_apart("slice", chosen.name(), from, to);

  const detail::loop_nest walk(chosen, from, to);
  const std::int64_t bytes = detail::bytes_to_place(to.size(), sizeof(written));
  const detail::placement where = detail::placement_of(bytes, bytes);
  const detail::float_mode mode;
  if constexpr (std::is_same_v<read, written>) {
    if (detail::copy_staged_rows(walk, 0, walk.outer_steps(), from.data_handle(), to.data_handle(),
                                 where)) {
      return;
    }
    const auto copy = [&](const detail::row_units& units, std::int64_t g, std::int64_t l) {
      units.copy_out(detail::bytes_at(from.data_handle() + g),
                     detail::bytes_at(to.data_handle() + l));
    };
    if (detail::for_each_row_of_units(walk, 0, walk.outer_steps(), sizeof(read), copy)) return;
  }
  walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
    detail::copy_run(from.data_handle() + g, walk.global_stride(), to.data_handle() + l,
                     walk.local_stride(), length, where);
  });
  detail::end_of_copies(where);
}

}  // namespace subfed::inline v0
