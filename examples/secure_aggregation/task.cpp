// SPDX-License-Identifier: MIT
#include "task.hpp"

#include <numeric>
#include <utility>

namespace secure_aggregation {

namespace {

/// Numbers between -1 and 1 that look like weights.
float number(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15u + i * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 31)) * 0x94D049BB133111EBu;
  z ^= z >> 29;
  return static_cast<float>(static_cast<std::int64_t>(z >> 40) - (1 << 23)) / (1 << 23);
}

}  // namespace

task::task(std::int64_t width) {
  const auto first = net.group("hidden1", width), second = net.group("hidden2", width);
  classes = net.group("classes", 10, subfed::cut::never);
  subfed::linear(net, "fc1", {784, first});
  subfed::linear(net, "fc2", {first, second});
  subfed::linear(net, "fc3", {second, classes});
  double weights = 0;
  for (std::uint64_t c = 0; c < clients; ++c) weights += weight_of(c);
  options.average.sums = subfed::fixed_point{
      .bound = 4, .clients = static_cast<std::int64_t>(clients), .total_weight = weights};
  options.threshold = threshold;
  options.expected_dropouts = expected_dropouts;
  options.private_rows = {classes};
}

subfed::capacity task::capacity_of(std::uint64_t client) {
  if (client < 2) return subfed::capacity::ratio(1, 1);
  if (client < 10) return subfed::capacity::ratio(3, 4);
  if (client < 17) return subfed::capacity::ratio(1, 2);
  return subfed::capacity::ratio(1, 4);
}

subfed::submodel task::draw(std::uint64_t round, std::uint64_t client,
                            subfed::capacity share) const {
  return subfed::draw(net, subfed::rolling{},
                      {.seed = 7, .round = round, .client = client, .capacity = share});
}

subfed::index_set task::labels_of(std::uint64_t client) const {
  const auto first = static_cast<std::int64_t>(client * 7 % 10);
  return subfed::index_set::window(10, first, 4);
}

subfed::tensors<float> task::trained(const subfed::submodel& sub) const {
  subfed::tensors<float> out(sub);
  std::uint64_t i = 0;
  for (float& x : out.elements()) x = number(sub.origin().client + 1000 * sub.origin().round, ++i);
  return out;
}

subfed::tensors<float> task::globals() const {
  subfed::tensors<float> out(net);
  std::uint64_t i = 0;
  for (float& x : out.elements()) x = number(999, ++i);
  return out;
}

}  // namespace secure_aggregation
