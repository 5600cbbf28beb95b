// SPDX-License-Identifier: MIT
#include "local_training.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "flat_sgd.hpp"
#include "random_order.hpp"
#include "torch_runtime.hpp"

namespace trainer {
namespace {

/// True for the classes that the client lacks.
at::Tensor absent_classes_of(const client& who, std::int64_t classes, at::Device device) {
  at::Tensor absent = at::ones({classes}, at::kBool);
  for (const std::int64_t label : who.labels) absent.data_ptr<bool>()[label] = false;
  return absent.to(device);
}

}  // namespace

at::Tensor masked_logits(const at::Tensor& logits, const batch& samples, absent_classes rule) {
  if (rule == absent_classes::trained || !samples.absent.defined()) return logits;
  return logits.masked_fill(samples.absent, rule == absent_classes::zero ? 0 : -INFINITY);
}

at::Tensor masked_loss(const at::Tensor& logits, const batch& samples, absent_classes rule) {
  return at::cross_entropy_loss(masked_logits(logits, samples, rule), samples.targets);
}

at::Tensor masked_client::gradient(const local_training& own, const batch& samples) {
  const forward_pass pass{norm_mode::batch, nullptr, scale_};
  const at::Tensor loss = masked_loss(own.network->forward(samples.inputs, pass), samples, rule_);
  loss.backward();
  return loss.detach();
}

void train(local_training& own, const device_data& data, const training_plan& plan) {
  flat_sgd optimiser(*own.network, {plan.lr, plan.momentum, plan.weight_decay});
  subfed::random_stream stream(own.key.seed, own.key.round, own.who->number,
                               "order of a client's samples");
  std::vector<std::int64_t> order = own.who->samples;
  const auto size = static_cast<std::size_t>(plan.batch);

  own.side->begin(own);
  at::Tensor total;  // stays on the device: reading it would make every step wait
  const std::int64_t classes = own.network->classes();
  const bool lacks_classes = !own.who->labels.empty() && std::ssize(own.who->labels) < classes;
  std::uint64_t steps = 0;
  double distance = 0, speed = 0;
  double flops = 0, count = 0;
  batch samples;
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    shuffle(order, stream);
    for (std::size_t from = 0; from < order.size(); from += size) {
      const std::span<const std::int64_t> chosen(order.data() + from,
                                                 (std::min)(size, order.size() - from));
      samples.inputs = data.inputs(chosen);
      samples.targets = data.targets(chosen);
      samples.step = steps++;
      if (lacks_classes && !samples.absent.defined()) {
        samples.absent = absent_classes_of(*own.who, classes, samples.targets.device());
      }
      optimiser.zero_gradients();
      const at::Tensor loss = own.side->gradient(own, samples);
      optimiser.step();
      flops += static_cast<double>(own.side->flops().value_or(own.flops_of_part)) *
               static_cast<double>(chosen.size());
      count += static_cast<double>(chosen.size());
      total = total.defined() ? total + loss : loss;
      speed = plan.momentum * speed + 1;
      distance += plan.lr * speed;
    }
  }
  own.side->end(own, distance);
  own.flops = std::llround(flops / count);
  own.all_flops = std::llround(flops);
  own.loss = total.item<double>() / static_cast<double>(steps);
}

}  // namespace trainer
