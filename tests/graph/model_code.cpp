// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/model_code.hpp>

#include <subfed/model.hpp>

#include <string>

namespace {

TEST_CASE("model_code: groups are variables, tensors use them") {
  subfed::model net;
  const auto a = net.group("layer1.0.conv1", 8);
  const auto b = net.group("layer1_0.conv1", 4);
  const auto out = net.group("class", 3, subfed::cut::never);
  net.tensor("w", {a, subfed::concat({b.repeat(2), 5}), 3});
  net.tensor("v", {out, a.block(4)});
  net.tensor("r \"\?\?/", {a}, subfed::role::statistic);
  CHECK(subfed::model_code(net, "describe_net") == R"code(#include <subfed/dimension.hpp>
#include <subfed/model.hpp>

inline subfed::model describe_net() {
  using subfed::cut;
  using subfed::role;
  subfed::model net;
  const auto layer1_0_conv1 = net.group("layer1.0.conv1", 8);
  const auto layer1_0_conv1_2 = net.group("layer1_0.conv1", 4);
  const auto class_nodes = net.group("class", 3, cut::never);
  net.tensor("w", {layer1_0_conv1, subfed::concat({layer1_0_conv1_2.repeat(2), 5}), 3});
  net.tensor("v", {class_nodes, layer1_0_conv1.block(4)});
  net.tensor("r \"\077\077/", {layer1_0_conv1}, role::statistic);
  return net;
}
)code");
}

}  // namespace
