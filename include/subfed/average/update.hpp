// SPDX-License-Identifier: MIT
/// What one client sends back.
#pragma once

#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

namespace subfed::inline v0 {

/// What one client sends back.
template <class T>
struct update {
  submodel sub;
  tensor_views<const T> tensors;  ///< in the order in which the model describes them
  double weight = 1;
};

namespace detail {

/// A client in an average. T: the element type of all of its tensors, or void.
template <class T>
struct member {
  const submodel* sub;
  double weight;
  const tensor_views<const T>* tensors;  ///< null: it is already in the sums
};

}  // namespace detail

}  // namespace subfed::inline v0
