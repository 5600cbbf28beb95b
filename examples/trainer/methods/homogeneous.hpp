// SPDX-License-Identifier: MIT
/// What those methods share in which every client holds all of the server's model.
#pragma once

#include <subfed/index_set.hpp>

#include "list.hpp"

namespace trainer::methods {

class homogeneous_method : public method {
 public:
  using method::method;

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    return subfed::index_set::full(where.extent);
  }
  weight_rule weights() const override { return weight_rule::examples; }
};

}  // namespace trainer::methods
