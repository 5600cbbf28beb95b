// SPDX-License-Identifier: MIT
/// Memory that one call reads and writes through different tensors: found across all of them, whichever
/// tensor of the model it belongs to.
#include <subfed/subfed.hpp>

#include <support/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::submodel;
using subfed::tensor_view;
using subfed::update;
using support::message_of;

namespace {

struct two_vectors {
  subfed::model net;
  two_vectors() {
    net.tensor("x", {2});
    net.tensor("y", {2});
  }
};

tensor_view<float> pair_at(float* data) { return {data, {2}}; }

const std::string x_and_y = "the tensors 'x' and 'y' overlap in memory";

}  // namespace

TEST_CASE("a client's tensor in the memory of another global tensor is refused") {
  two_vectors m;
  std::vector<float> global{1, 2, 3, 4};
  const std::vector<float> before = global;
  std::vector<float> own{5, 6};
  const submodel full = submodel::full(m.net);
  const auto x = pair_at(global.data());
  const auto y = pair_at(global.data() + 2);
  const std::vector<update<float>> updates{{full, {pair_at(own.data()), x}}};  // y read where x is
  CHECK(message_of([&] {
          subfed::average_cohort<float>(m.net, updates, {x, y});
        }) == "subfed: average: " + x_and_y);
  CHECK(message_of([&] {
          subfed::scatter<float>({pair_at(own.data()), x}, full, {x, y});
        }) == "subfed: scatter: " + x_and_y);
  CHECK(message_of([&] {
          subfed::scatter_add<float>({y, pair_at(own.data())}, full, {x, y});
        }) == "subfed: scatter_add: " + x_and_y);
  CHECK(message_of([&] {
          subfed::slice<float>({x, y}, full, {pair_at(own.data()), x});
        }) == "subfed: slice: " + x_and_y);
  CHECK(global == before);
}

TEST_CASE("two tensors that are written in one memory are refused") {
  two_vectors m;
  std::vector<float> global{1, 2, 3, 4};
  const std::vector<float> before = global;
  std::vector<float> a{5, 6}, b{7, 8};
  const submodel full = submodel::full(m.net);
  const auto x = pair_at(global.data());
  const auto into_x = pair_at(global.data() + 1);
  const std::vector<update<float>> updates{{full, {pair_at(a.data()), pair_at(b.data())}}};
  CHECK(message_of([&] {
          subfed::average_cohort<float>(m.net, updates, {x, into_x});
        }) == "subfed: average: " + x_and_y);
  subfed::selective_average<float> mean(m.net);
  mean.add(full, {pair_at(a.data()), pair_at(b.data())});
  CHECK(message_of([&] { mean.finish({x, into_x}); }) == "subfed: average: " + x_and_y);
  CHECK(message_of([&] {
          subfed::slice<float>({pair_at(a.data()), pair_at(b.data())}, full, {x, into_x});
        }) == "subfed: slice: " + x_and_y);
  CHECK(message_of([&] {
          subfed::scatter<float>({pair_at(a.data()), pair_at(b.data())}, full, {x, x});
        }) == "subfed: scatter: " + x_and_y);
  CHECK(global == before);
}

TEST_CASE("tensors of different types in one memory are refused too") {
  two_vectors m;
  alignas(8) double memory[4]{1, 2, 3, 4};
  float own[2]{5, 6};
  double mine[2]{7, 8};
  auto* const inside = reinterpret_cast<std::int32_t*>(memory) + 1;  // of y, never read here
  const submodel full = submodel::full(m.net);
  CHECK(message_of([&] {
          subfed::scatter<void>(
              {tensor_view<const std::int32_t>(inside, {2}), tensor_view<double>(mine, {2})}, full,
              {tensor_view<std::int32_t>(reinterpret_cast<std::int32_t*>(own), {2}),
               tensor_view<double>(memory, {2})});
        }) == "subfed: scatter: " + x_and_y);
  CHECK(memory[0] == 1);
}

TEST_CASE("what is only read may share memory, and what interleaves without meeting is apart") {
  two_vectors m;
  std::vector<float> global(4, 0);
  std::vector<float> shared{5, 6};
  const submodel full = submodel::full(m.net);
  // x and y are the columns of one matrix; both clients send the same two numbers for both.
  const tensor_view<float> x(global.data(), {2}, {2});
  const tensor_view<float> y(global.data() + 1, {2}, {2});
  const auto sent = pair_at(shared.data());
  const std::vector<update<float>> updates{{full, {sent, sent}}, {full, {sent, sent}}};
  subfed::average_cohort<float>(m.net, updates, {x, y});
  CHECK(global == std::vector<float>{5, 5, 6, 6});
  subfed::scatter_add<float>({sent, sent}, full, {x, y});
  CHECK(global == std::vector<float>{10, 10, 12, 12});
  // A client of weight 0 is not read, wherever its tensors are.
  const std::vector<update<float>> unread{{full, {sent, sent}}, {full, {y, x}, 0}};
  CHECK_NOTHROW(subfed::average_cohort<float>(m.net, unread, {x, y}));
}

TEST_CASE("empty tensors overlap nothing") {
  subfed::model net;
  net.tensor("none", {0});
  net.tensor("x", {2});
  std::vector<float> memory{1, 2}, own{3, 4};
  const submodel full = submodel::full(net);
  const tensor_view<float> none(memory.data(), {0});
  subfed::scatter<float>({none, pair_at(own.data())}, full, {none, pair_at(memory.data())});
  CHECK(memory == own);
}
