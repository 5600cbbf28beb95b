// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/derive_model.hpp>

#include <subfed/describe.hpp>
#include <subfed/graph/check_description.hpp>
#include <subfed/graph/network_graph.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using subfed::derive_model;
using subfed::network_graph;

/// "(fc1, 20)", "(2 x fc1 x 3,)": what the tensor's dimensions consist of.
std::string form(const subfed::derived_description& derived, const std::string& tensor) {
  const auto& info = derived.net[derived.net.find_tensor(tensor)];
  return subfed::detail::dimensions_text(derived.net, info.dimensions);
}
std::int64_t nodes(const subfed::derived_description& derived, const std::string& group) {
  return derived.net[derived.net.find_group(group)].extent;
}
/// How many groups may be cut.
std::int64_t cut_groups(const subfed::derived_description& derived) {
  std::int64_t n = 0;
  for (const auto& g : derived.net.groups()) n += g.cut == subfed::cut::by_scheme ? 1 : 0;
  return n;
}
std::string told(const subfed::derived_description& derived) { return describe(derived); }
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t linear(network_graph& g, std::size_t x, const std::string& name, std::int64_t in,
                   std::int64_t out) {
  const auto w = g.parameter(name + ".weight", {out, in});
  const auto b = g.parameter(name + ".bias", {out});
  const auto turned = g.apply("Transpose", {w}, {{"perm", {1, 0}}});
  return g.apply("Add", {b, g.apply("MatMul", {x, turned})});
}
std::size_t convolution(network_graph& g, std::size_t x, const std::string& name, std::int64_t in,
                        std::int64_t out, std::int64_t kernel = 1, std::int64_t groups = 1) {
  const auto w = g.parameter(name + ".weight", {out, in / groups, kernel, kernel});
  const auto b = g.parameter(name + ".bias", {out});
  return g.apply("Conv", {x, w, b}, {{"group", {groups}}});
}
std::size_t reshape(network_graph& g, std::size_t x, std::initializer_list<std::int64_t> to) {
  return g.apply("Reshape", {x, g.integers(to)});
}
std::size_t transpose(network_graph& g, std::size_t x, std::vector<std::int64_t> order) {
  return g.apply("Transpose", {x}, {{"perm", std::move(order)}});
}

TEST_CASE("derive_model: two layers have the hidden nodes in common") {
  network_graph g;
  const auto x = g.input("x", {1, 20});
  const auto w1 = g.parameter("fc1.weight", {64, 20});
  const auto b1 = g.parameter("fc1.bias", {64});
  const auto w2 = g.parameter("fc2.weight", {10, 64});
  const auto h = g.apply("Gemm", {x, w1, b1}, {{"transB", {1}}});
  g.output(g.apply("Gemm", {g.apply("Relu", {h}), w2}, {{"transB", {1}}}));
  const auto derived = derive_model(g);
  CHECK(form(derived, "fc1.weight") == "(fc1, fc1.in)");
  CHECK(form(derived, "fc1.bias") == "(fc1,)");
  CHECK(form(derived, "fc2.weight") == "(fc2, fc1)");
  CHECK(nodes(derived, "fc1") == 64);
  CHECK(cut_groups(derived) == 1);
  CHECK(has(told(derived), "20 nodes of fc1.weight: it is of the input 'x'"));
  CHECK(has(told(derived), "10 nodes of fc2.weight: it reaches the output ''"));
}

TEST_CASE("derive_model: a flatten makes each channel a block") {
  network_graph g;
  const auto x = g.input("x", {1, 3, 6, 6});
  const auto c = convolution(g, x, "conv", 3, 4, 3);
  g.output(linear(g, g.apply("Flatten", {c}), "fc", 64, 5));
  const auto derived = derive_model(g);
  CHECK(form(derived, "conv.weight") == "(conv, conv.in, 3, 3)");
  CHECK(form(derived, "fc.weight") == "(fc, conv x 16)");
}
TEST_CASE("derive_model: a flatten of channels that are last makes copies") {
  network_graph g;
  const auto x = g.input("x", {1, 3, 6, 6});
  const auto c = transpose(g, convolution(g, x, "conv", 3, 4, 3), {0, 2, 3, 1});
  g.output(linear(g, reshape(g, c, {1, -1}), "fc", 64, 5));
  CHECK(form(derive_model(g), "fc.weight") == "(fc, 16 x conv)");
}

