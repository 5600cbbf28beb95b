// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/tensor_views.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

using subfed::tensor_view;
using subfed::tensor_views;

namespace {

/// A tensor of a user's own, which owns its elements.
struct numbers {
  std::vector<float> elements;
};
struct unseen {};

}  // namespace

template <>
struct subfed::view_traits<numbers> {
  using element_type = float;
  static constexpr bool owns = true;
  template <class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, const float>
  static tensor_view<T> view(numbers& v) {
    return {v.elements.data(), {static_cast<std::int64_t>(v.elements.size())}};
  }
  template <class T>
  requires std::is_same_v<T, const float>
  static tensor_view<T> view(const numbers& v) {
    return {v.elements.data(), {static_cast<std::int64_t>(v.elements.size())}};
  }
};

TEST_CASE("the tensors of a model are given as a braced list or as a range") {
  numbers a{{1, 2}};
  numbers b{{3}};
  const auto sizes = [](const tensor_views<float>& views) {
    std::vector<std::int64_t> out;
    for (const tensor_view<float>& view : views) out.push_back(view.size());
    return out;
  };
  using sizes_type = std::vector<std::int64_t>;
  CHECK(sizes({a, b}) == sizes_type{2, 1});
  CHECK(sizes({}) == sizes_type{});
  std::vector<numbers> several{a, b, a};
  CHECK(sizes(several) == sizes_type{2, 1, 2});
  CHECK(sizes(std::array<tensor_view<float>, 2>{a, b}) == sizes_type{2, 1});
  const tensor_views<float> views{a, b};
  CHECK(views.size() == 2);
  CHECK(views[1].data_handle() == b.elements.data());
  // A temporary range of views is fine, one of numberss would dangle.
  static_assert(std::is_constructible_v<tensor_views<float>, std::vector<tensor_view<float>>>);
  static_assert(!std::is_constructible_v<tensor_views<float>, numbers&>);
  static_assert(std::is_constructible_v<tensor_views<const float>, std::vector<numbers>&>);
  static_assert(!std::is_constructible_v<tensor_views<float>, const std::vector<numbers>&>);
  static_assert(!std::is_constructible_v<tensor_views<float>, std::vector<unseen>&>);
}
