// SPDX-License-Identifier: MIT
/// Operators one by one: x goes through a first matrix of 12 nodes, the operator, and what reads it.
#include <doctest/doctest.h>
#include <subfed/graph/detail/rules.hpp>

#include <subfed/describe.hpp>
#include <subfed/graph/derive_model.hpp>
#include <subfed/graph/network_graph.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace {

using subfed::network_graph;
using attributes = std::vector<subfed::graph_attribute>;

/// A network around an operator.
struct around {
  network_graph g{};
  std::size_t x = 0;

  /// x (2, positions.., nodes): the nodes are those of "a".
  explicit around(std::vector<std::int64_t> positions = {}, std::int64_t nodes = 12) {
    std::vector<std::int64_t> shape = {2};
    shape.insert(shape.end(), positions.begin(), positions.end());
    shape.push_back(3);
    x = g.apply("MatMul", {g.input("x", shape), g.parameter("a", {3, nodes})});
  }
  /// Moves the nodes after the batch, as channels.
  around& channels() {
    const std::size_t rank = 4;
    std::vector<std::int64_t> order = {0, 3, 1, 2};
    order.resize(rank);
    x = g.apply("Transpose", {x}, {{"perm", order}});
    return *this;
  }
  std::size_t constant(std::initializer_list<std::int64_t> elements) {
    return g.integers(elements);
  }
  around& then(std::string op, std::vector<std::size_t> more = {}, attributes with = {}) {
    more.insert(more.begin(), x);
    x = g.apply(std::move(op), std::move(more), std::move(with));
    return *this;
  }
  /// What "a" and the matrix "b" that reads n elements of the last axis are made of.
  std::string read(std::int64_t n) {
    g.output(g.apply("MatMul", {x, g.parameter("b", {n, 2})}));
    const auto derived = subfed::derive_model(g);
    last = describe(derived);
    return second(derived, "a") + " -> " + first(derived, "b");
  }
  static const subfed::model::tensor_info& tensor(const subfed::derived_description& d,
                                                  const std::string& name) {
    return d.net[d.net.find_tensor(name)];
  }
  static std::string text(const subfed::derived_description& d, const subfed::dimension& of) {
    std::string out;
    for (const auto& p : of.parts()) {
      if (!out.empty()) out += " | ";
      const bool binds = p.group != subfed::dimension::no_group &&
                         d.net.groups()[p.group].cut == subfed::cut::by_scheme;
      const std::int64_t nodes =
          p.group == subfed::dimension::no_group ? p.whole : d.net.groups()[p.group].extent;
      if (p.repeat != 1) out += std::to_string(p.repeat) + " x ";
      out += (binds ? d.net.groups()[p.group].name + ":" : "") + std::to_string(nodes);
      if (p.block != 1) out += " x " + std::to_string(p.block);
    }
    return out;
  }
  static std::string first(const subfed::derived_description& d, const std::string& name) {
    return text(d, tensor(d, name).dimensions[0]);
  }
  static std::string second(const subfed::derived_description& d, const std::string& name) {
    return text(d, tensor(d, name).dimensions[1]);
  }
  bool says(const std::string& part) const { return last.find(part) != std::string::npos; }

  std::string last{};
};

