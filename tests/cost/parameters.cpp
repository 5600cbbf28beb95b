// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/cost/parameters.hpp>

#include <models/resnet50.hpp>
#include <subfed/layers.hpp>

#include <cstddef>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::submodel;

TEST_CASE("ResNet-50 has 25557032 parameters, which can be told from its buffers") {
  const auto resnet = models::describe_resnet50();
  std::vector<subfed::tensor_id> learned;
  for (std::size_t t = 0; t < resnet.net.tensors().size(); ++t) {
    const std::string& name = resnet.net.tensors()[t].name;
    if (name.ends_with("weight") || name.ends_with("bias")) learned.emplace_back(t);
  }
  const submodel whole = submodel::full(resnet.net);
  CHECK(subfed::parameters(whole, learned) == 25557032);
  CHECK(whole.size() == 25557032 + 2 * 26560 + 53);
}

TEST_CASE("parameters are counted by role") {
  model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g, 3});
  batch_norm(net, "bn", {.channels = g, .statistics = subfed::running_statistics::kept});
  net.tensor("head", {g, 5}, subfed::role::local);
  net.tensor("steps", {}, subfed::role::counter);
  const submodel part(net, {index_set(4, {1, 3})});
  CHECK(part.size() == 6 + 8 + 10 + 1);
  CHECK(subfed::parameters(part) == 6 + 4);
  CHECK(subfed::parameters(part, subfed::role::statistic) == 4);
  CHECK(subfed::parameters(part, subfed::role::counter) == 1);
  CHECK(subfed::parameters(part, subfed::role::local) == 10);
}
