// SPDX-License-Identifier: MIT
#include "cases.hpp"

#include "../workload.hpp"

namespace bench::device {

subfed::model model_called(const std::string& name) { return make_model(name); }

std::vector<subfed::submodel> cohort_of(const subfed::model& net, const std::string& scheme,
                                        std::int64_t clients) {
  return make_cohort(net, scheme, clients);
}

}  // namespace bench::device
