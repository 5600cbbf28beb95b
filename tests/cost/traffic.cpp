// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/cost/traffic.hpp>

#include <subfed/layers.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::submodel;
using support::message_of;

namespace {
using byte_counts = std::vector<std::int64_t>;
}

TEST_CASE("bytes down and up, with and without lists of indices, and with mixed element types") {
  model net;
  const auto hidden = net.group("hidden", 8);
  const auto classes = net.group("classes", 3, subfed::cut::never);
  linear(net, "fc1", {5, hidden});
  linear(net, "fc2", {hidden, classes, subfed::bias::none});
  net.tensor("steps", {});
  const submodel part(net, {index_set(8, {7, 1}), index_set::full(3)});
  const std::int64_t elements = 10 + 2 + 6 + 1;
  using subfed::index_lists;
  using subfed::traffic_bytes;
  CHECK(subfed::traffic(part) == traffic_bytes{4 * elements, 4 * elements});
  CHECK(subfed::traffic(part, {.lists = index_lists::sent_down}) ==
        traffic_bytes{4 * elements + 8, 4 * elements});
  CHECK(subfed::traffic(
            part, {.lists = index_lists::sent_both_ways, .element_bytes = 2, .index_bytes = 8}) ==
        traffic_bytes{2 * elements + 16, 2 * elements + 16});
  const byte_counts sizes{4, 4, 2, 8};
  CHECK(subfed::traffic(part, {.tensor_element_bytes = sizes}).up == 4 * 12 + 2 * 6 + 8);
  const byte_counts few{4};
  CHECK(message_of([&] { subfed::traffic(part, {.tensor_element_bytes = few}); }) ==
        "subfed: cost: element sizes of 1 tensors are given for a model of 4");
}

TEST_CASE("local tensors do not travel") {
  model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g, 3});
  batch_norm(net, "bn", {.channels = g, .statistics = subfed::running_statistics::kept});
  net.tensor("head", {g, 5}, subfed::role::local);
  net.tensor("steps", {}, subfed::role::counter);
  const submodel part(net, {index_set(4, {1, 3})});
  CHECK(subfed::traffic(part) == subfed::traffic_bytes{4 * 15, 4 * 15});
  const byte_counts bytes{2, 4, 4, 4, 4, 1000, 8};
  CHECK(subfed::traffic(part,
                        {.lists = subfed::index_lists::sent_down, .tensor_element_bytes = bytes}) ==
        subfed::traffic_bytes{6 * 2 + 8 * 4 + 8 + 2 * 4, 6 * 2 + 8 * 4 + 8});
}
