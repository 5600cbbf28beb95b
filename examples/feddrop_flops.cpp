// SPDX-License-Identifier: MIT
/// [FedDrop] Table 5: FLOPs of a training run on Fashion-MNIST as the budget expects them, and as
/// drawn channels cost.
///
///   feddrop_flops [rounds]       100 rounds, as in the paper, take 20 seconds
///
/// 60000 images, 100 clients, mini-batches of 4, 8 local epochs: 1200 steps per round. Thresholds
/// are the same for all clients, so each step is drawn once, with the constant start of UniDrop.
/// Counts by the rule of Table 6 without pooling: 11759946 per sample. Ends with 1 when a sampled
/// count is off by more than 1 %.
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "common/program.hpp"
#include "common/text.hpp"
#include "models/lenet.hpp"

namespace {

int run(std::int64_t rounds) {
  constexpr std::int64_t steps = 1200;
  const auto lenet = models::describe_lenet(models::lenet_options::fashion_mnist());
  subfed::cost_rule rule = subfed::cost_rule::feddrop_tables();
  rule.pooling = 0;
  const subfed::expected_flops cost(lenet.net, lenet.work, rule);
  const double images = 60000.0 * 8 * static_cast<double>(rounds);

  std::printf("%lld rounds, %.0f FLOPs a sample of the whole model\n\n",
              static_cast<long long>(rounds), cost.dense());
  std::printf(
      "ratio        p   expected (T)                 sampled (T)          relative error\n");
  bool near = true;
  for (const double ratio : {0.25, 0.5, 0.75}) {
    const subfed::flops_budget budget(cost, ratio);
    const subfed::keep_probabilities keep(lenet.net, budget.constant_start());
    const double expected = cost(keep) * images / 1e12;
    std::printf("%5.2f %8.5f %14.2f   ", ratio, budget.constant_start(), expected);
    double mean_error = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      double sampled = 0;
      for (std::int64_t round = 0; round < rounds; ++round) {
        std::int64_t flops = 0;
        for (std::uint64_t step = 0; step < steps; ++step) {
          const auto kept =
              subfed::draw(lenet.net, subfed::sync_dropout{keep, step},
                           {.seed = seed, .round = static_cast<std::uint64_t>(round)});
          flops += lenet.work.count(kept, rule);
        }
        sampled += static_cast<double>(flops) / steps * 60000 * 8 / 1e12;
      }
      std::printf(" %8.2f", sampled);
      mean_error += std::fabs(sampled / expected - 1) / 3;
      near = near && std::fabs(sampled / expected - 1) < 0.01;
    }
    std::printf("   %12.4f %%\n", 100 * mean_error);
  }
  return near ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  return common::run_program("feddrop_flops", [&] {
    const auto rounds = common::number<std::int64_t>(count > 1 ? words[1] : "100");
    if (count > 2 || !rounds || *rounds < 1) {
      throw common::failure("The argument is [rounds], a whole number of at least 1.");
    }
    return run(*rounds);
  });
}
