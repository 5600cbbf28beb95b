// SPDX-License-Identifier: MIT
/// Eigen's dense matrices, arrays, maps, refs and blocks as tensor views. Includes nothing of
/// Eigen.
#pragma once

#include <subfed/tensor_view.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace subfed::inline v0 {

namespace detail {

/// A dense Eigen object whose elements are in memory: Matrix, Array, Map, Ref, Block, Transpose of
/// these. Sums, products and other lazy expressions have no data() and are none.
template <class M>
concept eigen_dense = requires(M& m) {
  { m.rows() } -> std::convertible_to<std::int64_t>;
  { m.cols() } -> std::convertible_to<std::int64_t>;
  { m.rowStride() } -> std::convertible_to<std::int64_t>;
  { m.colStride() } -> std::convertible_to<std::int64_t>;
  { *m.data() } -> std::convertible_to<typename M::Scalar>;
  typename M::PlainObject;
  { M::RowsAtCompileTime + M::ColsAtCompileTime } -> std::convertible_to<int>;
};

}  // namespace detail

/// Rank 1 for what is a vector at compile time (VectorXf, a column or row of a matrix), else
/// rank 2. Either storage order; strides are Eigen's own.
///
///   Eigen::MatrixXf w(64, 20);
///   subfed::slice(w, sub[weight], local);
template <detail::eigen_dense M>
struct view_traits<M> {
  using element_type = std::remove_const_t<typename M::Scalar>;
  static constexpr bool owns = std::same_as<typename M::PlainObject, M>;

  template <class T, class Self>
  requires std::convertible_to<decltype(std::declval<Self&>().data()), T*>
  static tensor_view<T> view(Self& m) {
    if constexpr (M::ColsAtCompileTime == 1) {
      return {m.data(), {m.rows()}, {m.rowStride()}};
    } else if constexpr (M::RowsAtCompileTime == 1) {
      return {m.data(), {m.cols()}, {m.colStride()}};
    } else {
      return {m.data(), {m.rows(), m.cols()}, {m.rowStride(), m.colStride()}};
    }
  }
};

}  // namespace subfed::inline v0
