// SPDX-License-Identifier: MIT
#include <Eigen/Core>
#include <unsupported/Eigen/CXX11/Tensor>

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/adapt/eigen.hpp>
#include <subfed/slice.hpp>

#include <cstddef>

using conformance::layout;
using conformance::strided;
using subfed::borrowed;
using subfed::index_set;
using subfed::tensor_view;
using subfed::viewable;
using subfed::viewable_as;

namespace {

/// TensorMaps over memory in their own storage order.
template <int Rank, int Order>
struct maps {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 1;
  static bool fits(const layout& l) {
    return l.extents.size() == static_cast<std::size_t>(Rank) &&
           (Order == Eigen::RowMajor ? conformance::is_row_major(l)
                                     : conformance::is_column_major(l));
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    using tensor = Eigen::Tensor<float, Rank, Order>;
    typename tensor::Dimensions sizes;
    for (std::size_t r = 0; r < static_cast<std::size_t>(Rank); ++r) sizes[r] = memory.extents()[r];
    Eigen::TensorMap<tensor> map(memory.view().data_handle(), sizes);
    f(map);
  }
};

/// Tensors that own their elements.
template <int Order>
struct tensors {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 4;
  static bool fits(const layout& l) {
    return l.extents.size() == 3 && !conformance::has_stride_zero(l);
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const auto& e = memory.extents();
    Eigen::Tensor<float, 3, Order> tensor(e[0], e[1], e[2]);
    const auto indices = support::all_indices(e);
    for (const auto& i : indices) tensor(i[0], i[1], i[2]) = memory(i);
    f(tensor);
    for (const auto& i : indices) memory(i) = tensor(i[0], i[1], i[2]);
  }
};

}  // namespace

TEST_CASE("Eigen's tensors conform, in either storage order") {
  CHECK(conformance::failures<tensors<Eigen::ColMajor>>() == "");
  CHECK(conformance::failures<tensors<Eigen::RowMajor>>() == "");
  CHECK(conformance::failures<maps<3, Eigen::ColMajor>>() == "");
  CHECK(conformance::failures<maps<2, Eigen::RowMajor>>() == "");
}

TEST_CASE("an Eigen tensor of rank 0 has one element") {
  Eigen::Tensor<float, 0> scalar;
  scalar() = 7;
  const tensor_view<float> view(scalar);
  CHECK(view.rank() == 0);
  CHECK(view() == 7);
}

TEST_CASE("a fixed size and a map are seen, what is lazy is not") {
  using fixed = Eigen::TensorFixedSize<float, Eigen::Sizes<2, 3>>;
  using tensor = Eigen::Tensor<float, 3>;
  using map = Eigen::TensorMap<tensor>;
  using const_map = Eigen::TensorMap<const tensor>;
  static_assert(viewable<fixed> && !borrowed<fixed>);
  static_assert(viewable<tensor> && !borrowed<tensor>);
  static_assert(viewable<map> && borrowed<map>);
  static_assert(viewable_as<const_map, const float> && !viewable_as<const_map, float>);
  static_assert(!viewable_as<const tensor, float> && !viewable_as<tensor, double>);

  fixed small;
  small.setZero();
  small(1, 2) = 5;
  CHECK(tensor_view<float>(small)(1, 2) == 5);
  CHECK(tensor_view<float>(small).stride(0) == 1);

  tensor t(2, 3, 4);
  static_assert(!viewable<decltype(t + t)>);
  static_assert(!viewable<decltype(t.chip(0, 0))>);
  static_assert(!viewable<Eigen::TensorRef<tensor>>);
}
