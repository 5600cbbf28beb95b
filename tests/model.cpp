// SPDX-License-Identifier: MIT
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::concat;
using subfed::cut;
using subfed::dimension;
using subfed::model;
using subfed::role;
using subfed::submodel;
using support::message_of;
using extents_type = std::vector<std::int64_t>;

TEST_CASE("a described tensor has the extents that its dimensions add up to") {
  model net;
  const auto g = net.group("g", 5);
  const auto h = net.group("h", 3);
  const auto t = net.tensor("t", {g, 20, g.repeat(4), h.block(6), h.repeat(2).block(7)});
  CHECK(net[t].extents == extents_type{5, 20, 20, 18, 42});
  CHECK(net[t].name == "t");
  CHECK(net[net.tensor("concatenated", {concat({g, h.block(2), 1})})].extents == extents_type{12});
  CHECK(net[net.tensor("scalar", {})].extents.empty());
  CHECK(net.size() == 5 * 20 * 20 * 18 * 42 + 12 + 1);
  CHECK(net.groups().size() == 2);
  CHECK(net.tensors().size() == 3);
  CHECK(net[g].name == "g");
  CHECK(net[g].extent == 5);
  CHECK(net[g].cut == cut::by_scheme);
  CHECK(net[net.group("pixels", 784, cut::never)].cut == cut::never);
}

TEST_CASE("extents of any description equal those of its plain list") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed ", seed);
    support::seeded random(seed);
    const oracle::network plan = support::random_network(random);
    const model net = support::model_of(plan);
    std::int64_t size = 0;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const auto expected = oracle::global_shape(plan, plan.tensors[t]);
      CHECK(net.tensors()[t].extents == expected);
      size += support::elements_of(expected);
    }
    CHECK(net.size() == size);
  }
}

TEST_CASE("groups and tensors are found by name") {
  model net;
  const auto a = net.group("a", 1);
  const auto b = net.group("b", 2);
  const auto t = net.tensor("t", {a, b});
  CHECK(net.find_group("a") == a);
  CHECK(net.find_group("b") == b);
  CHECK(net.find_tensor("t") == t);
  CHECK(message_of([&] { net.find_group("t"); }) == "subfed: model: there is no group 't'");
  CHECK(message_of([&] { net.find_tensor("a"); }) == "subfed: model: there is no tensor 'a'");
}

TEST_CASE("a copy is a value: describing one further leaves the other as it was") {
  model net;
  const auto g = net.group("g", 2);
  const model before = net;
  CHECK(before == net);
  net.tensor("t", {g});
  CHECK(before.tensors().empty());
  CHECK_FALSE(before == net);
  model again;
  const auto other = again.group("g", 2);
  CHECK(again == before);
  again.tensor("t", {other});
  CHECK(again == net);
}

TEST_CASE("models are the same only with the same names, extents, cuts and dimensions") {
  const auto described = [](const std::string& group, std::int64_t extent, cut by,
                            std::int64_t repeat) {
    model net;
    const auto g = net.group(group, extent, by);
    net.tensor("t", {g.repeat(repeat), g});
    return net;
  };
  const model net = described("g", 4, cut::by_scheme, 2);
  CHECK(net == described("g", 4, cut::by_scheme, 2));
  CHECK_FALSE(net == described("h", 4, cut::by_scheme, 2));
  CHECK_FALSE(net == described("g", 5, cut::by_scheme, 2));
  CHECK_FALSE(net == described("g", 4, cut::never, 2));
  CHECK_FALSE(net == described("g", 4, cut::by_scheme, 3));
  // 2 copies of 4 nodes and 4 nodes of 2 elements have one extent and are not the same.
  model blocks;
  const auto g = blocks.group("g", 4);
  blocks.tensor("t", {g.block(2), g});
  CHECK_FALSE(net == blocks);
}

