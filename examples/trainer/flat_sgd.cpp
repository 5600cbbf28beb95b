// SPDX-License-Identifier: MIT
#include "flat_sgd.hpp"

#include <cstdint>
#include <vector>

namespace trainer {
namespace {

/// Each tensor begins where a cache line does.
constexpr std::int64_t line = 16;
std::int64_t room(const at::Tensor& t) { return (t.numel() + line - 1) / line * line; }

}  // namespace

flat_sgd::flat_sgd(network& of, const sgd_options& how) : how_(how) {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters = of.parameters();
  std::int64_t all = 0;
  for (const at::Tensor& p : parameters) all += room(p);
  values_ = at::zeros({all}, parameters.front().detach().options());
  gradients_ = at::zeros_like(values_);
  std::int64_t from = 0;
  for (at::Tensor& p : parameters) {
    const at::Tensor own = values_.narrow(0, from, p.numel()).view(p.sizes());
    own.copy_(p);
    p.set_data(own);
    p.mutable_grad() = gradients_.narrow(0, from, p.numel()).view(p.sizes());
    from += room(p);
  }
}

void flat_sgd::step() {
  const torch::NoGradGuard no_grad;
  at::Tensor change = gradients_;
  if (how_.weight_decay != 0) change = change.add(values_, how_.weight_decay);
  if (how_.momentum != 0) {
    if (moment_.defined()) {
      moment_.mul_(how_.momentum).add_(change, 1);
    } else {
      moment_ = change.clone();
    }
    change = moment_;
  }
  values_.add_(change, -how_.lr);
}

}  // namespace trainer
