// SPDX-License-Identifier: MIT
#include "networks.hpp"

#include <fmt/format.h>

#include <common/failure.hpp>
#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/pre_resnet18.hpp>
#include <models/resnet50.hpp>
#include <models/transformer.hpp>
#include <models/vgg9.hpp>
#include <utility>
#include <vector>

namespace coverage_tool {
namespace {

using common::failure;

subfed::group_id widest_of(const subfed::model& net) {
  std::size_t widest = net.groups().size();
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    if (net.groups()[g].cut == subfed::cut::never) continue;
    if (widest == net.groups().size() || net.groups()[g].extent > net.groups()[widest].extent) {
      widest = g;
    }
  }
  return subfed::group_id(widest);
}

struct entry {
  const char* name;
  subfed::model (*describe)();
};
const entry entries[] = {
    {"pre_resnet18", [] { return models::describe_pre_resnet18().net; }},
    {"resnet50", [] { return models::describe_resnet50().net; }},
    {"vgg9", [] { return models::describe_vgg9().net; }},
    {"lenet", [] { return models::describe_lenet(models::lenet_options::fashion_mnist()).net; }},
    {"char_lstm", [] { return models::describe_char_lstm().net; }},
    {"transformer", [] { return models::describe_transformer().net; }},
};

}  // namespace

network find_network(const std::string& name) {
  for (const entry& e : entries) {
    if (name != e.name) continue;
    const subfed::model net = e.describe();
    return {name, net, widest_of(net)};
  }
  throw failure(fmt::format("There is no model \"{}\"; the models are {}.", name, network_names()));
}

network perceptron(std::span<const std::int64_t> widths) {
  subfed::model net;
  std::string name;
  subfed::dimension before(32);
  for (std::size_t l = 0; l < widths.size(); ++l) {
    if (widths[l] < 1 || widths[l] > 1'000'000) {
      throw failure(fmt::format("A width is {}, but 1 to 1000000 is expected.", widths[l]));
    }
    const std::string layer = fmt::format("layer{}", l + 1);
    const auto group = net.group(layer, widths[l]);
    net.tensor(layer + ".weight", {group, before});
    net.tensor(layer + ".bias", {group});
    before = group;
    name += fmt::format("{}{}", l == 0 ? "" : ", ", widths[l]);
  }
  net.tensor("output.weight", {10, before});
  net.tensor("output.bias", {10});
  return {"a perceptron of width " + name, net, widest_of(net)};
}

std::string network_names() {
  std::string out;
  for (const entry& e : entries) out += (out.empty() ? "" : ", ") + std::string(e.name);
  return out;
}

}  // namespace coverage_tool
