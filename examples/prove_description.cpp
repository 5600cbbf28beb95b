// SPDX-License-Identifier: MIT
/// Is the description that of the network? A batch norm is tied to another group of equal width: shapes
/// agree, rolling windows and prefixes of both groups are equal, and yet random sets would cut it wrongly.
#include <subfed/layers.hpp>
#include <subfed/proof.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

/// Two hidden layers of eight nodes, each with a batch norm. `norm2` is what bn2 is tied to.
subfed::model describe_network(const std::string& norm2) {
  subfed::model net;
  const auto h1 = net.group("h1", 8);
  const auto h2 = net.group("h2", 8);
  const auto classes = net.group("classes", 3, subfed::cut::never);
  const auto kept = subfed::running_statistics::kept;
  linear(net, "fc1", {.in = 4, .out = h1});
  batch_norm(net, "bn1", {.channels = h1, .statistics = kept});
  linear(net, "fc2", {.in = h1, .out = h2});
  batch_norm(net, "bn2", {.channels = net.find_group(norm2), .statistics = kept});
  linear(net, "fc3", {.in = h2, .out = classes});
  return net;
}

using views = subfed::tensor_views<const double>;

/// Layer number `first` of the model's tensors: a weight and a bias.
std::vector<double> linear_layer(const views& all, std::size_t first,
                                 const std::vector<double>& x) {
  const auto &weight = all[first], &bias = all[first + 1];
  std::vector<double> out;
  for (std::int64_t o = 0; o < weight.extent(0); ++o) {
    double sum = bias(o);
    for (std::int64_t i = 0; i < weight.extent(1); ++i) {
      sum += weight(o, i) * x[static_cast<std::size_t>(i)];
    }
    out.push_back(sum);
  }
  return out;
}
/// weight, bias, running mean, running variance; then a ReLU.
void normalise(const views& all, std::size_t first, std::vector<double>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i);
    const double y = (x[i] - all[first + 2](n)) / std::sqrt(all[first + 3](n) + 1e-5);
    x[i] = (std::max)(0.0, y * all[first](n) + all[first + 1](n));
  }
}

/// The network: tensors in, outputs for two inputs out. With LibTorch it would copy the tensors into the
/// module and return module.forward(images).
std::vector<double> forward(const views& all) {
  std::vector<double> out;
  for (const std::vector<double>& input :
       {std::vector{1.0, -2.0, 0.5, 3.0}, {0.2, 1.0, -1.0, 2.0}}) {
    std::vector<double> x = linear_layer(all, 0, input);
    normalise(all, 2, x);
    x = linear_layer(all, 6, x);
    normalise(all, 8, x);
    x = linear_layer(all, 12, x);
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

}  // namespace

int main() {
  for (const char* norm2 : {"h1", "h2"}) {
    const auto proof = subfed::prove_description<double>(describe_network(norm2), forward);
    std::printf("bn2 tied to %s\n%s\n", norm2, describe(proof).c_str());
  }
  if (std::fflush(stdout) == 0) return 0;
  std::perror("What was printed has not arrived");
  return 1;
}
