// SPDX-License-Identifier: MIT
#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/adapt/xtensor.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

using conformance::layout;
using conformance::strided;
using subfed::borrowed;
using subfed::index_set;
using subfed::tensor_view;
using subfed::viewable;
using subfed::viewable_as;

namespace {

/// Containers that own their elements, in either storage order.
template <class Container>
struct containers {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 9;
  static bool fits(const layout& l) { return !conformance::has_stride_zero(l); }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const std::vector<std::size_t> shape(memory.extents().begin(), memory.extents().end());
    Container array = Container::from_shape(shape);
    const auto indices = support::all_indices(memory.extents());
    for (const auto& index : indices) array.element(index.begin(), index.end()) = memory(index);
    f(array);
    for (const auto& index : indices) memory(index) = array.element(index.begin(), index.end());
  }
};

/// xt::adapt of a buffer with strides of its own.
struct adaptors {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 10;
  static bool fits(const layout& l) {
    return !conformance::has_stride_zero(l) && !conformance::has_negative_stride(l);
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const layout& l = memory.where();
    const std::vector<std::size_t> shape(l.extents.begin(), l.extents.end());
    // xtensor wants the number of elements, not how far they reach.
    auto array = xt::adapt(memory.view().data_handle(),
                           static_cast<std::size_t>(support::elements_of(l.extents)),
                           xt::no_ownership(), shape, l.strides);
    f(array);
  }
};

/// Strided views into a flat container, of every layout.
struct strided_views {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 19;
  static bool fits(const layout&) { return true; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const layout& l = memory.where();
    auto flat = xt::adapt(memory.buffer(), std::vector<std::size_t>{memory.buffer().size()});
    xt::dynamic_shape<std::size_t> shape(l.extents.begin(), l.extents.end());
    xt::dynamic_shape<std::ptrdiff_t> strides(l.strides.begin(), l.strides.end());
    auto view = xt::strided_view(flat, std::move(shape), std::move(strides),
                                 static_cast<std::size_t>(l.origin), xt::layout_type::dynamic);
    f(view);
  }
};

xt::xarray<float> counting(std::size_t rows, std::size_t columns) {
  xt::xarray<float> out = xt::xarray<float>::from_shape({rows, columns});
  for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = static_cast<float>(i);
  return out;
}

}  // namespace

TEST_CASE("xtensor's containers, adaptors and strided views conform") {
  CHECK(conformance::failures<containers<xt::xarray<float>>>() == "");
  CHECK(conformance::failures<containers<xt::xarray<float, xt::layout_type::column_major>>>() ==
        "");
  CHECK(conformance::failures<adaptors>() == "");
  CHECK(conformance::failures<strided_views>() == "");
}

TEST_CASE("a view's elements begin where the view does") {
  xt::xarray<float> matrix = counting(3, 3);
  auto part = xt::view(matrix, xt::range(1, 3), xt::range(1, 3));
  std::vector<float> flat(4);
  subfed::slice(part, {index_set::full(2), index_set::full(2)},
                tensor_view<float>(flat.data(), {2, 2}));
  CHECK(flat == std::vector<float>{4, 5, 7, 8});

  // A view of a view, a row, and one that runs backwards.
  auto corner = xt::view(part, xt::range(1, 2), xt::all());
  CHECK(tensor_view<float>(corner)(0, 1) == 8);
  const auto row = xt::view(matrix, 2, xt::all());
  CHECK(tensor_view<const float>(row).rank() == 1);
  CHECK(tensor_view<const float>(row)(1) == 7);
  auto backwards = xt::strided_view(
      matrix, {xt::range(xt::placeholders::_, xt::placeholders::_, -1), xt::all()});
  CHECK(tensor_view<float>(backwards)(0, 0) == 6);
  CHECK(tensor_view<float>(backwards)(2, 1) == 1);
  auto turned = xt::transpose(matrix);
  CHECK(tensor_view<float>(turned)(0, 2) == 6);
}

TEST_CASE("a dimension of extent 1, for which xtensor reports stride 0, can be written to") {
  xt::xarray<float> w = xt::zeros<float>({2, 1, 3});
  CHECK(w.strides()[1] == 0);
  const float local[] = {7, 8};
  subfed::scatter(tensor_view<const float>(local, {1, 1, 2}),
                  {index_set(2, {1}), index_set(1, {0}), index_set(3, {2, 0})}, w);
  CHECK(w(1, 0, 2) == 7);
  CHECK(w(1, 0, 0) == 8);
  CHECK(tensor_view<float>(w).is_row_major());
}

TEST_CASE("a destination may be written in place as a view") {
  xt::xtensor<float, 2> buffer = xt::zeros<float>({4, 4});
  const xt::xarray<float> global = counting(3, 2);
  subfed::slice(global, {index_set(3, {2, 0}), index_set(2, {1})},
                xt::view(buffer, xt::range(1, 3), xt::range(3, 4)));
  CHECK(buffer(1, 3) == 5);
  CHECK(buffer(2, 3) == 1);
  CHECK(xt::sum(buffer)() == 6);
}

TEST_CASE("temporaries that own their elements, and lazy expressions, are told apart from views") {
  using array = xt::xarray<float>;
  using fixed = xt::xtensor_fixed<float, xt::xshape<2, 3>>;
  static_assert(viewable<array> && !borrowed<array>);
  static_assert(viewable<xt::xtensor<double, 3>> && !borrowed<xt::xtensor<double, 3>>);
  static_assert(viewable<fixed> && !borrowed<fixed>);
  static_assert(viewable_as<const array, const float> && !viewable_as<const array, float>);
  static_assert(!viewable_as<array, double>);

  array a = counting(2, 3);
  const array b = a;
  std::vector<float> buffer(6);
  using of_lvalue = decltype(xt::view(a, xt::all(), 1));
  using of_const = decltype(xt::view(b, xt::all(), 1));
  using of_temporary = decltype(xt::view(array(a), xt::all(), 1));
  static_assert(viewable<of_lvalue> && borrowed<of_lvalue> && viewable_as<of_lvalue, float>);
  static_assert(borrowed<of_const> && !viewable_as<of_const, float>);
  static_assert(viewable<of_temporary> && !borrowed<of_temporary>);
  static_assert(borrowed<decltype(xt::view(xt::view(a, xt::all(), 1), xt::range(0, 1)))>);
  static_assert(borrowed<decltype(xt::transpose(a))> &&
                !borrowed<decltype(xt::transpose(array(a)))>);
  using lent = decltype(xt::adapt(buffer, std::vector<std::size_t>{2, 3}));
  using taken = decltype(xt::adapt(std::move(buffer), std::vector<std::size_t>{2, 3}));
  static_assert(viewable<lent> && borrowed<lent>);
  static_assert(viewable<taken> && !borrowed<taken>);

  static_assert(!viewable<decltype(a + a)>);
  static_assert(!viewable<decltype(xt::zeros<float>({2, 3}))>);
  static_assert(!viewable<decltype(xt::view(a + a, xt::all(), 1))>);
  static_assert(!viewable<decltype(xt::strided_view(a + a, {xt::all(), 1}))>);
  static_assert(!viewable<decltype(xt::view(a, xt::keep(0, 1), xt::all()))>);
  static_assert(!viewable<decltype(xt::broadcast(a, {2, 2, 3}))>);
}