TEST_CASE("derive_model: an operator that is not known leaves what it touches whole") {
  network_graph g;
  const auto x = g.input("x", {1, 3});
  const auto h = linear(g, x, "a", 3, 6);
  const auto y = g.apply("Sinkhorn", {h});
  g.values[y].has_extents = true;
  g.values[y].extents = {1, 6};
  g.output(linear(g, y, "b", 6, 4));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 0);
  REQUIRE(derived.unknown.size() == 1);
  CHECK(derived.unknown[0] == "Sinkhorn: this operator is not known");
  CHECK(has(told(derived), "6 nodes of a.weight, a.bias: it meets Sinkhorn"));
  CHECK(has(told(derived), "6 nodes of b.weight: it meets Sinkhorn"));
}

TEST_CASE("derive_model: a residual addition ties, and what is added to the input is whole") {
  network_graph g;
  const auto x = g.input("x", {1, 8, 4, 4});
  const auto a = g.apply("Add", {x, convolution(g, x, "a", 8, 8)});
  const auto b = convolution(g, a, "b", 8, 6);
  const auto c = convolution(g, b, "c", 6, 6);
  const auto d = g.apply("Add", {b, c});
  g.output(convolution(g, d, "d", 6, 2));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 1);
  CHECK(form(derived, "c.weight") == "(b, b, 1, 1)");
  CHECK(form(derived, "d.weight") == "(d, b, 1, 1)");
}

TEST_CASE("derive_model: a concatenation is read in its order, and tied as such") {
  network_graph g;
  const auto x = g.input("x", {1, 3, 4, 4});
  const auto a = convolution(g, x, "a", 3, 4);
  const auto b = convolution(g, x, "b", 3, 6);
  const auto d = convolution(g, x, "d", 3, 10);
  const auto both = g.apply("Concat", {a, b}, {{"axis", {1}}});
  g.output(convolution(g, g.apply("Add", {both, d}), "out", 10, 2));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 2);
  CHECK(form(derived, "d.weight") == "([a | b], a.in, 1, 1)");
  CHECK(form(derived, "out.weight") == "(out, [a | b], 1, 1)");
}

TEST_CASE("derive_model: chunks that meet are copies of one group") {
  network_graph g;
  const auto h = linear(g, g.input("x", {1, 8}), "a", 8, 12);
  const auto first = g.apply("Split", {h}, {{"axis", {1}}}, 3);
  const auto product = g.apply("Mul", {first, first + 1});
  g.output(linear(g, g.apply("Add", {product, first + 2}), "b", 4, 2));
  const auto derived = derive_model(g);
  CHECK(form(derived, "a.weight") == "(3 x a, a.in)");
  CHECK(nodes(derived, "a") == 4);
  CHECK(form(derived, "b.weight") == "(b, a)");
}

/// qkv as one layer of 24 rows, two heads of 4.
network_graph fused_attention() {
  network_graph g;
  const auto x = g.input("x", {1, 5, 8});
  const auto e = linear(g, x, "embed", 8, 8);
  const auto qkv =
      transpose(g, reshape(g, linear(g, e, "qkv", 8, 24), {1, 5, 3, 2, 4}), {2, 0, 3, 1, 4});
  const auto part = [&](std::int64_t i) {
    const auto one = g.apply("Split", {qkv}, {{"axis", {0}}}, 3);
    return g.apply("Squeeze", {one + static_cast<std::size_t>(i), g.integers({0})});
  };
  const auto scores = g.apply("MatMul", {part(0), transpose(g, part(1), {0, 1, 3, 2})});
  const auto shares = g.apply("Softmax", {scores}, {{"axis", {-1}}});
  const auto mixed = transpose(g, g.apply("MatMul", {shares, part(2)}), {0, 2, 1, 3});
  const auto y = linear(g, reshape(g, mixed, {1, 5, 8}), "proj", 8, 8);
  g.output(linear(g, g.apply("Add", {e, y}), "head", 8, 3));
  return g;
}
TEST_CASE("derive_model: heads are cut inside, or as a whole") {
  const auto inside = derive_model(fused_attention());
  CHECK(form(inside, "qkv.weight") == "(6 x qkv, embed)");
  CHECK(form(inside, "proj.weight") == "(embed, 2 x qkv)");
  CHECK(nodes(inside, "qkv") == 4);
  CHECK(has(told(inside),
            "2 nodes of qkv.weight, qkv.bias, proj.weight: it is a factor of a product"));
  const auto whole = derive_model(fused_attention(), {.products = subfed::product_cut::outer});
  CHECK(form(whole, "qkv.bias") == "(3 x qkv x 4,)");
  CHECK(form(whole, "proj.weight") == "(embed, qkv x 4)");
  CHECK(nodes(whole, "qkv") == 2);
}

