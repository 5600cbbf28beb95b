// SPDX-License-Identifier: MIT
#include "local_training.hpp"

#include <algorithm>
#include <vector>

#include "random_order.hpp"

namespace trainer {
namespace {

/// True for the classes that the client lacks.
at::Tensor absent_classes(const client& who, std::int64_t classes, at::Device device) {
  at::Tensor absent = at::ones({classes}, at::kBool);
  for (const std::int64_t label : who.labels) absent[label] = false;
  return absent.to(device);
}

}  // namespace

double train(pre_resnet& network, const device_data& data, const client& who, double capacity,
             std::uint64_t round, const training_plan& plan) {
  const forward_pass pass{norm_mode::batch, nullptr, 1 / capacity};
  torch::optim::SGD optimiser(
      network.parameters(),
      torch::optim::SGDOptions(plan.lr).momentum(plan.momentum).weight_decay(plan.weight_decay));
  subfed::random_stream stream(plan.seed, round, who.number, "order of a client's samples");
  std::vector<std::int64_t> order = who.samples;
  const auto batch = static_cast<std::size_t>(plan.batch);

  at::Tensor absent;
  at::Tensor total;  // stays on the device: reading it would make every step wait
  std::int64_t steps = 0;
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    shuffle(order, stream);
    for (std::size_t from = 0; from < order.size(); from += batch) {
      const std::span<const std::int64_t> samples(order.data() + from,
                                                  (std::min)(batch, order.size() - from));
      optimiser.zero_grad();
      at::Tensor logits = network.forward(data.images(samples), pass);
      if (!absent.defined()) absent = absent_classes(who, logits.size(1), logits.device());
      logits = logits.masked_fill(absent, 0);
      const at::Tensor loss = at::cross_entropy_loss(logits, data.labels(samples));
      loss.backward();
      optimiser.step();
      total = total.defined() ? total + loss.detach() : loss.detach();
      ++steps;
    }
  }
  return total.item<double>() / static_cast<double>(steps);
}

}  // namespace trainer
