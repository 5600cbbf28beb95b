// SPDX-License-Identifier: MIT
/// The mdspan family (std::, cuda::std::, Kokkos::) as tensor views. Includes none of them.
#pragma once

#include <subfed/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace subfed::inline v0 {

namespace detail {

/// An accessor that does nothing but p[i]: stateless, with one template argument, the element type.
/// Accessors that wrap another one (for device memory, say) have that as their argument.
template <class Accessor, class Element>
inline constexpr bool is_plain_accessor = false;
template <template <class> class Accessor, class Element>
inline constexpr bool is_plain_accessor<Accessor<Element>, Element> =
    std::is_empty_v<Accessor<Element>>&& requires {
  requires std::same_as<typename Accessor<Element>::reference, Element&>;
  requires std::same_as<typename Accessor<Element>::offset_policy, Accessor<Element>>;
};

template <class M>
concept any_mdspan = requires(const M& m) {
  typename M::extents_type;
  typename M::layout_type;
  typename M::accessor_type;
  typename M::data_handle_type;
  typename M::index_type;
  { m.mapping().is_strided() } -> std::convertible_to<bool>;
  { m.extents().rank() } -> std::convertible_to<std::size_t>;
  m.data_handle();
};

}  // namespace detail

/// Any layout with constant strides: layout_right, layout_left, layout_stride, padded ones, and
/// what submdspan returns for these. Accessors that scale or convert on access are refused at
/// compile time: their elements are not what is in memory.
///
///   std::mdspan w(data, 64, 20);
///   subfed::slice(w, sub[weight], std::mdspan(local, 16, 20));
///
/// Throws  error for a layout that is not strided, a rank over 8, or an extent or a stride over
///         2^63 - 1.
template <detail::any_mdspan M>
struct view_traits<M> {
  using element_type = std::remove_cv_t<typename M::element_type>;
  static constexpr bool owns = false;

  template <class T>
  requires std::convertible_to<typename M::data_handle_type, T*>
  static tensor_view<T> view(const M& m) {
    static_assert(
        detail::is_plain_accessor<typename M::accessor_type, typename M::element_type>,
        "subfed: an mdspan is viewed only through its default accessor: this one's accessor has "
        "state, or changes what is in memory when it is read");
    constexpr std::size_t rank = M::rank();
    static_assert(rank <= static_cast<std::size_t>(max_rank), "subfed: the rank is over 8");
    if (!m.mapping().is_strided()) {
      detail::fail("subfed: the mdspan's layout has no constant strides");
    }
    if constexpr (rank == 0) {
      return {m.data_handle() + static_cast<std::ptrdiff_t>(m.mapping()()), {}};
    } else {
      std::array<std::int64_t, rank> extents{};
      std::array<std::int64_t, rank> strides{};
      bool empty = false;
      for (std::size_t r = 0; r < rank; ++r) {
        using rank_type = typename M::extents_type::rank_type;
        extents[r] = detail::as_size(m.extents().extent(static_cast<rank_type>(r)));
        strides[r] = detail::as_size(m.mapping().stride(static_cast<rank_type>(r)));
        empty = empty || extents[r] == 0;
      }
      T* const data = m.data_handle();
      // The mapping of an empty mdspan must not be called.
      return {empty ? data : data + first_offset(m, std::make_index_sequence<rank>()),
              std::span<const std::int64_t>(extents), std::span<const std::int64_t>(strides)};
    }
  }

 private:
  template <std::size_t... R>
  static std::ptrdiff_t first_offset(const M& m, std::index_sequence<R...>) {
    return static_cast<std::ptrdiff_t>(
        m.mapping()(((void)R, static_cast<typename M::index_type>(0))...));
  }
};

}  // namespace subfed::inline v0