TEST_CASE("derive_model: rotary halves are the same nodes twice") {
  network_graph g;
  const auto x = g.input("x", {1, 8});
  const auto h = linear(g, x, "a", 8, 8);
  const auto half = [&](std::int64_t from, std::int64_t to) {
    return g.apply("Slice", {h, g.integers({from}), g.integers({to}), g.integers({-1})});
  };
  const auto turned = g.apply(
      "Concat", {g.apply("Neg", {half(4, 9223372036854775807)}), half(0, 4)}, {{"axis", {-1}}});
  g.output(linear(g, g.apply("Add", {h, turned}), "b", 8, 2));
  const auto derived = derive_model(g);
  CHECK(form(derived, "a.weight") == "(2 x a, a.in)");
  CHECK(nodes(derived, "a") == 4);
}

TEST_CASE("derive_model: convolutions with groups") {
  const auto with = [](std::int64_t groups, subfed::product_cut cut) {
    network_graph g;
    const auto p = convolution(g, g.input("x", {1, 3, 4, 4}), "p", 3, 8);
    const auto c = convolution(g, p, "c", 8, 8, 1, groups);
    g.output(convolution(g, c, "out", 8, 2));
    return derive_model(g, {.products = cut});
  };
  const auto inside = with(2, subfed::product_cut::largest);
  CHECK(form(inside, "p.weight") == "(2 x p, p.in, 1, 1)");
  CHECK(form(inside, "c.weight") == "(2 x c, p, 1, 1)");
  CHECK(form(inside, "out.weight") == "(out, 2 x c, 1, 1)");
  CHECK(nodes(inside, "p") == 4);
  const auto whole = with(2, subfed::product_cut::outer);
  CHECK(form(whole, "p.weight") == "(p x 4, p.in, 1, 1)");
  CHECK(form(whole, "c.weight") == "(p x 4, 4, 1, 1)");
  const auto depthwise = with(8, subfed::product_cut::largest);
  CHECK(form(depthwise, "c.weight") == "(p, 1, 1, 1)");
  CHECK(form(depthwise, "out.weight") == "(out, p, 1, 1)");
}
TEST_CASE("derive_model: one output channel is not depthwise") {
  network_graph g;
  const auto p = convolution(g, g.input("x", {1, 3, 4, 4}), "p", 3, 8);
  const auto c = convolution(g, p, "c", 8, 1);
  g.output(convolution(g, c, "out", 1, 2));
  CHECK(form(derive_model(g), "c.weight") == "(1, p, 1, 1)");
}
TEST_CASE("derive_model: a transposed convolution has its inputs first") {
  network_graph g;
  const auto p = convolution(g, g.input("x", {1, 3, 4, 4}), "p", 3, 8);
  const auto w = g.parameter("up.weight", {8, 5, 2, 2});
  const auto up = g.apply("ConvTranspose", {p, w}, {{"strides", {2, 2}}});
  g.output(convolution(g, up, "out", 5, 2));
  const auto derived = derive_model(g);
  CHECK(form(derived, "up.weight") == "(p, up, 2, 2)");
  CHECK(form(derived, "out.weight") == "(out, up, 1, 1)");
}

TEST_CASE("derive_model: a parameter is aligned from the right") {
  network_graph g;
  const auto h = linear(g, g.input("x", {2, 8, 3}), "a", 3, 8);
  const auto scaled = g.apply("Mul", {h, g.parameter("scale", {1, 1, 8})});
  g.output(linear(g, scaled, "b", 8, 2));
  const auto derived = derive_model(g);
  CHECK(form(derived, "scale") == "(1, 1, a)");
  CHECK(form(derived, "b.weight") == "(b, a)");
}

