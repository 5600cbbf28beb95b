// SPDX-License-Identifier: MIT
#include <subfed/graph/derive_widths.hpp>

#include <models/pre_resnet18.hpp>
#include <proof/networks.hpp>
#include <subfed/draw.hpp>
#include <subfed/proof/description.hpp>
#include <subfed/schemes/prefix.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using subfed::derive_widths;
using subfed::known_copies;
using subfed::named_shape;
using support::message_of;

namespace {

using network_shapes = std::vector<named_shape>;

network_shapes shapes_at(const subfed::model& net, double capacity) {
  const auto sub = draw(net, subfed::prefix{}, {.capacity = capacity});
  network_shapes out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    out.push_back({net.tensors()[t].name, sub.extents(subfed::tensor_id(t))});
  }
  return out;
}
subfed::derived_model derived(const subfed::model& net) {
  const network_shapes widths[] = {shapes_at(net, 1), shapes_at(net, 0.5)};
  return derive_widths(widths);
}
/// The tensors' roles of another description.
subfed::model with_roles(subfed::model net, const subfed::model& of) {
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    net.mark(subfed::tensor_id(t), of.tensors()[t].role);
  }
  return net;
}

}  // namespace

TEST_CASE("two widths of two layers, by hand") {
  const network_shapes widths[] = {
      {{"fc1", {64, 20}}, {"b", {64}}, {"fc2", {128, 64}}, {"fc3", {10, 128}}},
      {{"fc1", {16, 20}}, {"b", {16}}, {"fc2", {32, 16}}, {"fc3", {10, 32}}}};
  const auto made = derive_widths(widths);
  subfed::model net;
  const auto width = net.group("width", 64);
  net.tensor("fc1", {width, 20});
  net.tensor("b", {width});
  net.tensor("fc2", {width.block(2), width});
  net.tensor("fc3", {10, width.block(2)});
  CHECK(made.net == net);
  REQUIRE(made.doubts.size() == 2);
  CHECK(made.doubts[0] ==
        "dimension 0 of 'fc2' is taken for 64 nodes of 2 elements in a row; they could be copies");
}

TEST_CASE("other factors are other groups; three widths tell more than two") {
  const network_shapes widths[] = {{{"a", {60, 60}}, {"b", {60}}, {"c", {60}}},
                                   {{"a", {30, 30}}, {"b", {20}}, {"c", {30}}},
                                   {{"a", {20, 20}}, {"b", {20}}, {"c", {10}}}};
  const auto made = derive_widths(widths);
  REQUIRE(made.net.groups().size() == 3);
  CHECK(made.net.groups()[1].name == "width 2");
  CHECK(made.net.tensors()[0].dimensions[0] == subfed::dimension(made.net.find_group("width")));
  CHECK(made.net.tensors()[2].dimensions[0] == subfed::dimension(made.net.find_group("width 3")));
  REQUIRE(made.doubts.size() == 2);
  CHECK(made.doubts[0] ==
        "group 'width 2' is of one dimension alone, of 'b'; it could be another group with a "
        "constant beside it");
  const auto two = derive_widths(std::span(widths).first(2));
  CHECK(two.net.groups().size() == 2);
}

TEST_CASE("descriptions that are derived from widths are proven") {
  for (const auto& of : {proof_networks::mlp(), proof_networks::residual()}) {
    INFO(of.name);
    const auto made = derived(of.net);
    const auto proof = subfed::prove_description<double>(with_roles(made.net, of.net), of.forward);
    INFO(describe(proof));
    CHECK(proof.verdict() == subfed::verdict::right);
  }
}

TEST_CASE("copies that were not told are found by the proof, and told are right") {
  const auto of = proof_networks::lstm();
  auto proof = subfed::prove_description<double>(derived(of.net).net, of.forward);
  CHECK(proof.verdict() == subfed::verdict::wrong);
  const network_shapes widths[] = {shapes_at(of.net, 1), shapes_at(of.net, 0.5)};
  const auto made = derive_widths(widths, {{"lstm.weight_ih_l0", 0, 4},
                                           {"lstm.weight_hh_l0", 0, 4},
                                           {"lstm.bias_ih_l0", 0, 4},
                                           {"lstm.bias_hh_l0", 0, 4}});
  CHECK(made.doubts.empty());
  proof = subfed::prove_description<double>(made.net, of.forward);
  CHECK(proof.verdict() == subfed::verdict::right);
}

TEST_CASE("prefixes of a derived PreResNet18 have the shapes of those described by hand") {
  const auto net = models::describe_pre_resnet18().net;
  const auto made = derived(net);
  for (const double capacity : {1.0, 0.5, 0.25, 0.125, 0.0625}) {
    CHECK(shapes_at(made.net, capacity) == shapes_at(net, capacity));
  }
}

TEST_CASE("networks that are not alike, and copies that are not there, are refused") {
  const auto refused = [](const std::vector<network_shapes>& widths,
                          const std::vector<known_copies>& copies = {}) {
    return message_of([&] { static_cast<void>(derive_widths(widths, copies)); });
  };
  CHECK(refused({{{"a", {4}}}}) ==
        "subfed: derive_widths: shapes of 1 widths are given, expected two or more");
  CHECK(refused({{{"a", {4}}}, {}}) ==
        "subfed: derive_widths: one network has 1 tensors, another 0");
  CHECK(refused({{{"a", {4}}}, {{"b", {4}}}}) ==
        "subfed: derive_widths: tensor 0 is 'a' (4,) in one network, 'b' (4,) in another");
  CHECK(refused({{{"a", {4}}}, {{"a", {4, 1}}}}) ==
        "subfed: derive_widths: tensor 0 is 'a' (4,) in one network, 'a' (4, 1) in another");
  CHECK(refused({{{"a", {4}}}, {{"a", {0}}}}) ==
        "subfed: derive_widths: dimension 0 of 'a' has 0 elements in one width, which are not 1 "
        "copies of nodes");
  CHECK(refused({{{"a", {4}}}, {{"a", {2}}}}, {{"a", 0, 4}}) ==
        "subfed: derive_widths: dimension 0 of 'a' has 2 elements in one width, which are not 4 "
        "copies of nodes");
  CHECK(refused({{{"a", {4}}}, {{"a", {2}}}}, {{"b", 0, 2}}) ==
        "subfed: derive_widths: copies are given of dimension 0 of 'b', which is not there or has "
        "one width");
}
