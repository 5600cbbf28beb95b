// SPDX-License-Identifier: MIT
/// Putting a submodel's tensor back into the global one: the inverse and the adjoint of slice.
#pragma once

#include <subfed/detail/call_elements.hpp>
#include <subfed/detail/copy_run.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <cstdint>
#include <utility>

namespace subfed::inline v0 {

namespace detail {

/// Checks the arguments of a scatter and walks it.
template <class T, class Local, class Global, class F>
void scatter_with(const char* verb, const Local& local, const selection& chosen, Global&& global,
                  F&& write) {
  using read = convertible_element_t<T, Local, Global>;
  using written = convertible_element_t<T, Global, Local>;
  const tensor_view<const read> from = source<read>(local);
  const tensor_view<written> to = destination<written>(std::forward<Global>(global));
  check_shape(verb, "local", chosen.name(), from.extents(), chosen.local_extents());
  check_shape(verb, "global", chosen.name(), to.extents(), chosen.global_extents());
  check_unique(verb, "global", chosen.name(), to);
  check_apart(verb, chosen.name(), from, to);

  const loop_nest walk(chosen, to, from);
  const std::int64_t bytes = bytes_to_place(from.size(), sizeof(written));
  const placement where = placement_of(bytes, bytes);
  const float_mode mode;
  walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
    write(from.data_handle() + l, walk.local_stride(), to.data_handle() + g, walk.global_stride(),
          length, where);
  });
  end_of_copies(where);
}

}  // namespace detail

/// Writes the elements of the local tensor to where slice read them:
///
///   global(rows[p], cols[q], ..) = local(p, q, ..)
///
/// Shapes    local chosen.local_extents(); global chosen.global_extents(); any strides.
/// Post      slice(global, chosen, x) then gives local; elements not selected keep their bits.
/// Throws    error when a shape differs, when global has several indices for one element, or when
///           the two overlap in memory; nothing has been written then.
/// Numerics  As slice.
/// Cost      Reads and writes each selected element once.
template <class T = detail::deduced, class Local, class Global>
void scatter(const Local& local, const selection& chosen, Global&& global) {
  detail::scatter_with<T>("scatter", local, chosen, std::forward<Global>(global),
                          [](auto* from, std::int64_t from_stride, auto* to, std::int64_t to_stride,
                             std::int64_t n, detail::placement where) {
                            detail::copy_run(from, from_stride, to, to_stride, n, where);
                          });
}

/// Adds the elements of the local tensor to where slice read them:
///
///   global(rows[p], cols[q], ..) += local(p, q, ..)
///
/// Shapes    as scatter.
/// Post      The adjoint of slice: <slice(x), y> = <x, scatter_add(y) onto 0>.
/// Throws    as scatter.
/// Numerics  One addition per element, in the element type. For half types, and where the two types
///           differ, the exact sum is rounded once to the global type.
/// Cost      Reads two and writes one element for each selected one.
template <class T = detail::deduced, class Local, class Global>
void scatter_add(const Local& local, const selection& chosen, Global&& global) {
  detail::scatter_with<T>(
      "scatter_add", local, chosen, std::forward<Global>(global),
      [](auto* from, std::int64_t from_stride, auto* to, std::int64_t to_stride, std::int64_t n,
         detail::placement) { detail::add_run(from, from_stride, to, to_stride, n); });
}

}  // namespace subfed::inline v0