TEST_CASE("derive_model: a tied embedding is whole along its words") {
  network_graph g;
  const auto words = g.input("words", {1, 5});
  const auto e = g.parameter("embedding.weight", {11, 8});
  const auto h = linear(g, g.apply("Gather", {e, words}), "h", 8, 8);
  const auto sum = g.apply("Add", {h, g.apply("Gather", {e, words})});
  g.output(g.apply("MatMul", {sum, transpose(g, e, {1, 0})}));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 1);
  CHECK(form(derived, "h.weight") == "(embedding, embedding)");
  CHECK(form(derived, "embedding.weight") == "(embedding.2, embedding)");
  CHECK(has(told(derived), "11 nodes of embedding.weight: it is looked up by Gather"));
}

TEST_CASE("derive_model: norms of two layers are not tied, and equal values are not") {
  network_graph g;
  const auto norm = [&](std::size_t x, const std::string& name, std::int64_t n) {
    std::vector<std::size_t> in = {x};
    for (const char* part : {".weight", ".bias", ".running_mean"}) {
      in.push_back(g.parameter(name + part, {n}));
    }
    // An exporter has found that it is equal to the weight.
    in.push_back(g.apply("Identity", {in[1]}));
    g.values[in.back()].name = name + ".running_var";
    return g.apply("BatchNormalization", in);
  };
  const auto c1 = norm(convolution(g, g.input("x", {1, 3, 4, 4}), "conv1", 3, 4), "bn1", 4);
  const auto c2 = norm(convolution(g, c1, "conv2", 4, 4), "bn2", 4);
  g.output(convolution(g, c2, "out", 4, 2));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 2);
  CHECK(form(derived, "bn1.running_var") == "(conv1,)");
  CHECK(form(derived, "bn2.weight") == "(conv2,)");
  const auto& net = derived.net;
  CHECK(net[net.find_tensor("bn2.running_var")].role == subfed::role::statistic);
  CHECK(net[net.find_tensor("bn2.running_mean")].role == subfed::role::statistic);
  CHECK(net[net.find_tensor("bn2.weight")].role == subfed::role::parameter);
}

TEST_CASE("derive_model: halves of a chunk are cut alike or not at all") {
  const auto network = [](bool adds_input) {
    network_graph g;
    const auto x = g.input("x", {1, 4});
    const auto h = g.apply("Split", {linear(g, x, "a", 4, 8)}, {{"axis", {1}}}, 2);
    const auto first = adds_input ? g.apply("Add", {h, x}) : h;
    const auto one = linear(g, first, "b", 4, 2);
    g.output(g.apply("Add", {one, linear(g, h + 1, "c", 4, 2)}));
    return derive_model(g);
  };
  CHECK(form(network(false), "a.bias") == "([a | a.2],)");
  const auto whole = network(true);
  CHECK(cut_groups(whole) == 0);
  CHECK(form(whole, "a.bias") == "(8,)");
  CHECK(has(told(whole), "it is divided in equal parts, which could not be cut alike"));
}

TEST_CASE("derive_model: halves of a chunk stay alike where one factor of each is cut") {
  network_graph g;
  const auto x = g.input("x", {1, 4});
  const auto weight = g.parameter("heads.weight", {8, 6});
  const auto heads = [&](std::size_t from, std::size_t w, std::int64_t n) {
    const auto h = g.apply("Reshape", {from, g.integers({1, n, 8})});
    g.output(g.apply("ReduceSum", {g.apply("MatMul", {h, w}), g.integers({1})}));
  };
  const auto h = g.apply("Split", {linear(g, x, "a", 4, 64)}, {{"axis", {1}}}, 2);
  heads(h, weight, 4);
  heads(h + 1, g.parameter("others.weight", {8, 6}), 4);
  heads(linear(g, x, "b", 4, 128), weight, 16);
  // Of the first half the 4 heads are left, since the 16 of the third layer are cut; of the second the 8
  // nodes of a head.
  const auto derived = derive_model(g);
  CHECK(form(derived, "b.bias") == "(b x 8,)");
  CHECK(form(derived, "a.bias") == "(64,)");
  CHECK(has(told(derived), "it is divided in equal parts, which could not be cut alike"));
  CHECK(check_description(g, derived.net).is_right());
}

