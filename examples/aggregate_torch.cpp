// SPDX-License-Identifier: MIT
/// The state dict of a LibTorch module, with running statistics and the integer step counter:
/// sliced for two clients, "trained", and averaged in one call for all element types.
#include <torch/torch.h>

#include <subfed/adapt/torch.hpp>
#include <subfed/subfed.hpp>

#include <cstdio>
#include <utility>
#include <vector>

namespace {

torch::nn::Sequential network(std::int64_t hidden) {
  return torch::nn::Sequential(torch::nn::Linear(4, hidden), torch::nn::BatchNorm1d(hidden),
                               torch::nn::Linear(hidden, 2));
}

/// Everything in a state dict, without gradients: parameters, then buffers.
std::vector<at::Tensor> state(const torch::nn::Sequential& module) {
  std::vector<at::Tensor> out;
  for (const auto& p : module->parameters()) out.push_back(p.detach());
  for (const auto& b : module->buffers()) out.push_back(b);
  return out;
}

}  // namespace

int main() {
  subfed::model net;  // in the order of state()
  const auto hidden = net.group("hidden", 8);
  subfed::linear(net, "0", {.in = 4, .out = hidden});
  subfed::batch_norm(net, "1", {.channels = hidden});
  subfed::linear(net, "2", {.in = hidden, .out = 2});
  net.tensor("1.running_mean", {hidden}, subfed::role::statistic);
  net.tensor("1.running_var", {hidden}, subfed::role::statistic);
  net.tensor("1.num_batches_tracked", {}, subfed::role::counter);

  const auto server = network(8);
  for (at::Tensor t : state(server)) t.zero_();

  std::vector<subfed::update<void>> updates;  // void: element types are known only at run time
  std::vector<std::vector<at::Tensor>> kept;
  for (unsigned c = 0; c < 2; ++c) {
    const auto sub =
        subfed::draw(net, subfed::prefix{}, {.client = c, .capacity = c == 0 ? 1.0 : 0.5});
    kept.push_back(state(network(sub.extent(hidden))));
    subfed::slice<void>(state(server), sub, kept.back());
    for (at::Tensor& t : kept.back()) t.add_(static_cast<std::int64_t>(1 + c));
    updates.push_back({sub, kept.back()});
  }
  const auto globals = state(server);
  const auto report =
      subfed::average_cohort<void>(net, updates, globals, {.integers = subfed::integer_rule::max});

  const auto weight = globals[0].accessor<float, 2>();
  std::printf("0.weight: first row %.1f, last row %.1f\n", static_cast<double>(weight[0][0]),
              static_cast<double>(weight[7][0]));
  std::printf("num_batches_tracked: %lld, still an integer: %s\n",
              static_cast<long long>(globals.back().item<std::int64_t>()),
              globals.back().scalar_type() == at::kLong ? "yes" : "no");
  std::printf("%lld elements averaged\n", static_cast<long long>(report.held));
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