TEST_CASE("rules: operators that keep the nodes") {
  for (const char* op : {"Relu", "Sigmoid", "Gelu", "Dropout", "Clip", "Cast", "Identity", "Erf"}) {
    CHECK(around().then(op).read(12) == "a:12 -> a:12");
  }
  around two;
  two.x = two.g.apply("Mul", {two.x, two.g.number(0.5)});
  CHECK(two.read(12) == "a:12 -> a:12");
  around slope;
  CHECK(slope.then("PRelu", {slope.g.parameter("slope", {12})}).read(12) == "a:12 -> a:12");
}
TEST_CASE("rules: operators that number the nodes leave them whole") {
  for (const auto& [op, words] : std::vector<std::pair<std::string, std::string>>{
           {"Softmax", "it is the axis of the Softmax"}, {"LogSoftmax", "it is the axis of the"}}) {
    around a;
    CHECK(a.then(op, {}, {{"axis", {-1}}}).read(12) == "12 -> 12");
    CHECK(a.says(words));
  }
  around sum;
  CHECK(sum.then("CumSum", {sum.constant({1})}).read(12) == "12 -> 12");
  around most;
  CHECK(most.then("TopK", {most.constant({5})}, {{"axis", {1}}}).read(5) == "12 -> 5");
  around place;
  place.then("ArgMax", {}, {{"axis", {1}}}).then("Cast");
  CHECK(place.read(1) == "12 -> 1");
  CHECK(place.says("its nodes are numbered by the ArgMax"));
  around table;
  table.x =
      table.g.apply("Add", {table.x, table.g.integers({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  CHECK(table.read(12) == "12 -> 12");
  CHECK(table.says("constants that differ from node to node"));
  around ones;
  ones.x = ones.g.apply("Add", {ones.x, ones.g.integers({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})});
  CHECK(ones.read(12) == "a:12 -> a:12");
}

TEST_CASE("rules: sums and means") {
  around sum({5});
  CHECK(sum.then("ReduceSum", {sum.constant({1})}, {{"keepdims", {0}}}).read(12) == "a:12 -> a:12");
  CHECK_FALSE(sum.says("computed over"));
  around norm({5});
  const auto mean = norm.g.apply("ReduceMean", {norm.x}, {{"axes", {-1}}});
  CHECK(norm.then("Sub", {mean}).read(12) == "a:12 -> a:12");
  CHECK(norm.says("computed over the nodes that a client holds"));
  CHECK(norm.says("  a: ReduceMean"));
}

TEST_CASE("rules: reshapes split and join") {
  around heads;
  heads.then("Reshape", {heads.constant({2, 3, 4})});
  heads.then("Reshape", {heads.constant({0, -1})});
  CHECK(heads.read(12) == "3 x a:4 -> 3 x a:4");
  around odd;
  odd.then("Reshape", {odd.constant({2, 3, 4})}).then("Reshape", {odd.constant({2, 4, 3})});
  odd.then("Reshape", {odd.constant({2, 12})});
  CHECK(odd.read(12) == "12 -> 12");
  CHECK(odd.says("it is seen as"));
  around turned;
  turned.then("Reshape", {turned.constant({2, 2, 6})}).then("Transpose", {}, {{"perm", {0, 2, 1}}});
  CHECK(turned.then("Flatten").read(12) == "2 x a:6 -> a:6 x 2");
}
TEST_CASE("rules: squeeze and unsqueeze, axes as attributes and as inputs") {
  around attribute;
  attribute.then("Unsqueeze", {}, {{"axes", {1}}}).then("Squeeze", {}, {{"axes", {1}}});
  CHECK(attribute.read(12) == "a:12 -> a:12");
  around input;
  input.then("Unsqueeze", {input.constant({-1})}).then("Squeeze", {input.constant({2})});
  CHECK(input.read(12) == "a:12 -> a:12");
}
TEST_CASE("rules: splits and slices, bounds computed from shapes") {
  around split;
  split.x = split.g.apply("Split", {split.x, split.constant({4, 8})}, {{"axis", {1}}}, 2);
  CHECK(split.read(4) == "a:4 | a.2:8 -> a:4");
  // chunk(2) as it is exported: half of the extent, rounded up.
  around half;
  const auto shape = half.g.apply("Shape", {half.x});
  const auto extent = half.g.apply("Gather", {shape, half.constant({1})});
  const auto sum = half.g.apply("Add", {extent, half.constant({1})});
  const auto middle = half.g.apply("Div", {sum, half.constant({2})});
  const auto end = half.g.apply("Mul", {middle, half.constant({2})});
  half.then("Slice", {middle, end, half.constant({1})});
  CHECK(half.read(6) == "a:6 | a.2:6 -> a.2:6");
  around second;
  second.then("Slice", {second.constant({1}), second.constant({100}), second.constant({1}),
                        second.constant({2})});
  CHECK(second.read(6) == "a:6 x 2 -> a:6");
  around back;
  back.then("Slice",
            {back.constant({-1}), back.constant({-100}), back.constant({1}), back.constant({-1})});
  CHECK(back.read(12) == "12 -> 12");
}
TEST_CASE("rules: concatenation and padding of nodes") {
  around twice;
  CHECK(twice.then("Concat", {twice.x}, {{"axis", {1}}}).read(24) == "a:12 -> 2 x a:12");
  around padded;
  CHECK(padded.then("Pad", {padded.constant({0, 2, 0, 3})}).read(17) == "a:12 -> 2 | a:12 | 3");
  // Constants beside the nodes stay as they are, like those of a padding: the network writes down how many.
  around beside;
  const auto zeros = beside.g.apply("ConstantOfShape", {beside.constant({2, 4})});
  CHECK(beside.then("Concat", {zeros}, {{"axis", {1}}}).read(16) == "a:12 -> a:12 | 4");
  around before;
  const auto fours = before.g.apply("ConstantOfShape", {before.constant({2, 4})});
  before.x = before.g.apply("Concat", {fours, before.x}, {{"axis", {1}}});
  CHECK(before.read(16) == "a:12 -> 4 | a:12");
  around mirrored;
  mirrored.then("Pad", {mirrored.constant({0, 2, 0, 3})}, {{"mode", {}, 0, "reflect"}});
  CHECK(mirrored.read(17) == "12 -> 17");
}
TEST_CASE("rules: copies") {
  around expanded;
  expanded.then("Unsqueeze", {expanded.constant({1})});
  expanded.then("Expand", {expanded.constant({2, 5, 12})});
  CHECK(expanded.then("Reshape", {expanded.constant({2, 60})}).read(60) == "a:12 -> 5 x a:12");
  around many;
  many.then("Unsqueeze", {many.constant({1})}).then("Expand", {many.constant({2, 50, 12})});
  CHECK(many.then("Reshape", {many.constant({2, 600})}).read(600) == "a:12 -> 50 x a:12");
  around tiled;
  CHECK(tiled.then("Tile", {tiled.constant({1, 3})}).read(36) == "a:12 -> 3 x a:12");
}
TEST_CASE("rules: gathers") {
  around fixed({5});
  fixed.x = fixed.g.apply("Gather", {fixed.x, fixed.constant({2})}, {{"axis", {1}}});
  CHECK(fixed.then("Squeeze", {fixed.constant({1})}).read(12) == "a:12 -> a:12");
  around nodes;
  nodes.x = nodes.g.apply("Gather", {nodes.x, nodes.constant({2, 3})}, {{"axis", {1}}});
  CHECK(nodes.read(2) == "12 -> 2");
  CHECK(nodes.says("fixed nodes are taken of it by Gather"));
}

TEST_CASE("rules: channels and positions") {
  around pool({6, 6});
  pool.channels().then("MaxPool", {}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
  CHECK(pool.then("Flatten").read(108) == "a:12 -> a:12 x 9");
  around rounded({6, 6});
  rounded.channels().then("AveragePool", {},
                          {{"kernel_shape", {4, 4}}, {"strides", {3, 3}}, {"ceil_mode", {1}}});
  CHECK(rounded.then("Flatten").read(48) == "a:12 -> a:12 x 4");
  around global({6, 6});
  CHECK(global.channels().then("GlobalAveragePool").then("Flatten").read(12) == "a:12 -> a:12");
  around larger({3, 3});
  larger.channels().then("Resize", {network_graph::no_value, larger.constant({1, 1, 2, 2})});
  CHECK(larger.then("Flatten").read(432) == "a:12 -> a:12 x 36");
  around shuffled({3, 3});
  shuffled.channels().then("DepthToSpace", {}, {{"blocksize", {2}}, {"mode", {}, 0, "CRD"}});
  CHECK(shuffled.then("Flatten").read(108) == "a:3 x 4 -> a:3 x 36");
  around columns({3, 3});
  columns.channels().then("DepthToSpace", {}, {{"blocksize", {2}}});
  CHECK(columns.then("Flatten").read(108) == "4 x a:3 -> a:3 x 36");
  around deeper({4, 4});
  deeper.channels().then("SpaceToDepth", {}, {{"blocksize", {2}}});
  CHECK(deeper.then("GlobalMaxPool").then("Flatten").read(48) == "a:12 -> 4 x a:12");
}
TEST_CASE("rules: norms") {
  around layer({5});
  layer.then("LayerNormalization", {layer.g.parameter("w", {12}), layer.g.parameter("v", {12})});
  CHECK(layer.read(12) == "a:12 -> a:12");
  CHECK(layer.says("  a: LayerNormalization"));
  // As PyTorch exports a group norm: scale and shift of ones and zeros, then the learned ones.
  around group({2, 2});
  group.channels().then("Reshape", {group.constant({2, 3, -1})});
  group.then("InstanceNormalization", {group.constant({1, 1, 1}), group.constant({0, 0, 0})});
  group.then("Reshape", {group.constant({2, 12, 2, 2})});
  group.then("Mul", {group.g.parameter("w", {12, 1, 1})}).then("GlobalAveragePool").then("Flatten");
  CHECK(group.read(12) == "3 x a:4 -> 3 x a:4");
  around opset21({2, 2});
  opset21.g.opset = 21;
  opset21.channels().then("GroupNormalization",
                          {opset21.g.parameter("w", {12}), opset21.g.parameter("v", {12})},
                          {{"num_groups", {3}}});
  CHECK(opset21.then("GlobalAveragePool").then("Flatten").read(12) == "3 x a:4 -> 3 x a:4");
  around unit;
  CHECK(unit.then("LpNormalization", {}, {{"axis", {-1}}}).read(12) == "a:12 -> a:12");
}
TEST_CASE("rules: einsum ties letters") {
  around e({5});
  const auto w = e.g.parameter("w", {12, 7});
  e.x = e.g.apply("Einsum", {e.x, w}, {{"equation", {}, 0, "bsd,dk->bks"}});
  e.x = e.g.apply("Einsum", {e.x}, {{"equation", {}, 0, "bks->bsk"}});
  CHECK(e.read(7) == "a:12 -> w:7");
  around dots({5});
  dots.then("Einsum", {dots.g.parameter("w", {12, 7})}, {{"equation", {}, 0, "...d, dk -> ...k"}});
  CHECK(dots.read(7) == "a:12 -> w:7");
  around implicit;
  implicit.then("Einsum", {implicit.g.parameter("w", {12, 7})}, {{"equation", {}, 0, "bd,dk"}});
  CHECK(implicit.read(7) == "a:12 -> w:7");
}

TEST_CASE("rules: what does not fit is whole, and named") {
  const auto unknown = [](around& a) {
    a.g.output(a.x);
    const auto derived = subfed::derive_model(a.g);
    REQUIRE_FALSE(derived.unknown.empty());
    CHECK(around::second(derived, "a") == "12");
    return derived.unknown[0];
  };
  around reshape;
  CHECK(unknown(reshape.then("Reshape", {reshape.constant({5, 5})})) ==
        "Reshape: the shape does not fit");
  around matrix;
  CHECK(unknown(matrix.then("MatMul", {matrix.g.parameter("w", {5, 5})})) ==
        "MatMul: the shapes do not fit (reads 'w')");
  around concat;
  CHECK(unknown(concat.then("Concat", {concat.x}, {{"axis", {7}}})) ==
        "Concat: it has no such axis");
  around foreign;
  CHECK(unknown(foreign.then("com.microsoft::FusedMatMul")) ==
        "com.microsoft::FusedMatMul: this operator is not known");
  around wrong;
  wrong.then("Relu");
  wrong.g.values[wrong.x].has_extents = true;
  wrong.g.values[wrong.x].extents = {2, 13};
  CHECK(unknown(wrong) == "Relu: its output should be (2, 13) and seems to be (2, 12)");
  around after;
  after.then("Mystery").then("Relu");
  after.g.output(after.x);
  const auto derived = subfed::derive_model(after.g);
  CHECK(derived.unknown ==
        std::vector<std::string>{"Mystery: this operator is not known", "1 operator after it"});
}

}  // namespace
