// SPDX-License-Identifier: MIT
/// xtensor's containers, adaptors and strided views as tensor views. Includes nothing of xtensor.
#pragma once

#include <subfed/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// An xtensor object whose elements are in memory at constant strides: xarray, xtensor,
/// xtensor_fixed, xt::adapt, xt::view and xt::strided_view of these. Sums, broadcasts, generators
/// and views through index lists (xt::keep, xt::index_view) have no data() or no strides() and do
/// not match.
template <class M>
concept xtensor_in_memory = requires(M& m) {
  { *std::begin(m.shape()) } -> std::convertible_to<std::int64_t>;
  { *std::begin(m.strides()) } -> std::convertible_to<std::int64_t>;
  { m.data_offset() } -> std::convertible_to<std::size_t>;
  requires std::same_as<std::remove_cvref_t<decltype(*m.data())>,
                        std::remove_cv_t<typename M::value_type>>;
  requires std::is_pointer_v<std::remove_cvref_t<decltype(m.data())>>;
  M::static_layout;
};

/// Deduces the expression under a view, a reference for a view of an lvalue: the first argument of
/// xview<Expression, Slices...> and of xstrided_view<Expression, Shape, layout, Storage>. void
/// where it is not a view. (From template arguments, because xtensor keeps their names private.)
template <class Layout>
struct viewed_expression {
  template <class T>
  struct of {
    using type = T;
  };
  template <template <class, class...> class View, class Expression, class... Slices>
  static of<Expression> deduce(const View<Expression, Slices...>*);
  template <template <class, class, Layout, class> class View, class Expression, class Shape,
            Layout L, class Storage>
  static of<Expression> deduce(const View<Expression, Shape, L, Storage>*);
  static of<void> deduce(const void*);
};

/// Whether the object owns the elements. True where xtensor's types do not tell (an xt::adapt of a
/// bare pointer may own it).
template <class M>
constexpr bool xtensor_owns() {
  if constexpr (requires { typename M::container_closure_type; }) {
    return !std::is_reference_v<typename M::container_closure_type>;
  } else {
    using layout = std::remove_const_t<decltype(M::static_layout)>;
    using expression =
        typename decltype(viewed_expression<layout>::deduce(static_cast<const M*>(nullptr)))::type;
    if constexpr (std::is_void_v<expression>) {
      return true;
    } else if constexpr (std::is_reference_v<expression>) {
      return false;
    } else {
      return xtensor_owns<std::remove_cv_t<expression>>();
    }
  }
}

}  // namespace detail

/// Either storage order, any strides, signed too; rank up to 8.
///
///   xt::xarray<float> w = xt::zeros<float>({64, 20});
///   subfed::slice(w, sub[weight], xt::view(buffer, xt::range(0, 16), xt::all()));
template <detail::xtensor_in_memory M>
struct view_traits<M> {
  using element_type = std::remove_cv_t<typename M::value_type>;
  static constexpr bool owns = detail::xtensor_owns<M>();

  template <class T, class Self>
  requires std::convertible_to<decltype(std::declval<Self&>().data()), T*>
  static tensor_view<T> view(Self& m) {
    std::vector<std::int64_t> extents;
    for (const auto extent : m.shape()) extents.push_back(detail::as_size(extent));
    std::vector<std::int64_t> strides;  // 0 in dimensions of extent 1
    for (const auto stride : m.strides()) strides.push_back(detail::as_size(stride));
    return {m.data() + static_cast<std::ptrdiff_t>(m.data_offset()), extents, strides};
  }
};

}  // namespace subfed::inline v0
