// SPDX-License-Identifier: MIT
/// Eigen's dense matrices, arrays, maps, refs and blocks as tensor views, and the tensors of its
/// unsupported modules. Includes nothing of Eigen.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace subfed::inline v0 {

namespace detail {

/// A dense Eigen object whose elements are in memory: Matrix, Array, Map, Ref, Block, Transpose of
/// these. Sums, products and other lazy expressions have no data() and do not match.
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

/// A number for parameters that are std::size_t in one class of Eigen and signed in another.
struct any_integer {
  std::size_t value;
  template <std::integral Integer>
  operator Integer() const noexcept {
    return static_cast<Integer>(value);
  }
};

/// Eigen::Tensor, TensorFixedSize and TensorMap of these. Lazy tensor expressions have no
/// dimensions() or no data() and do not match.
template <class M>
concept eigen_tensor = requires(M& m) {
  typename M::Dimensions;
  { M::NumIndices } -> std::convertible_to<int>;
  { m.rank() } -> std::convertible_to<std::int64_t>;
  { m.dimension(0) } -> std::convertible_to<std::int64_t>;
  requires std::same_as<std::remove_cvref_t<decltype(*m.data())>,
                        std::remove_const_t<typename M::Scalar>>;
  { static_cast<int>(M::Layout) } -> std::same_as<int>;
  requires static_cast<int>(M::RawAccess) == 1;  // not for TensorRef, which may be lazy
};

}  // namespace detail

/// Rank 1 for what is a vector at compile time (VectorXf, a column or row of a matrix), else rank
/// 2. Either storage order; strides are Eigen's own. A MatrixXf that happens to have one column is
/// of rank 2 too: pass m.col(0) for a tensor of rank 1.
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

/// Dense, in either storage order. A TensorMap owns nothing.
///
///   Eigen::Tensor<float, 4> kernels(64, 3, 3, 3);
///   subfed::slice(kernels, sub[weight], local);
template <detail::eigen_tensor M>
struct view_traits<M> {
  using element_type = std::remove_const_t<typename M::Scalar>;
  static constexpr bool owns = !requires { typename M::PointerType; };  // only TensorMap has it

  template <class T, class Self>
  requires std::convertible_to<decltype(std::declval<Self&>().data()), T*>
  static tensor_view<T> view(Self& m) {
    constexpr auto rank = static_cast<std::size_t>(M::NumIndices);
    static_assert(rank <= static_cast<std::size_t>(max_rank), "subfed: the rank is over 8");
    constexpr bool row_major = static_cast<int>(M::Layout) == 1;  // Eigen::RowMajor
    std::array<std::int64_t, rank> extents{};
    std::array<std::int64_t, rank> strides{};
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t r = row_major ? rank - 1 - i : i;
      extents[r] = static_cast<std::int64_t>(m.dimension(detail::any_integer{r}));
      strides[r] = stride;
      // More than 2^63 - 1 only in an empty tensor, or in one that is refused.
      if (extents[r] > 0) static_cast<void>(detail::multiply(stride, extents[r]));
    }
    return {m.data(), std::span<const std::int64_t>(extents),
            std::span<const std::int64_t>(strides)};
  }
};

}  // namespace subfed::inline v0
