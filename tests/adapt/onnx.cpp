// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/adapt/onnx.hpp>

#include <subfed/error.hpp>
#include <subfed/graph/derive_model.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using subfed::read_onnx;
using subfed::value_kind;
using support::message_of;

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += static_cast<char>((n & 0x7F) | 0x80);
  return out + static_cast<char>(n);
}
/// Fields of a message of protocol buffers.
std::string number(int field, std::uint64_t n) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(n);
}
std::string bytes(int field, const std::string& inner) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(inner.size()) + inner;
}

std::string node(const std::string& op, std::initializer_list<std::string> inputs,
                 std::initializer_list<std::string> outputs, const std::string& more = "") {
  std::string out = bytes(4, op) + more;
  for (const std::string& i : inputs) out += bytes(1, i);
  for (const std::string& o : outputs) out += bytes(2, o);
  return bytes(1, out);
}
std::string integers(const std::string& name, std::initializer_list<std::int64_t> values) {
  std::string out = bytes(1, name);
  for (const std::int64_t v : values) out += number(8, static_cast<std::uint64_t>(v));
  return bytes(5, out);
}
std::string integer(const std::string& name, std::int64_t value) {
  return bytes(5, bytes(1, name) + number(3, static_cast<std::uint64_t>(value)));
}
constexpr std::uint64_t of_float = 1, of_int64 = 7;
std::string tensor(const std::string& name, std::uint64_t type,
                   std::initializer_list<std::int64_t> extents, const std::string& more = "") {
  std::string out = number(2, type) + bytes(8, name) + more;
  for (const std::int64_t e : extents) out += number(1, static_cast<std::uint64_t>(e));
  return out;
}
std::string weight(const std::string& name, std::initializer_list<std::int64_t> extents) {
  return bytes(5, tensor(name, of_float, extents));
}
/// An input or output; -1 is an axis that is open, without a name.
std::string value(int field, const std::string& name, std::initializer_list<std::int64_t> extents,
                  std::uint64_t type = of_float) {
  std::string shape;
  for (const std::int64_t e : extents) {
    shape += bytes(1, e < 0 ? "" : number(1, static_cast<std::uint64_t>(e)));
  }
  return bytes(field, bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape))));
}
std::string file(const std::string& graph, std::uint64_t opset = 14) {
  return number(1, 8) + bytes(8, number(2, opset)) + bytes(7, graph);
}
std::string two_layers(const std::string& input) {
  return file(weight("fc1.weight", {64, 20}) + weight("fc1.bias", {64}) +
              weight("fc2.weight", {10, 64}) + input + value(12, "y", {1, 10}) +
              node("Gemm", {"x", "fc1.weight", "fc1.bias"}, {"a"}, integer("transB", 1)) +
              node("Relu", {"a"}, {"b"}) +
              node("Gemm", {"b", "fc2.weight"}, {"y"}, integer("transB", 1)));
}
std::string form(const subfed::derived_description& derived, const std::string& tensor_name) {
  const auto& info = derived.net[derived.net.find_tensor(tensor_name)];
  return subfed::detail::dimensions_text(derived.net, info.dimensions);
}

TEST_CASE("onnx: a file's operators, weights, inputs and outputs") {
  const auto graph = read_onnx(two_layers(value(11, "x", {1, 20})));
  CHECK(graph.opset == 14);
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[0].op == "Gemm");
  CHECK(graph.nodes[0].integer("transB", 0) == 1);
  const auto& x = graph.values[graph.nodes[0].inputs[0]];
  CHECK(x.name == "x");
  CHECK((x.kind == value_kind::input));
  CHECK(x.extents == std::vector<std::int64_t>{1, 20});
  const auto& w = graph.values[graph.nodes[0].inputs[1]];
  CHECK((w.kind == value_kind::parameter));
  CHECK(w.extents == std::vector<std::int64_t>{64, 20});
  REQUIRE(graph.outputs.size() == 1);
  CHECK(graph.values[graph.outputs[0]].name == "y");
  const auto derived = subfed::derive_model(graph);
  CHECK(form(derived, "fc1.bias") == "(fc1,)");
  CHECK(form(derived, "fc2.weight") == "(fc2, fc1)");
}

TEST_CASE("onnx: packed and single numbers are the same") {
  const std::string packed = bytes(5, bytes(1, "perm") + bytes(8, varint(1) + varint(0)));
  for (const std::string& attribute : {packed, integers("perm", {1, 0})}) {
    const auto graph = read_onnx(file(value(11, "x", {2, 3}) + value(12, "y", {3, 2}) +
                                      node("Transpose", {"x"}, {"y"}, attribute)));
    REQUIRE(graph.nodes[0].find("perm") != nullptr);
    CHECK(graph.nodes[0].find("perm")->integers == std::vector<std::int64_t>{1, 0});
  }
}

