// SPDX-License-Identifier: MIT
#include <subfed/layers/connections.hpp>

#include <subfed/layers/convolution.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/layouts.hpp>

#include <vector>

using subfed::bias;
using subfed::flatten;
using subfed::flatten_order;
using subfed::index_set;
using subfed::model;
using subfed::submodel;
using support::held;
using support::message_of;
using support::node_list;

TEST_CASE("a flatten with the channels first, and last") {
  model net;
  const auto c = net.group("c", 4);
  const auto first = linear(net, "first", {flatten(c, 4), 1, bias::none}).weight;
  const auto last =
      linear(net, "last", {flatten(c, 4, flatten_order::channels_last), 1, bias::none}).weight;
  const submodel part(net, {index_set(4, {3, 0})});
  CHECK(held(part, first, 1) == node_list{12, 13, 14, 15, 0, 1, 2, 3});
  CHECK(held(part, last, 1) == node_list{3, 0, 7, 4, 11, 8, 15, 12});
  CHECK(flatten(c, 1) == subfed::dimension(c));
  CHECK(flatten(c, 1, flatten_order::channels_last) == subfed::dimension(c));

  // The values of a row, too.
  std::vector<float> row(16);
  for (std::size_t i = 0; i < 16; ++i) row[i] = static_cast<float>(i);
  std::vector<float> cut(8);
  const subfed::tensor_view<const float> from(row.data(), {1, 16});
  const subfed::tensor_view<float> to(cut.data(), {1, 8});
  subfed::slice(from, part[first], to);
  CHECK(cut == std::vector<float>{12, 13, 14, 15, 0, 1, 2, 3});
  subfed::slice(from, part[last], to);
  CHECK(cut == std::vector<float>{3, 0, 7, 4, 11, 8, 15, 12});
}

TEST_CASE("layers after a concatenation read its parts one after the other, flattened too") {
  model net;
  const auto a = net.group("a", 2);
  const auto b = net.group("b", 3);
  const auto wa = conv2d(net, "a", {1, a, 3, 3}).weight;
  const auto wb = conv2d(net, "b", {a, b, 3, 3}).weight;
  const auto both = subfed::concat({a, b});
  const auto next = conv2d(net, "next", {both, 4, 3, 3}).weight;
  const auto fc = linear(net, "fc", {flatten(both, 2, flatten_order::channels_last), 4}).weight;
  CHECK_NOTHROW(check_reads(net, wb, {wa}));
  CHECK_NOTHROW(check_reads(net, next, {wa, wb}));
  CHECK_NOTHROW(check_reads(net, fc, {wa, wb}));
  const submodel part(net, {index_set(2, {1}), index_set(3, {2, 0})});
  CHECK(held(part, next, 1) == node_list{1, 4, 2});
  CHECK(held(part, fc, 1) == node_list{1, 4, 2, 6, 9, 7});
  CHECK(message_of([&] {
          check_reads(net, next, {wb, wa});
        }) ==
        "subfed: layers: 'next.weight' reads 5 elements ([a | b]), but 'b.weight' and 'a.weight' "
        "write 5 elements ([b | a])");
}

TEST_CASE("a layer that reads what no one writes is an error that names both tensors") {
  model net;
  const auto a = net.group("a", 64);
  const auto b = net.group("b", 64);
  const auto fc1 = linear(net, "fc1", {20, a});
  const auto wide = linear(net, "wide", {128, 10});
  const auto other = linear(net, "other", {b, 10});
  const auto narrow = linear(net, "narrow", {32, 10});
  CHECK(message_of([&] { check_reads(net, wide.weight, {fc1.weight}); }) ==
        "subfed: layers: 'wide.weight' reads 128 elements (128), but 'fc1.weight' writes 64 "
        "elements (a)");
  CHECK(message_of([&] { check_reads(net, other.weight, {fc1.weight}); }) ==
        "subfed: layers: 'other.weight' reads 64 elements (b), but 'fc1.weight' writes 64 elements "
        "(a)");
  CHECK(message_of([&] { check_reads(net, narrow.weight, {fc1.weight}); }) ==
        "subfed: layers: 'narrow.weight' reads 32 elements (32), but 'fc1.weight' writes 64 "
        "elements (a)");
  CHECK(message_of([&] { check_reads(net, *fc1.bias, {fc1.weight}); }) ==
        "subfed: layers: 'fc1.bias' has no second dimension, so it reads nothing");
}

TEST_CASE("residual adds: identity and projected skips write one group") {
  model net;
  const auto stream = net.group("stream", 8);
  const auto wider = net.group("wider", 16);
  const auto unlike = net.group("unlike", 16);
  const auto conv2 = conv2d(net, "conv2", {stream, wider, 3, 3}).weight;
  const auto shortcut = conv2d(net, "shortcut", {stream, wider, 1, 1}).weight;
  const auto wrong = conv2d(net, "wrong", {stream, unlike, 1, 1}).weight;
  const auto short_of = conv2d(net, "short", {stream, stream, 1, 1}).weight;
  CHECK(residual_add(net, {conv2, shortcut}) == subfed::dimension(wider));
  CHECK(message_of([&] {
          residual_add(net, {conv2, shortcut, wrong});
        }) ==
        "subfed: layers: 'conv2.weight' writes 16 elements (wider), but 'wrong.weight', which is "
        "added to it, 16 elements (unlike)");
  CHECK(message_of([&] {
          residual_add(net, {conv2, short_of});
        }) ==
        "subfed: layers: 'conv2.weight' writes 16 elements (wider), but 'short.weight', which is "
        "added to it, 8 elements (stream)");
  CHECK(message_of([&] { residual_add(net, {}); }) ==
        "subfed: layers: a residual addition of no tensors");
  const auto scalar = net.tensor("scalar", {});
  CHECK(message_of([&] { residual_add(net, {scalar}); }) ==
        "subfed: layers: 'scalar' has the rank 0, so it writes no dimension");
}

TEST_CASE("a mismatch of very many copies is reported as a mismatch") {
  subfed::model net;
  const auto a = net.group("a", 1);
  const auto b = net.group("b", 1);
  const auto w = net.tensor("w", {subfed::concat({a, b, 1}), 1});
  const auto v = net.tensor("v", {1, std::int64_t{3} << 40});
  CHECK(support::message_of([&] { subfed::check_reads(net, v, {w}); }).find("'v' reads") !=
        std::string::npos);
}