TEST_CASE("derive_model: layers that begin with the same zeros are not tied") {
  network_graph g;
  const auto zeros = g.apply("ConstantOfShape", {g.integers({1, 1, 4})});
  auto x = g.input("x", {5, 1, 3});
  std::int64_t in = 3;
  for (const std::string layer : {"one", "two"}) {
    const auto w = g.parameter(layer + ".w", {1, 12, in});
    const auto r = g.parameter(layer + ".r", {1, 12, 4});
    const auto b = g.parameter(layer + ".b", {1, 24});
    x = g.apply("GRU", {x, w, r, b, network_graph::no_value, zeros});
    x = g.apply("Squeeze", {x, g.integers({1})});
    in = 4;
  }
  g.output(linear(g, x, "out", 4, 2));
  const auto derived = derive_model(g);
  CHECK(form(derived, "one.r") == "(1, 3 x GRU, GRU)");
  CHECK(form(derived, "two.w") == "(1, 3 x GRU.2, GRU)");
  CHECK(form(derived, "two.b") == "(1, 6 x GRU.2)");
  CHECK(form(derived, "out.weight") == "(out, GRU.2)");
}
TEST_CASE("derive_model: channels stay whole where a pooling gives the places of the largest") {
  for (const std::size_t outputs : {std::size_t{1}, std::size_t{2}}) {
    network_graph g;
    const auto y = convolution(g, g.input("x", {1, 3, 4, 4}), "conv", 3, 6);
    const auto pooled = g.apply("MaxPool", {y}, {{"kernel_shape", {2, 2}}}, outputs);
    const auto places = g.apply("Cast", {pooled + outputs - 1}, {{"to", {1}}});
    g.output(convolution(g, places, "last", 6, 2));
    const auto derived = derive_model(g);
    CHECK(cut_groups(derived) == (outputs == 1 ? 1 : 0));
    CHECK(has(told(derived), "its nodes are numbered by MaxPool") == (outputs == 2));
  }
}
TEST_CASE(
    "derive_model: both directions and the batch are whole in all tensors of a recurrent layer") {
  network_graph g;
  const auto x = g.input("x", {5, 2, 3});
  const auto w = g.parameter("w", {2, 16, 3});
  const auto r = g.parameter("r", {2, 16, 4});
  const auto b = g.parameter("b", {2, 32});
  const auto h = g.parameter("h", {2, 2, 4});
  const auto c = g.parameter("c", {2, 2, 4});
  const auto p = g.parameter("p", {2, 12});
  const auto y = g.apply("LSTM", {x, w, r, b, network_graph::no_value, h, c, p},
                         {{"hidden_size", {4}}, {"direction", {}, 0, "bidirectional"}});
  const auto turned = transpose(g, y, {0, 2, 1, 3});
  g.output(linear(g, reshape(g, turned, {5, 2, 8}), "out", 8, 2));
  const auto derived = derive_model(g);
  CHECK(cut_groups(derived) == 1);
  CHECK(form(derived, "b") == "(2, 8 x LSTM)");
  CHECK(form(derived, "p") == "(2, 3 x LSTM)");
  CHECK(form(derived, "out.weight") == "(out, 2 x LSTM)");
}
TEST_CASE("derive_model: tensors of a recurrent layer that do not fit its directions are not cut") {
  for (const std::string which : {"b", "h", "c", "p"}) {
    CAPTURE(which);
    const auto directions = [&](const std::string& name) -> std::int64_t {
      return name == which ? 1 : 2;
    };
    network_graph g;
    const auto x = g.input("x", {5, 1, 3});
    const auto w = g.parameter("w", {2, 16, 3});
    const auto r = g.parameter("r", {2, 16, 4});
    const auto b = g.parameter("b", {directions("b"), 32});
    const auto h = g.parameter("h", {directions("h"), 1, 4});
    const auto c = g.parameter("c", {directions("c"), 1, 4});
    const auto p = g.parameter("p", {directions("p"), 12});
    g.output(g.apply("LSTM", {x, w, r, b, network_graph::no_value, h, c, p}));
    CHECK(cut_groups(derive_model(g)) == 0);
  }
}

}  // namespace

