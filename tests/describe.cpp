// SPDX-License-Identifier: MIT
#include <subfed/describe.hpp>

#include <subfed/layers.hpp>
#include <support/checks.hpp>

#include <string>
#include <utility>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::named_shape;
using subfed::submodel;
using support::message_of;

namespace {

model two_layers() {
  model net;
  const auto hidden = net.group("hidden", 64);
  const auto classes = net.group("classes", 10, subfed::cut::never);
  linear(net, "fc1", {.in = 20, .out = hidden.repeat(2)});
  linear(net, "fc2", {.in = subfed::concat({hidden.repeat(2), 3}).block(4), .out = classes});
  net.tensor("steps", {});
  return net;
}

std::vector<named_shape> shapes_of(const model& net) {
  std::vector<named_shape> out;
  for (const auto& t : net.tensors()) out.push_back({t.name, t.extents});
  return out;
}

}  // namespace

TEST_CASE("a model in words: groups with what they tie, tensors with what they consist of") {
  CHECK(subfed::describe(two_layers()) ==
        R"(2 groups
  hidden   64 nodes: fc1.weight, fc1.bias, fc2.weight
  classes  10 nodes, never cut: fc2.weight, fc2.bias
5 tensors, 7939 elements
  fc1.weight  (128, 20) = (2 x hidden, 20)
  fc1.bias    (128,) = (2 x hidden,)
  fc2.weight  (10, 524) = (classes, [2 x hidden x 4 | 3 x 4])
  fc2.bias    (10,) = (classes,)
  steps       () = ()
)");
  CHECK(subfed::describe(model()) == "0 groups\n0 tensors, 0 elements\n");
  model unused;
  unused.group("g", 1);
  unused.tensor("t", {3});
  CHECK(subfed::describe(unused) ==
        "1 group\n  g  1 nodes: no tensor\n1 tensor, 3 elements\n  t  (3,) = (3,)\n");
}

TEST_CASE("words and drawing say which tensors are no parameters") {
  model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  const auto variance = net.tensor("v", {g}, subfed::role::statistic);
  net.tensor("n", {}, subfed::role::counter);
  net.tensor("own", {g}, subfed::role::local);
  CHECK(subfed::describe(net) == R"(1 group
  g  3 nodes: w, v, own
4 tensors, 10 elements
  w    (3,) = (g,)
  v    (3,) = (g,), statistic
  n    () = (), counter
  own  (3,) = (g,), local
)");
  CHECK(subfed::describe(net, variance) ==
        "  v  (3,) = (g,), statistic\n  g  3 nodes: w, v, own\n");
  CHECK(subfed::describe(submodel(net, {index_set(3, {2})})) == R"(1 group
  g  1 of 3 nodes: w, v, own
4 tensors, 4 of 10 elements
  w    (1,) of (3,)
  v    (1,) of (3,), statistic
  n    () of (), counter
  own  (1,) of (3,), local
)");
  CHECK(subfed::draw_dot(net).find("t3 [shape=box, label=\"own (3,), local\"]") !=
        std::string::npos);
}

TEST_CASE("one tensor in words, with its groups") {
  const model net = two_layers();
  CHECK(subfed::describe(net, net.find_tensor("fc1.bias")) ==
        R"(  fc1.bias  (128,) = (2 x hidden,)
  hidden  64 nodes: fc1.weight, fc1.bias, fc2.weight
)");
}

TEST_CASE("a submodel in words: what is held of each group and tensor") {
  const model net = two_layers();
  const submodel part(net, {index_set(64, {5, 3}), index_set::full(10)});
  CHECK(subfed::describe(part) ==
        R"(2 groups
  hidden   2 of 64 nodes: fc1.weight, fc1.bias, fc2.weight
  classes  10 of 10 nodes, never cut: fc2.weight, fc2.bias
5 tensors, 375 of 7939 elements
  fc1.weight  (4, 20) of (128, 20)
  fc1.bias    (4,) of (128,)
  fc2.weight  (10, 28) of (10, 524)
  fc2.bias    (10,) of (10,)
  steps       () of ()
)");
}

TEST_CASE("a drawing of what the groups tie, in the DOT language") {
  model net;
  const auto a = net.group("a \"quoted\" \\", 2);
  const auto b = net.group("b", 3, subfed::cut::never);
  net.tensor("t", {a.repeat(2), subfed::concat({b.block(4), 1, a})});
  CHECK(subfed::draw_dot(net) ==
        R"dot(graph model {
  rankdir=LR;
  g0 [shape=ellipse, label="a \"quoted\" \\ 2"];
  g1 [shape=ellipse, style=dashed, label="b 3"];
  t0 [shape=box, label="t (4, 15)"];
  g0 -- t0 [label="0, repeat 2"];
  g1 -- t0 [label="1, block 4"];
  g0 -- t0 [label="1"];
}
)dot");
}

TEST_CASE("real tensors are compared with the description one to one") {
  const model net = two_layers();
  const auto right = shapes_of(net);
  CHECK_NOTHROW(subfed::check_shapes(net, right));

  auto renamed = right;
  renamed[1].name = "fc1.beta";
  CHECK(message_of([&] { subfed::check_shapes(net, renamed); }) ==
        "subfed: check_shapes: tensor 1 is 'fc1.beta', but the description has 'fc1.bias' there");
  auto swapped = right;
  std::swap(swapped[0], swapped[1]);
  CHECK(message_of([&] { subfed::check_shapes(net, swapped); }) ==
        "subfed: check_shapes: tensor 0 is 'fc1.bias', but the description has 'fc1.weight' there");
  auto shorter = right;
  shorter.pop_back();
  CHECK(
      message_of([&] { subfed::check_shapes(net, shorter); }) ==
      "subfed: check_shapes: there are 4 tensors, but the description has 5; 'steps' is the first "
      "that is missing");
  auto longer = right;
  longer.push_back({"more", {1}});
  CHECK(message_of([&] { subfed::check_shapes(net, longer); }) ==
        "subfed: check_shapes: there are 6 tensors, but the description has 5; 'more' is the first "
        "that it lacks");
}

TEST_CASE("an extent that disagrees is an error that names the tensor and those tied to it") {
  const model net = two_layers();
  auto found = shapes_of(net);
  found[2].extents = {10, 1036};
  CHECK(message_of([&] { subfed::check_shapes(net, found); }) ==
        R"(subfed: check_shapes: tensor 'fc2.weight' has shape (10, 1036), but the description says
  fc2.weight  (10, 524) = (classes, [2 x hidden x 4 | 3 x 4])
  hidden  64 nodes: fc1.weight, fc1.bias, fc2.weight
  classes  10 nodes, never cut: fc2.weight, fc2.bias
)");
}
