// SPDX-License-Identifier: MIT
/// FedAvg: everybody holds everything, and counts by its examples. [FedAvg]
#include "homogeneous.hpp"

namespace trainer::methods {

made fedavg(const options& settings, const architecture& described) {
  return std::make_unique<homogeneous_method>(settings, described);
}

}  // namespace trainer::methods