TEST_CASE("derive_model: sequences of lengths of their own are told apart") {
  // Four learned sequences of 3 steps, the batch of a recurrent layer, whose last states are added up.
  for (const std::vector<double>& lengths : {std::vector<double>{3, 1, 2, 3}, {2, 2, 2, 2}}) {
    network_graph g;
    const auto x = g.parameter("x", {3, 4, 5});
    const auto w = g.parameter("w", {1, 7, 5}), r = g.parameter("r", {1, 7, 7});
    const auto own = g.integers({0, 0, 0, 0});
    g.values[own].elements = lengths;
    g.values[own].is_uniform = lengths[1] == 2;
    const auto y = g.apply("RNN", {x, w, r, network_graph::no_value, own}, {}, 2);
    g.output(g.apply("ReduceSum", {y + 1, g.integers({1})}));
    const auto derived = derive_model(g);
    CHECK(cut_groups(derived) == (lengths[1] == 2 ? 2 : 1));
    CHECK(has(told(derived), "4 nodes of x: it meets constants that differ from node to node") ==
          (lengths[1] != 2));
  }
}

TEST_CASE("derive_model: whole parts that another layer divides again end") {
  network_graph g;
  const auto grouped = [&](const char* op, std::size_t x, const std::string& name,
                           std::vector<std::int64_t> extents, std::int64_t groups) {
    return g.apply(op, {x, g.parameter(name + ".weight", std::move(extents))},
                   {{"group", {groups}}});
  };
  const auto x = g.input("x", {1, 1, 2, 2});
  const auto c = grouped("Conv", x, "a", {4, 1, 1, 1}, 1);
  const auto twice = g.apply("Concat", {c, c}, {{"axis", {1}}});
  const auto d = grouped("ConvTranspose", c, "b", {4, 2, 1, 1}, 2);
  const auto e = grouped("ConvTranspose", d, "c", {4, 2, 1, 1}, 4);
  grouped("Conv", twice, "d", {6, 4, 1, 1}, 2);
  g.output(grouped("Conv", g.apply("Add", {e, twice}), "e", {3, 8, 1, 1}, 1));
  const auto derived = derive_model(g);
  CHECK(subfed::check_description(g, derived.net).is_right());
  CHECK(form(derived, "c.weight") == "(4, a, 1, 1)");
  CHECK(form(derived, "d.weight") == "(2 x d, 2 x a, 1, 1)");
  CHECK(form(derived, "e.weight") == "(e, 4 x a, 1, 1)");
}

TEST_CASE("derive_model: an operator that lacks any of its inputs keeps what it reads whole") {
  for (const auto& each : subfed::detail::operator_rules) {
    const std::string op(each.op);
    CAPTURE(op);
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{4}, {4, 4}, {4, 4, 4}, {4, 4, 4, 4}}) {
      for (std::size_t count = 1; count <= 5; ++count) {
        for (std::size_t missing = 0; missing < count; ++missing) {
          network_graph g;
          std::vector<std::size_t> inputs{g.input("x", shape)};
          for (std::size_t i = 1; i < count; ++i) {
            inputs.push_back(g.parameter("w" + std::to_string(i), shape));
          }
          inputs[missing] = network_graph::no_value;
          g.outputs = {g.apply(op, inputs, {{"axis", {1}}, {"kernel_shape", {1, 1}}})};
          derive_model(g);  // sanitizers see what is read
        }
      }
    }
  }
  const auto joined_with_nothing = [](const std::string& op) {
    network_graph g;
    const auto x = g.input("x", {4, 4, 4});
    g.outputs = {g.apply(op, {linear(g, x, "fc", 4, 4), network_graph::no_value}, {{"axis", {1}}})};
    return told(derive_model(g));
  };
  CHECK(has(joined_with_nothing("Concat"), "it lacks an input"));
  CHECK(has(joined_with_nothing("MatMul"), "it has not two inputs"));
  CHECK(has(joined_with_nothing("Gemm"), "it has not two inputs"));
  CHECK(has(joined_with_nothing("Gather"), "it has not two inputs"));
  CHECK(has(joined_with_nothing("Conv"), "it has no weight"));
}
