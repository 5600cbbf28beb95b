// SPDX-License-Identifier: MIT
/// HeteroFL: the first channels, always. [HeteroFL; Rolex, Eq. 6] Its masked loss, scaler and static
/// batch norm are what all methods here do.
#include <subfed/schemes/prefix.hpp>

#include "list.hpp"

namespace trainer::methods {
namespace {

class heterofl_method : public method {
 public:
  using method::method;

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    return subfed::prefix::paper()(where);
  }
};

}  // namespace

made heterofl(const options& settings, const architecture& described) {
  return std::make_unique<heterofl_method>(settings, described);
}

}  // namespace trainer::methods
