// SPDX-License-Identifier: MIT
#include "workload.hpp"

#include <models/pre_resnet18.hpp>
#include <models/transformer.hpp>
#include <models/vgg9.hpp>

#include <cmath>
#include <stdexcept>

namespace bench {

subfed::model perceptron(double parameters) {
  // in x w + w x w + w x out with in = w and out = 10
  const auto width = static_cast<std::int64_t>(std::lround(std::sqrt(parameters / 2)));
  subfed::model net;
  const auto first = net.group("hidden1", width);
  const auto second = net.group("hidden2", width);
  subfed::linear(net, "fc1", {width, first});
  subfed::linear(net, "fc2", {first, second});
  subfed::linear(net, "fc3", {second, 10});
  return net;
}

subfed::model make_model(const std::string& name) {
  if (name == "PreResNet18") return models::describe_pre_resnet18().net;
  if (name == "VGG-9") return models::describe_vgg9().net;
  if (name == "Transformer") return models::describe_transformer().net;
  if (name == "MLP-100M") return perceptron(1e8);
  return perceptron(std::stod(name));
}

std::vector<subfed::submodel> make_cohort(const subfed::model& net, const std::string& scheme,
                                          std::int64_t clients) {
  static constexpr double capacities[] = {1, 0.5, 0.25, 0.125, 0.0625};
  std::vector<subfed::submodel> out;
  for (std::int64_t c = 0; c < clients; ++c) {
    const subfed::draw_key key{7, 17, static_cast<std::uint64_t>(c), capacities[c % 5]};
    if (scheme == "rolling") {
      out.push_back(draw(net, subfed::rolling{}, key));
    } else if (scheme == "static") {
      out.push_back(draw(net, subfed::prefix{}, key));
    } else if (scheme == "random") {
      out.push_back(draw(net, subfed::random_subset{}, key));
    } else if (scheme == "ensemble") {
      out.push_back(draw(net, subfed::simple_ensemble{}, {7, 17, key.client, 0.25}));
    } else {
      throw std::invalid_argument("no scheme is called " + scheme);
    }
  }
  return out;
}

}  // namespace bench
