// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <Eigen/Dense>
#include <Eigen/SparseCore>
#include <adapt/conformance.hpp>
#include <subfed/adapt/eigen.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::borrowed;
using subfed::index_set;
using subfed::tensor_view;
using subfed::viewable;
using subfed::viewable_as;
using support::layout;
using support::message_of;
using support::strided;

namespace {

using row_major_matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using any_stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;

/// Maps with strides of their own.
template <class T>
struct maps {
  using element = T;
  static constexpr bool writable = true;
  static constexpr int least = 7;
  static bool fits(const layout& l) { return l.extents.size() == 2; }
  template <class F>
  static void with(strided<T>& memory, F&& f) {
    using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const layout& l = memory.where();
    Eigen::Map<matrix, Eigen::Unaligned, any_stride> map(memory.view().data_handle(), l.extents[0],
                                                         l.extents[1],
                                                         any_stride(l.strides[1], l.strides[0]));
    f(map);
  }
};

/// Matrices that own their elements, as the global tensors of a server do.
template <class Matrix>
struct matrices {
  using element = typename Matrix::Scalar;
  static constexpr bool writable = true;
  static constexpr int least = 4;
  static bool fits(const layout& l) {
    return l.extents.size() == 2 && !conformance::has_stride_zero(l);
  }
  template <class F>
  static void with(strided<element>& memory, F&& f) {
    const auto rows = static_cast<Eigen::Index>(memory.extents()[0]);
    const auto columns = static_cast<Eigen::Index>(memory.extents()[1]);
    Matrix matrix(rows, columns);
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index k = 0; k < columns; ++k) matrix(i, k) = memory({i, k});
    }
    f(matrix);
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index k = 0; k < columns; ++k) memory({i, k}) = matrix(i, k);
    }
  }
};

/// Blocks in the middle of a larger matrix.
struct blocks {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 4;
  static bool fits(const layout& l) { return matrices<Eigen::MatrixXf>::fits(l); }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const auto rows = static_cast<Eigen::Index>(memory.extents()[0]);
    const auto columns = static_cast<Eigen::Index>(memory.extents()[1]);
    Eigen::MatrixXf larger = Eigen::MatrixXf::Constant(rows + 3, columns + 2, 77);
    auto block = larger.block(2, 1, rows, columns);
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index k = 0; k < columns; ++k) block(i, k) = memory({i, k});
    }
    f(block);
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index k = 0; k < columns; ++k) memory({i, k}) = block(i, k);
    }
    block.setConstant(77);
    CHECK((larger.array() == 77).all());
  }
};

/// Vectors, and the columns and rows of a matrix.
template <class Vector>
struct vectors {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 4;
  static bool fits(const layout& l) { return l.extents.size() == 1; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const layout& l = memory.where();
    Eigen::Map<Vector, Eigen::Unaligned, Eigen::InnerStride<>> map(
        memory.view().data_handle(), l.extents[0], Eigen::InnerStride<>(l.strides[0]));
    f(map);
  }
};

template <class Map>
struct constant_maps {
  using element = float;
  static constexpr bool writable = false;
  static constexpr int least = 7;
  static bool fits(const layout& l) { return l.extents.size() == 2; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const layout& l = memory.where();
    const Eigen::Map<Map, Eigen::Unaligned, any_stride> map(memory.view().data_handle(),
                                                            l.extents[0], l.extents[1],
                                                            any_stride(l.strides[1], l.strides[0]));
    f(map);
  }
};

Eigen::MatrixXf counting(Eigen::Index rows, Eigen::Index columns) {
  Eigen::MatrixXf out(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index k = 0; k < columns; ++k) out(i, k) = static_cast<float>(i * columns + k);
  }
  return out;
}

Eigen::Matrix2f matrix(float a, float b, float c, float d) {
  Eigen::Matrix2f out;
  out << a, b, c, d;
  return out;
}

}  // namespace

