// SPDX-License-Identifier: MIT
/// Federated Dropout: random channels. [Rolex, Eq. 5; Cheng, Alg. 1] The divisor of [Cheng] is
/// --average cohort, its step alpha --server-step.
#include <subfed/schemes/random_subset.hpp>

#include "list.hpp"

namespace trainer::methods {
namespace {

class federated_dropout_method : public method {
 public:
  using method::method;

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    return subfed::random_subset{.seeds = settings().seeds}(where);
  }
};

}  // namespace

made federated_dropout(const options& settings, const architecture& described) {
  return std::make_unique<federated_dropout_method>(settings, described);
}

}  // namespace trainer::methods
