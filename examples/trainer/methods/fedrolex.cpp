// SPDX-License-Identifier: MIT
/// FedRolex: a rolling window. [Rolex, Eq. 4; A.4]
#include <subfed/schemes/rolling.hpp>

#include "list.hpp"

namespace trainer::methods {
namespace {

class fedrolex_method : public method {
 public:
  using method::method;

  subfed::index_set nodes(const subfed::site& where) const override {
    subfed::rolling window = subfed::rolling::paper();
    window.step = settings().window_step;
    window.overlap = settings().overlap;
    return window(where);
  }
};

}  // namespace

made fedrolex(const options& settings, const architecture& described) {
  return std::make_unique<fedrolex_method>(settings, described);
}

}  // namespace trainer::methods