TEST_CASE("onnx: constants, as tensors of raw or typed numbers") {
  const std::string raw =
      bytes(9, std::string("\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  const std::string typed = number(7, 2) + number(7, static_cast<std::uint64_t>(-1));
  for (const std::string& elements : {raw, typed}) {
    const std::string shape = tensor("", of_int64, {2}, elements);
    const auto graph =
        read_onnx(file(value(11, "x", {1, 6}) + value(12, "y", {2, 3}) +
                       node("Constant", {}, {"to"}, bytes(5, bytes(1, "value") + bytes(5, shape))) +
                       node("Reshape", {"x", "to"}, {"y"})));
    REQUIRE(graph.nodes.size() == 1);
    const auto& to = graph.values[graph.nodes[0].inputs[1]];
    CHECK((to.kind == value_kind::constant));
    CHECK(to.elements == std::vector<double>{2, -1});
    CHECK(to.is_integer);
    CHECK_FALSE(to.is_uniform);
  }
}

TEST_CASE("onnx: weights that are stored elsewhere are never looked for") {
  const std::string external = number(14, 1) + bytes(13, bytes(1, "location") + bytes(2, "../x"));
  const std::string graph = bytes(5, tensor("a.weight", of_float, {4, 3}, external)) +
                            bytes(5, tensor("b.weight", of_float, {2, 4}, external)) +
                            value(11, "x", {1, 3}) + value(12, "y", {1, 2}) +
                            node("Gemm", {"x", "a.weight"}, {"h"}, integer("transB", 1)) +
                            node("Gemm", {"h", "b.weight"}, {"y"}, integer("transB", 1));
  CHECK(form(subfed::derive_model(read_onnx(file(graph))), "b.weight") == "(b, a)");
}

TEST_CASE("onnx: without weights, a module's parameters are inputs") {
  const std::string graph = value(11, "x", {1, 3}) + value(11, "a.weight", {4, 3}) +
                            value(11, "b.weight", {2, 4}) + value(12, "y", {1, 2}) +
                            node("Gemm", {"x", "a.weight"}, {"h"}, integer("transB", 1)) +
                            node("Gemm", {"h", "b.weight"}, {"y"}, integer("transB", 1));
  CHECK(form(subfed::derive_model(read_onnx(file(graph))), "a.weight") == "(a, a.in)");
}

TEST_CASE("onnx: an extent that the file leaves open") {
  const std::string open = two_layers(value(11, "x", {-1, 20}));
  CHECK(read_onnx(open).values[3].extents == std::vector<std::int64_t>{1, 20});
  CHECK(read_onnx(open, {{{"x[0]", 5}}}).values[3].extents == std::vector<std::int64_t>{5, 20});
  const std::string second = two_layers(value(11, "x", {1, -1}));
  CHECK(message_of([&] { read_onnx(second); }) ==
        "subfed: onnx: the input 'x' leaves the extent 'x[1]' open; give one to open_extents");
}

TEST_CASE("onnx: what graphs inside of operators read stays whole") {
  const std::string inner =
      bytes(5, bytes(1, "then_branch") + bytes(6, node("Relu", {"h"}, {"i"})));
  const std::string graph = weight("a.weight", {4, 3}) + weight("b.weight", {2, 4}) +
                            value(11, "x", {1, 3}) + value(11, "c", {}, 9) +
                            value(12, "y", {1, 2}) +
                            node("Gemm", {"x", "a.weight"}, {"h"}, integer("transB", 1)) +
                            node("If", {"c"}, {"z"}, inner) + value(13, "z", {1, 4}) +
                            node("Gemm", {"h", "b.weight"}, {"y"}, integer("transB", 1));
  const auto derived = subfed::derive_model(read_onnx(file(graph)));
  REQUIRE(derived.unknown.size() == 1);
  CHECK(derived.unknown[0] == "If of 'z': this operator is not known (reads 'h', 'c')");
  CHECK(derived.net[derived.net.find_group("a")].cut == subfed::cut::never);
}

TEST_CASE("onnx: files that are none are refused with the place") {
  CHECK(message_of([] { read_onnx(std::string("PK\3\4 not a network")); }).find("at byte") !=
        std::string::npos);
  CHECK(message_of([] { read_onnx(std::string()); }) ==
        "subfed: onnx: the file is not a network: it has 0 graphs and no operator set");
  CHECK(message_of([] { read_onnx(std::string("\x3A\xFF", 2)); }) ==
        "subfed: onnx: the file has a number without an end, at byte 2");
  CHECK(message_of([] {
          read_onnx(
              std::string("\x3A\x05"
                          "ab",
                          4));
        }) == "subfed: onnx: the file has a field of 5 bytes, of which 2 are there, at byte 2");
  CHECK(message_of([] {
          read_onnx(std::string("\x42\x02\x10\x0E\x3A\x04\x0A\x02\x0A\xFF", 10));
        }) == "subfed: onnx: the file has a number without an end, at byte 10");
  CHECK(message_of([] { read_onnx(std::string(12, '\xFF')); }) ==
        "subfed: onnx: the file has a number of more than 64 bits, at byte 10");
  const std::string huge =
      file(weight("w", {std::int64_t{1} << 32, std::int64_t{1} << 32}) + value(12, "w", {1}));
  CHECK(message_of([&] { read_onnx(huge); }).find("more than 2^63 - 1 elements, at byte") !=
        std::string::npos);
  CHECK(message_of([] {
          read_onnx(file(weight("w", {-1}) + value(12, "w", {1})));
        }).find("which is negative") != std::string::npos);
  CHECK(message_of([] { read_onnx(file(node("Relu", {"x"}, {"y"}) + value(12, "y", {1}))); }) ==
        "subfed: onnx: an operator reads 'x', which nothing before it computes");
  CHECK(message_of([] {
          read_onnx(file(value(11, "x", {1}) + node("Relu", {"x"}, {"y"}) +
                         node("Relu", {"x"}, {"y"}) + value(12, "y", {1})));
        }) == "subfed: onnx: the file has the value 'y' twice");
  CHECK(message_of([] { read_onnx(file(value(11, "x", {1}) + value(12, "z", {1}))); }) ==
        "subfed: onnx: nothing computes the output 'z'");
}

}  // namespace
