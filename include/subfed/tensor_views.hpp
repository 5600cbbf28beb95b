// SPDX-License-Identifier: MIT
/// The tensors of a model as one argument.
#pragma once

#include <subfed/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

/// The views of all tensors of a model, in the model's order.
///
/// Made from a braced list of anything viewable, or from a range of it: {w1, b1}, a
/// std::vector<at::Tensor>, a std::array of tensor_views. Holds views only.
template <class T>
class tensor_views {
 public:
  tensor_views(std::initializer_list<tensor_view<T>> views) : views_(views) {}
  template <class Range>
  requires(!viewable<Range> && !std::same_as<std::remove_cvref_t<Range>, tensor_views> &&
           requires(Range & range) {
             { *std::begin(range) } -> std::convertible_to<tensor_view<T>>;
             std::end(range);
           }) tensor_views(Range&& range) {
    for (auto&& tensor : range) views_.emplace_back(tensor);
  }

  std::size_t size() const noexcept { return views_.size(); }
  const tensor_view<T>& operator[](std::size_t i) const noexcept { return views_[i]; }
  auto begin() const noexcept { return views_.begin(); }
  auto end() const noexcept { return views_.end(); }

 private:
  std::vector<tensor_view<T>> views_;
};

}  // namespace subfed::inline v0