TEST_CASE("dense objects are tensors, lazy expressions are none") {
  static_assert(viewable<Eigen::MatrixXf> && viewable<row_major_matrix> &&
                viewable<Eigen::VectorXd> && viewable<Eigen::RowVectorXi> &&
                viewable<Eigen::ArrayXXf> && viewable<Eigen::Matrix3f>);
  static_assert(
      viewable<Eigen::Map<Eigen::MatrixXf>> && viewable<Eigen::Map<const Eigen::MatrixXf>> &&
      viewable<Eigen::Ref<Eigen::MatrixXf>> && viewable<Eigen::Ref<const Eigen::MatrixXf>>);
  Eigen::MatrixXf m(2, 2);
  static_assert(viewable<decltype(m.block(0, 0, 1, 1))> && viewable<decltype(m.col(0))> &&
                viewable<decltype(m.row(0))> && viewable<decltype(m.transpose())> &&
                viewable<decltype(m.diagonal())>);
  static_assert(!viewable<decltype(m + m)> && !viewable<decltype(m * m)> &&
                !viewable<decltype(2 * m)> && !viewable<decltype(m.reverse())> &&
                !viewable<decltype((m + m).transpose())> && !viewable<decltype(m.cast<double>())> &&
                !viewable<Eigen::SparseMatrix<float>>);
}

TEST_CASE("what is const is only read, and a temporary that owns its elements is refused") {
  static_assert(viewable_as<Eigen::MatrixXf, float> && viewable_as<Eigen::MatrixXf, const float>);
  static_assert(!viewable_as<const Eigen::MatrixXf, float> &&
                viewable_as<const Eigen::MatrixXf, const float>);
  static_assert(!viewable_as<Eigen::Map<const Eigen::MatrixXf>, float> &&
                !viewable_as<Eigen::Ref<const Eigen::MatrixXf>, float>);
  static_assert(!viewable_as<Eigen::MatrixXf, double> &&
                !viewable_as<Eigen::MatrixXf, const double>);
  static_assert(!borrowed<Eigen::MatrixXf> && borrowed<Eigen::MatrixXf&> &&
                !borrowed<Eigen::Array3f> && borrowed<Eigen::Map<Eigen::MatrixXf>>);
  Eigen::MatrixXf m(2, 2);
  static_assert(borrowed<decltype(m.block(0, 0, 1, 1))> && borrowed<decltype(m.transpose())>);
  static_assert(!std::is_constructible_v<tensor_view<const float>, Eigen::MatrixXf> &&
                std::is_constructible_v<tensor_view<float>, Eigen::MatrixXf&> &&
                !std::is_constructible_v<tensor_view<float>, const Eigen::MatrixXf&>);
}

TEST_CASE("maps of every stride are sliced, scattered and averaged") {
  CHECK(conformance::failures<maps<float>>() == "");
  CHECK(conformance::failures<maps<std::int64_t>>() == "");
  CHECK(conformance::failures<maps<Eigen::half>>() == "");
  CHECK(conformance::failures<constant_maps<const Eigen::MatrixXf>>() == "");
}

TEST_CASE("matrices, arrays and blocks of either storage order are sliced and averaged") {
  CHECK(conformance::failures<matrices<Eigen::MatrixXf>>() == "");
  CHECK(conformance::failures<matrices<row_major_matrix>>() == "");
  CHECK(conformance::failures<matrices<Eigen::ArrayXXd>>() == "");
  CHECK(conformance::failures<blocks>() == "");
}

TEST_CASE("vectors of either direction are of rank 1") {
  CHECK(conformance::failures<vectors<Eigen::VectorXf>>() == "");
  CHECK(conformance::failures<vectors<Eigen::RowVectorXf>>() == "");
}

