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

}  // namespace subfed::inline v0