TEST_CASE("a tensor has a role: a parameter unless it is said, and another one when it is marked") {
  model net;
  const auto g = net.group("g", 3);
  const auto weight = net.tensor("bn.weight", {g});
  const auto variance = net.tensor("bn.running_var", {g}, role::statistic);
  const auto steps = net.tensor("bn.steps", {}, role::counter);
  const std::vector<dimension> listed{g};
  const auto head = net.tensor("head", listed, role::local);
  CHECK(net[weight].role == role::parameter);
  CHECK(net[variance].role == role::statistic);
  CHECK(net[steps].role == role::counter);
  CHECK(net[head].role == role::local);
  const model before = net;
  net.mark(head, role::parameter).mark(weight, role::local);
  CHECK(net[head].role == role::parameter);
  CHECK(net[weight].role == role::local);
  CHECK(before[head].role == role::local);
  CHECK(before[weight].role == role::parameter);
  CHECK(subfed::role_text(role::parameter) == "parameter");
  CHECK(subfed::role_text(role::statistic) == "statistic");
  CHECK(subfed::role_text(role::counter) == "counter");
  CHECK(subfed::role_text(role::local) == "local");
}

TEST_CASE("tensors are marked by what is said of them: FedBN keeps its norms with the client") {
  model net;
  const auto g = net.group("g", 3);
  for (const char* name : {"bn1.weight", "fc.weight", "bn2.running_var"}) net.tensor(name, {g});
  const model before = net;
  net.mark_if([](const model::tensor_info& t) { return t.name.starts_with("bn"); }, role::local);
  CHECK(net.tensors()[0].role == role::local);
  CHECK(net.tensors()[1].role == role::parameter);
  CHECK(net.tensors()[2].role == role::local);
  CHECK(before.tensors()[0].role == role::parameter);
  CHECK_FALSE(net == before);
  const model marked = net;
  CHECK(message_of([&] {
          net.mark_if([](const model::tensor_info& t) { return t.name == "norm"; }, role::local);
        }) == "subfed: model: no tensor is chosen for the role local");
  CHECK(message_of([&] { net.mark(subfed::tensor_id(3), role::local); }) ==
        "subfed: model: tensor number 3 is not of this model, which has 3");
  CHECK(net == marked);
}

TEST_CASE("models that differ in a role are not the same") {
  const auto described = [](role is) {
    model net;
    net.tensor("t", {net.group("g", 3)}, is);
    return net;
  };
  for (const role a : {role::parameter, role::statistic, role::counter, role::local}) {
    for (const role b : {role::parameter, role::statistic, role::counter, role::local}) {
      CHECK((described(a) == described(b)) == (a == b));
    }
  }
}

TEST_CASE("extents of 0 are fine: a group or a dimension without elements") {
  model net;
  const auto g = net.group("g", 0);
  CHECK(net[net.tensor("t", {g, 3})].extents == extents_type{0, 3});
  CHECK(net[net.tensor("u", {0})].extents == extents_type{0});
  CHECK(net.size() == 0);
}

TEST_CASE("a model may have more than 2^32 elements, and up to 2^63 - 1") {
  model net;
  const auto g = net.group("g", std::int64_t{1} << 32);
  net.tensor("t", {g, 1 << 30});
  CHECK(net.size() == std::int64_t{1} << 62);
  constexpr auto most = (std::numeric_limits<std::int64_t>::max)();
  CHECK_NOTHROW(model().tensor("most", {most}));
  CHECK(message_of([&] {
          net.tensor("more", {g, g});
        }) == "subfed: model: tensor 'more' has more than 2^63 - 1 elements");
  CHECK(message_of([&] {
          net.tensor("more", {concat({most, 1})});
        }) == "subfed: model: tensor 'more' has more than 2^63 - 1 elements");
  CHECK(message_of([&] { net.tensor("more", {g.repeat(1 << 30).block(2)}); }) ==
        "subfed: model: tensor 'more' has more than 2^63 - 1 elements");
  // Tensors are added too: here 2^62 and 2^62.
  CHECK(message_of([&] { net.tensor("more", {std::int64_t{1} << 62}); }) ==
        "subfed: model: with tensor 'more' the model has more than 2^63 - 1 elements");
  CHECK_NOTHROW(net.tensor("rest", {(std::int64_t{1} << 62) - 1}));
  CHECK(net.size() == most);
  CHECK(submodel::full(net).size() == most);
  CHECK(message_of([&] { net.tensor("more", {}); }) ==
        "subfed: model: with tensor 'more' the model has more than 2^63 - 1 elements");
  CHECK(message_of([&] { g.repeat(most).repeat(2); }) ==
        "subfed: model: repeat grows beyond 2^63 - 1");
}