TEST_CASE("the shape and strides are those of the object") {
  Eigen::MatrixXf m = counting(4, 3);
  row_major_matrix r = m;
  const auto seen = [](const tensor_view<const float>& v) {
    return std::pair(support::extents_type(v.extents().begin(), v.extents().end()),
                     support::extents_type(v.strides().begin(), v.strides().end()));
  };
  using shape = support::extents_type;
  CHECK((seen(m) == std::pair(shape{4, 3}, shape{1, 4})));
  CHECK((seen(r) == std::pair(shape{4, 3}, shape{3, 1})));
  CHECK((seen(m.transpose()) == std::pair(shape{3, 4}, shape{4, 1})));
  CHECK((seen(m.block(1, 1, 2, 2)) == std::pair(shape{2, 2}, shape{1, 4})));
  CHECK((seen(m.col(2)) == std::pair(shape{4}, shape{1})));
  CHECK((seen(m.row(2)) == std::pair(shape{3}, shape{4})));
  CHECK((seen(r.row(2)) == std::pair(shape{3}, shape{1})));
  CHECK((seen(r.col(2)) == std::pair(shape{4}, shape{3})));
  CHECK((seen(m.diagonal()) == std::pair(shape{3}, shape{5})));
  CHECK((seen(r.diagonal()) == std::pair(shape{3}, shape{4})));
  const tensor_view<const float> diagonal = m.diagonal();
  CHECK(diagonal(2) == 8);
  const Eigen::MatrixXf fixed = Eigen::Matrix<float, 2, 1>(5, 6);
  CHECK(seen(fixed).first == shape{2, 1});  // a matrix at compile time, of one column by chance
  const Eigen::MatrixXf none(3, 0);
  CHECK(seen(none).first == shape{3, 0});
}

TEST_CASE("a server's matrices are sliced into the client's and scattered back") {
  Eigen::MatrixXf global = counting(4, 3);
  const index_set rows(4, {2, 0});
  const index_set columns(3, {2, 1});
  Eigen::MatrixXf local(2, 2);
  subfed::slice(global, {rows, columns}, local);
  CHECK(local == matrix(8, 7, 2, 1));
  row_major_matrix other = local;
  other *= -1;
  subfed::scatter(other, {rows, columns}, global);
  CHECK(global(2, 2) == -8);
  CHECK(global(0, 1) == -1);
  CHECK(global(1, 1) == 4);
  subfed::scatter_add(Eigen::MatrixXf(-other), {rows, columns}, global);  // a temporary is read
  CHECK(global(2, 2) == 0);

  Eigen::VectorXf bias(4);
  bias << 1, 2, 3, 4;
  Eigen::VectorXf local_bias(2);
  subfed::slice(bias, {rows}, local_bias);
  CHECK(local_bias == Eigen::Vector2f(3, 1));
  subfed::slice(bias, {rows}, global.row(3).head(2));  // a temporary that borrows is written to
  CHECK(global(3, 0) == 3);
  CHECK(global(3, 1) == 1);
  subfed::slice(global.transpose(), {columns, rows}, local.transpose());
  CHECK(local == matrix(0, 0, 0, 0));
}

TEST_CASE("a matrix of another shape is refused, and nothing written") {
  const Eigen::MatrixXf global = counting(4, 3);
  Eigen::MatrixXf local = Eigen::MatrixXf::Constant(2, 3, 9);
  CHECK(message_of([&] {
          subfed::slice(global, {index_set::prefix(4, 2), index_set::prefix(3, 2)}, local);
        }) == "subfed: slice: the local tensor has shape (2, 3), expected (2, 2)");
  CHECK(message_of([&] { subfed::slice(global, {index_set::full(4)}, local); }) ==
        "subfed: slice: the global tensor has shape (4, 3), expected (4,)");
  CHECK((local.array() == 9).all());
  Eigen::MatrixXf own = counting(4, 3);
  CHECK(message_of([&] {
          subfed::slice(own, {index_set::prefix(4, 2), index_set::full(3)}, own.topRows(2));
        }) == "subfed: slice: the global and the local tensor overlap in memory");
  CHECK(own == counting(4, 3));
}
