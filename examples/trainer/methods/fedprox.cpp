// SPDX-License-Identifier: MIT
/// FedProx: mu / 2 ||w - w_start||^2 is added to a client's loss. [FedProx]
#include <subfed/adapt/torch.hpp>
#include <subfed/systems/proximal.hpp>

#include "../host_copy.hpp"
#include "homogeneous.hpp"

namespace trainer::methods {
namespace {

class proximal_client : public masked_client {
 public:
  proximal_client(absent_classes rule, double scale, double mu)
      : masked_client(rule, scale), mu_(mu) {}

  void begin(const local_training& own) override { start_ = copies(own.network->tensors()); }
  at::Tensor gradient(const local_training& own, const batch& samples) override {
    const at::Tensor loss = masked_client::gradient(own, samples);
    const host_copy gradients(own.network->gradients());
    const host_copy weights(own.network->tensors());
    subfed::add_proximal<float>(own.part.parent(), mu_, weights.tensors(), start_,
                                gradients.tensors());
    gradients.put_back();
    return loss;
  }

 private:
  double mu_;
  tensor_list start_;
};

class fedprox_method : public homogeneous_method {
 public:
  using homogeneous_method::homogeneous_method;

  std::unique_ptr<client_side> client(const local_training&) const override {
    return std::make_unique<proximal_client>(settings().absent, 1, settings().proximal);
  }
};

}  // namespace

made fedprox(const options& settings, const architecture& described) {
  return std::make_unique<fedprox_method>(settings, described);
}

}  // namespace trainer::methods
