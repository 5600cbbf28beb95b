// SPDX-License-Identifier: MIT
#include "evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <subfed/adapt/torch.hpp>
#include <subfed/systems/ensemble.hpp>

namespace trainer {
namespace {

constexpr std::size_t batch_size = 250;
// Of each client. The moments of a few thousand images differ from those of all by less than they
// do from round to round.
constexpr std::size_t images_for_moments = 25;

std::size_t batches_of(std::span<const std::int64_t> samples) {
  return (samples.size() + batch_size - 1) / batch_size;
}
std::span<const std::int64_t> batch_at(std::span<const std::int64_t> samples, std::size_t b) {
  const std::size_t from = b * batch_size;
  return samples.subspan(from, (std::min)(batch_size, samples.size() - from));
}

/// Images of every client, spread evenly over its own, one client after the other again and again: so
/// each batch holds every label.
std::vector<std::int64_t> samples_for_moments(std::span<const client> clients) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < images_for_moments; ++i) {
    for (const client& c : clients) {
      if (c.samples.size() <= images_for_moments) {
        if (i < c.samples.size()) out.push_back(c.samples[i]);
      } else {
        out.push_back(c.samples[i * c.samples.size() / images_for_moments]);
      }
    }
  }
  return out;
}

/// The mean over batches of each batch's moments, as PyTorch's batch norm has it with momentum none.
network_moments measure_moments(const network& network, double scale, const device_data& data,
                                std::span<const std::int64_t> samples, pool& workers) {
  if (!network.has_batch_norm()) return {};
  std::vector<network_moments> seen(batches_of(samples));
  workers.run(seen.size(), [&](std::size_t b) {
    const torch::NoGradGuard no_grad;
    network.forward(data.inputs(batch_at(samples, b)), {norm_mode::measure, &seen[b], scale});
  });
  network_moments mean = seen.front();
  for (std::size_t layer = 0; layer < mean.size(); ++layer) {
    for (std::size_t b = 1; b < seen.size(); ++b) {
      mean[layer].mean += seen[b][layer].mean;
      mean[layer].variance += seen[b][layer].variance;
    }
    mean[layer].mean /= static_cast<double>(seen.size());
    mean[layer].variance /= static_cast<double>(seen.size());
  }
  return mean;
}

/// Logits of all samples, on the CPU, (N, classes).
at::Tensor all_logits(const network& network, double scale, const device_data& data,
                      std::span<const std::int64_t> samples, network_moments& moments,
                      pool& workers) {
  std::vector<at::Tensor> parts(batches_of(samples));
  workers.run(parts.size(), [&](std::size_t b) {
    const torch::NoGradGuard no_grad;
    const forward_pass pass{norm_mode::given, &moments, scale};
    parts[b] = network.forward(data.inputs(batch_at(samples, b)), pass).to(at::kCPU);
  });
  return at::cat(parts);
}

double share_right(const at::Tensor& logits, const at::Tensor& targets) {
  return logits.argmax(1).eq(targets).to(at::kDouble).mean().item<double>();
}

/// The class with the largest logit, where those that are not among `labels`, which ascend, are minus
/// infinity: the first of equal ones, and NaN the largest, as argmax() has it.
std::int64_t best_class(const float* logits, std::span<const std::int64_t> labels) {
  float best = -std::numeric_limits<float>::infinity();
  std::int64_t at = 0;
  for (const std::int64_t label : labels) {
    const float value = logits[label];
    if (!(value > best || (std::isnan(value) && !std::isnan(best)))) continue;
    best = value;
    at = label;
  }
  return at;
}

}  // namespace

answers answer(std::span<const std::shared_ptr<network>> networks, double scale,
               const device_data& train, const device_data& test, std::span<const client> clients,
               pool& workers, const network_moments& given) {
  const std::vector<std::int64_t> train_samples = samples_for_moments(clients);
  std::vector<std::int64_t> test_samples(static_cast<std::size_t>(test.count()));
  std::iota(test_samples.begin(), test_samples.end(), 0);

  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs;
  for (const auto& network : networks) {
    network_moments moments =
        given.empty() ? measure_moments(*network, scale, train, train_samples, workers) : given;
    outputs.push_back(all_logits(*network, scale, test, test_samples, moments, workers));
  }
  at::Tensor logits = outputs.front();
  if (outputs.size() > 1) {
    logits = at::empty_like(outputs.front());
    subfed::average_outputs<float>(outputs, logits);
  }
  return {logits, test.targets(test_samples).to(at::kCPU), test.targets_each()};
}

std::vector<double> local_accuracies(const answers& given, std::span<const client> clients) {
  // A loop over memory: operators on rows of ten classes take ten times as long.
  const at::Tensor logits = given.logits.contiguous(), all_targets = given.targets.contiguous();
  const std::int64_t classes = logits.size(1);
  const std::span targets(all_targets.data_ptr<std::int64_t>(),
                          static_cast<std::size_t>(all_targets.numel()));
  at::Tensor best_of_all;  // where clients see all classes
  std::vector<double> out;
  for (const client& c : clients) {
    const std::span<const std::int64_t> labels(c.labels);
    if (labels.empty() && !best_of_all.defined()) best_of_all = logits.argmax(1);
    std::int64_t right = 0, rows = 0;
    const auto count = [&](std::int64_t row) {
      const std::int64_t best = labels.empty()
                                    ? best_of_all.data_ptr<std::int64_t>()[row]
                                    : best_class(logits.data_ptr<float>() + row * classes, labels);
      right += best == targets[static_cast<std::size_t>(row)];
      ++rows;
    };
    for (const std::int64_t sample : c.tests) {
      for (std::int64_t i = 0; i < given.each; ++i) count(sample * given.each + i);
    }
    if (c.tests.empty() && !c.labels.empty()) {
      for (std::int64_t row = 0; row < std::ssize(targets); ++row) {
        const std::int64_t target = targets[static_cast<std::size_t>(row)];
        if (std::binary_search(labels.begin(), labels.end(), target)) count(row);
      }
    }
    out.push_back(rows == 0 ? std::numeric_limits<double>::quiet_NaN()
                            : static_cast<double>(right) / static_cast<double>(rows));
  }
  return out;
}

evaluation judge(const answers& given, std::span<const double> local) {
  double sum = 0;
  std::int64_t counted = 0;
  for (const double accuracy : local) {
    if (std::isnan(accuracy)) continue;
    sum += accuracy;
    ++counted;
  }
  return {share_right(given.logits, given.targets),
          at::cross_entropy_loss(given.logits, given.targets).item<double>(),
          counted == 0 ? 0 : sum / static_cast<double>(counted)};
}

}  // namespace trainer
