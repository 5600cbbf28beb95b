// SPDX-License-Identifier: MIT
/// Memory that one call reads and writes through different tensors: found across all of them, whichever
/// tensor of the model it belongs to.
#include <subfed/subfed.hpp>

#include <subfed/detail/memory_overlap.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

namespace {

/// What check_apart says of tensors in one memory; offsets and strides in elements.
class placed_floats {
 public:
  explicit placed_floats(std::size_t size) : memory_(size) {}
  void add(const char* name, subfed::detail::access used, std::int64_t offset, std::int64_t extent,
           std::int64_t stride) {
    auto* const floats = reinterpret_cast<float*>(memory_.data());
    place(tensor_view<float>(floats + offset, {extent}, {stride}), name, used);
  }
  void add_doubles(const char* name, subfed::detail::access used, std::int64_t offset,
                   std::int64_t extent, std::int64_t stride) {
    place(tensor_view<double>(memory_.data() + offset, {extent}, {stride}), name, used);
  }
  std::string refusal() {
    return message_of([&] { tensors_.check_apart("test"); });
  }

 private:
  template <class T>
  void place(const tensor_view<T>& tensor, const char* name, subfed::detail::access used) {
    names_.push_back(std::make_unique<std::string>(name));
    tensors_.add(tensor, *names_.back(), used);
  }

  std::vector<double> memory_;
  std::vector<std::unique_ptr<std::string>> names_;
  subfed::detail::placed_tensors tensors_;
};

}  // namespace

TEST_CASE("a tensor is compared with all that reach so far, not with the last one only") {
  using subfed::detail::access;
  const std::string none = "nothing was thrown";
  // "long" is every third element; "short" lies between them and ends early; "late" meets "long".
  for (const access first : {access::reads, access::writes}) {
    for (const access second : {access::reads, access::writes}) {
      for (const access third : {access::reads, access::writes}) {
        placed_floats places(100);
        places.add("long", first, 0, 30, 3);
        places.add("short", second, 1, 2, 3);
        places.add("late", third, 60, 2, 1);
        const bool refused = first == access::writes || third == access::writes;
        CHECK(places.refusal() ==
              (refused ? "subfed: test: the tensors 'late' and 'long' overlap in memory" : none));
      }
    }
  }
  // Of two that are read the one that ends first is closed first, whichever began first.
  placed_floats places(100);
  places.add("short", access::reads, 0, 5, 1);
  places.add("long", access::reads, 1, 60, 1);
  places.add("tail", access::reads, 7, 2, 1);
  places.add("written", access::writes, 50, 1, 1);
  CHECK(places.refusal() == "subfed: test: the tensors 'long' and 'written' overlap in memory");
}

TEST_CASE("tensors are refused exactly where two of them have a byte in common, one written to") {
  using subfed::detail::access;
  support::seeded random(7);
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    placed_floats places(200);
    std::vector<std::pair<std::vector<bool>, access>> held;
    bool expected = false;
    const std::int64_t tensors = random.between(2, 5);
    for (std::int64_t t = 0; t < tensors; ++t) {
      const std::int64_t extent = random.between(1, 6);
      const std::int64_t stride = random.between(-6, 6);
      const std::int64_t offset = random.between(80, 120);
      const access used = random.one_in(3) ? access::writes : access::reads;
      const std::int64_t width = random.one_in(3) ? 2 : 1;  // doubles, floats
      std::vector<bool> own(400, false);                    // places of floats
      if (width == 2) {
        places.add_doubles("t", used, offset / 2, extent, stride);
      } else {
        places.add("t", used, offset, extent, stride);
      }
      for (std::int64_t i = 0; i < extent; ++i) {
        for (std::int64_t w = 0; w < width; ++w) {
          own[static_cast<std::size_t>((offset / width + i * stride) * width + w)] = true;
        }
      }
      for (const auto& [others, used_so] : held) {
        if (used == access::reads && used_so == access::reads) continue;
        for (std::size_t i = 0; i < own.size(); ++i) expected = expected || (own[i] && others[i]);
      }
      held.emplace_back(std::move(own), used);
    }
    CHECK((places.refusal() != "nothing was thrown") == expected);
    refused += expected;
  }
  CHECK(refused > 300);
  CHECK(refused < 2700);
}

TEST_CASE("200000 clients whose tensors interleave in one memory take no square of their number") {
  using subfed::detail::access;
  const std::string name = "w";
  const std::int64_t clients = 200000;
  std::vector<float> memory(static_cast<std::size_t>(3 * (clients + 1)));
  subfed::detail::placed_tensors places;
  const auto column = [&](std::int64_t c) {
    return tensor_view<float>(memory.data() + c, {3}, {clients + 1});
  };
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t c = 0; c < clients; ++c) places.add(column(c), name, access::reads);
  places.add(column(clients), name, access::writes);
  CHECK_NOTHROW(places.check_apart("test"));
  places.add(column(7), name, access::writes);
  CHECK(message_of([&] { places.check_apart("test"); }) ==
        "subfed: test: the global and the local tensor 'w' overlap in memory");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 60);  // 1 s; 2 * 10^10 comparisons where it is quadratic
}

TEST_CASE("a scalar that is broadcast to more elements than memory has is one place") {
  using subfed::detail::access;
  const std::string name = "w";
  float one = 1;
  float other[3]{};
  subfed::detail::placed_tensors places;
  const std::int64_t many = std::int64_t{1} << 60;
  places.add(tensor_view<float>(&one, {many}, {0}), name, access::reads);
  places.add(tensor_view<float>(other, {3}), name, access::writes);
  CHECK_NOTHROW(places.check_apart("test"));
  places.add(tensor_view<float>(&one, {1}), name, access::writes);
  CHECK(message_of([&] { places.check_apart("test"); }) ==
        "subfed: test: the global and the local tensor 'w' overlap in memory");
}
