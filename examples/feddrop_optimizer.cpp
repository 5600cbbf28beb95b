// SPDX-License-Identifier: MIT
/// How long FedDrop's optimiser of keep probabilities takes, on similarities of random updates:
///
///   feddrop_optimizer [clients] [iterations]     100 and 100
///
/// The network has 1500 channels in five layers. Ends with 1 when the result does not meet the
/// budget, or is worse than the constant start.
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "common/text.hpp"

namespace {

int run(std::size_t clients, std::int64_t iterations) {
  subfed::model net;
  std::vector<subfed::weight_and_bias> layers;
  subfed::dimension in = 3;
  for (const std::int64_t width : {100, 200, 300, 400, 500}) {
    const auto out = net.group("group " + std::to_string(width), width);
    layers.push_back(subfed::conv2d(net, "conv " + std::to_string(width), {in, out, 3, 3}));
    in = out;
  }
  subfed::workload work(net);
  for (const auto& layer : layers) work.convolution(layer, 64);

  // Of each channel, five directions in which clients moved, and a part that they have in common.
  const subfed::flops_budget budget(subfed::expected_flops(net, work), 0.5);
  const std::vector<subfed::keep_probabilities> start(
      clients, subfed::keep_probabilities(net, budget.constant_start()));
  subfed::trajectory_similarity similarity(start[0].values().size(), clients);
  subfed::random_stream stream(1, 0, 0, "updates");
  std::vector<double> update(clients);
  for (std::size_t n = 0; n < similarity.nodes(); ++n) {
    for (int direction = 0; direction < 5; ++direction) {
      const double common = 0.3 * stream.next_unit();
      for (double& x : update) {
        x = (2 * stream.next_unit() - 1 + common) / static_cast<double>(clients);
      }
      for (std::size_t i = 0; i < clients; ++i) {
        for (std::size_t j = 0; j <= i; ++j) similarity(n, i, j) += update[i] * update[j];
      }
    }
  }

  std::vector<subfed::keep_probabilities> keep = start;
  const auto begin = std::chrono::steady_clock::now();
  const auto report = subfed::optimize_keep(similarity, budget, keep,
                                            {.iterations = iterations, .tolerance = 1e-12});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double before = subfed::trajectory_objective(similarity, start);
  std::printf("%zu clients, %zu channels, %lld iterations: %.3f s\n", clients, similarity.nodes(),
              static_cast<long long>(report.iterations), took.count());
  std::printf("objective %.6g at the constant start, %.6g now, at least %.6g without a budget\n",
              before, report.objective, similarity.total());
  std::printf("g = %.2e\n", report.slack);
  return report.slack > 0 && report.objective < before ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  return common::run_program("feddrop_optimizer", [&] {
    const auto clients = common::number<std::size_t>(count > 1 ? words[1] : "100");
    const auto iterations = common::number<std::int64_t>(count > 2 ? words[2] : "100");
    if (count > 3 || !clients || !iterations || *clients < 1 || *iterations < 1) {
      throw common::failure(
          "The arguments are [clients] [iterations], whole numbers of at least 1.");
    }
    return run(*clients, *iterations);
  });
}
