// SPDX-License-Identifier: MIT
/// A convolution and the linear layer after its flatten as xtensor arrays: one group of channels
/// cuts both, and the clients' arrays are averaged back in one pass.
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xtensor.hpp>

#include <subfed/adapt/xtensor.hpp>
#include <subfed/subfed.hpp>

#include <cstdio>
#include <vector>

int main() {
  subfed::model net;
  const auto channels = net.group("channels", 4);
  subfed::conv2d(net, "conv",
                 {.in = 1,
                  .out = channels,
                  .kernel_height = 3,
                  .kernel_width = 3,
                  .bias = subfed::bias::none});
  subfed::linear(net, "fc", {.in = channels.block(2 * 2), .out = 5, .bias = subfed::bias::none});

  xt::xtensor<float, 4> conv = xt::zeros<float>({4, 1, 3, 3});
  xt::xarray<float> fc = xt::zeros<float>({5, 16});

  struct client {
    xt::xtensor<float, 4> conv;
    xt::xarray<float> fc;
  };
  std::vector<client> clients(2);
  std::vector<subfed::update<float>> updates;
  for (unsigned c = 0; c < 2; ++c) {
    const auto sub = subfed::draw(net, subfed::random_subset{},
                                  {.seed = 3, .round = 0, .client = c, .capacity = 0.5});
    const auto kept = static_cast<std::size_t>(sub.extent(channels));
    clients[c].conv = xt::ones<float>({kept, std::size_t{1}, std::size_t{3}, std::size_t{3}});
    clients[c].fc = xt::ones<float>({std::size_t{5}, 4 * kept}) * (1 + 2 * c);
    updates.push_back({sub, {clients[c].conv, clients[c].fc}});
  }
  const auto report = subfed::average_cohort<float>(net, updates, {conv, fc});

  std::printf("%lld of %lld parameters averaged\n", static_cast<long long>(report.held),
              static_cast<long long>(net.size()));
  for (std::size_t c = 0; c < 4; ++c) {
    std::printf("channel %zu: kernel %.0f, column of the linear layer %.0f\n", c,
                static_cast<double>(conv(c, 0, 0, 0)), static_cast<double>(fc(0, 4 * c)));
  }
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
