// SPDX-License-Identifier: MIT
/// What the network of a client computes, for proofs of descriptions.
#pragma once

#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>
#include <vector>

#include "architecture.hpp"
#include "network.hpp"

/// Results of a client's network with these values, as subfed::prove_description reads them.
inline std::vector<double> results_of(const trainer::architecture& net,
                                      const subfed::submodel& part,
                                      const subfed::tensor_views<const double>& values,
                                      const at::Tensor& x) {
  const torch::NoGradGuard no_grad;
  const auto own = trainer::make_network(net.channels(part), net.norm);
  own->to(at::kDouble);
  const auto tensors = own->tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    tensors[t].copy_(torch::from_blob(const_cast<double*>(values[t].data_handle()),
                                      tensors[t].sizes(), at::kDouble));
  }
  const at::Tensor y = own->forward(x, {}).contiguous();
  return std::vector<double>(y.data_ptr<double>(), y.data_ptr<double>() + y.numel());
}