TEST_CASE("extents can be multiplied in any order: one of 0 hides no others") {
  model net;
  const std::int64_t huge = std::int64_t{1} << 40;
  const auto none = net.group("none", 0);
  const auto wide = net.group("wide", huge);
  const std::string refused =
      "subfed: model: tensor 'more' has more than 2^63 - 1 elements, where an extent of 0 counts "
      "as 1";
  CHECK(message_of([&] { net.tensor("more", {wide, wide, 0}); }) == refused);
  CHECK(message_of([&] { net.tensor("more", {none, wide, wide}); }) == refused);
  CHECK(message_of([&] { net.tensor("more", {none.repeat(huge), none.block(huge)}); }) == refused);
  CHECK(message_of([&] {
          net.tensor("more", {concat({none.block(huge << 22), none.repeat(huge << 22)})});
        }) == refused);
  CHECK_NOTHROW(net.tensor("some", {none, wide}));
  CHECK(net.size() == 0);
  CHECK(message_of([&] { none.repeat(huge).block(huge); }) ==
        "subfed: model: block grows beyond 2^63 - 1");
  CHECK(message_of([&] {
          concat({none.block(huge), 3}).block(huge);
        }) == "subfed: model: block grows beyond 2^63 - 1");
}

TEST_CASE("200000 tensors are described and found in seconds, not in minutes") {
  const auto start = std::chrono::steady_clock::now();
  model net;
  const auto width = net.group("width", 2);
  const int layers = 100000;
  for (int l = 0; l < layers; ++l) {
    const std::string name = "layer" + std::to_string(l);
    subfed::linear(net, name, {.in = width, .out = width});
  }
  for (int l = 0; l < layers; ++l) {
    const auto bias = net.find_tensor("layer" + std::to_string(l) + ".bias");
    if (bias.number() != static_cast<std::size_t>(2 * l + 1)) FAIL(l);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 60);  // 1 s, 10^10 comparisons of names where it is quadratic
}

TEST_CASE("what is described wrong is refused by name, and the model stays as it was") {
  model net;
  const auto g = net.group("g", 4);
  net.tensor("t", {g});
  const model before = net;
  CHECK(message_of([&] { net.group("", 1); }) == "subfed: model: a group without a name");
  CHECK(message_of([&] { net.group("g", 1); }) == "subfed: model: the group name 'g' is taken");
  CHECK(message_of([&] { net.group("h", -1); }) ==
        "subfed: model: group 'h' has the negative extent -1");
  CHECK(message_of([&] { net.tensor("", {g}); }) == "subfed: model: a tensor without a name");
  CHECK(message_of([&] { net.tensor("t", {g}); }) == "subfed: model: the tensor name 't' is taken");
  CHECK(message_of([&] {
          net.tensor("u", {1, 1, 1, 1, 1, 1, 1, 1, 1});
        }) == "subfed: model: tensor 'u' has the rank 9, which is over 8");
  CHECK_NOTHROW(model(net).tensor("u", {1, 1, 1, 1, 1, 1, 1, 1}));
  CHECK(message_of([&] { net.tensor("u", {subfed::group_id(1)}); }) ==
        "subfed: model: tensor 'u' uses group number 1, but this model has 1 groups");
  CHECK(message_of([&] { net.tensor("u", {-3}); }) == "subfed: model: a dimension of -3 elements");
  CHECK(message_of([&] { net.tensor("u", {(std::numeric_limits<std::uint64_t>::max)()}); }) ==
        "subfed: model: a dimension of 18446744073709551615 elements");
  CHECK(message_of([&] { g.repeat(0); }) == "subfed: model: repeat is 0, expected at least 1");
  CHECK(message_of([&] { g.block(-2); }) == "subfed: model: block is -2, expected at least 1");
  CHECK(message_of([&] { net[subfed::group_id(7)]; }) ==
        "subfed: model: group number 7 is not of this model, which has 1");
  CHECK(message_of([&] { net[subfed::tensor_id(1)]; }) ==
        "subfed: model: tensor number 1 is not of this model, which has 1");
  CHECK(net == before);
}
