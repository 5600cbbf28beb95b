// SPDX-License-Identifier: MIT
/// The range of the products of an update's values and its weight, and the refusal of updates whose
/// products are too far from those before.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace subfed::inline v0::detail {

/// Extends the range by the products of tensor number t of an update. Doubles are read for that;
/// the ranges of other types are known.
///
/// Throws  error when a double cannot hold their sum with the products before. The range is then
///         unchanged.
template <class E>
void include_products(product_range& range, const submodel& sub, std::size_t t,
                      const tensor_view<const E>& tensor, double weight) {
  const std::int64_t own = exponent_of(weight);
  constexpr bool far_reaching = is_far_reaching(largest_of<E>());
  std::int64_t low = own - 149;
  std::int64_t high = own + 128;
  if constexpr (far_reaching) {
    const loop_nest walk(sub[tensor_id(t)], sub.parent().tensors()[t].extents, tensor);
    exponent_range values;
    walk.for_each([&](std::int64_t, std::int64_t l, std::int64_t length) {
      values.take(tensor.data_handle() + l, walk.local_stride(), length);
    });
    low = own + (values.empty() ? 0 : (std::min)(values.low(), std::int64_t{0}));
    high = own + (values.empty() ? 0 : (std::max)(values.high() + 1, std::int64_t{0}));
  }
  product_range with = range;
  with.include(low, high);
  if (with.choose()) {
    range = with;
    return;
  }
  std::int64_t at = -1;  // of the first element that cannot be added
  if constexpr (far_reaching) {
    const loop_nest walk(sub[tensor_id(t)], sub.parent().tensors()[t].extents, tensor);
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; at < 0 && i < length; ++i) {
        exponent_range value;
        value.take(tensor.data_handle() + l + i * walk.local_stride(), 1, 1);
        with = range;
        with.include(own, own);
        if (!value.empty()) with.include(own + value.low(), own + value.high() + 1);
        if (!with.choose()) at = g + i * walk.global_stride();
      }
    });
  }
  const auto& info = sub.parent().tensors()[t];
  fail("subfed: average: " + client_text(sub) + " has a weight, " + text(weight) +
           ", whose product with the values of tensor '" + info.name + "'" +
           (at < 0 ? std::string() : ", at global element " + index_text(at, info.extents) + ",") +
           " is too far from the other products to be added to them",
       {.client = sub.origin().client, .tensor = info.name});
}

}  // namespace subfed::inline v0::detail
