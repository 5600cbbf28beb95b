// SPDX-License-Identifier: MIT
/// What a call writes shares no memory with what it reads, nor with itself: every verb outside of
/// slices and averages, which have tests of their own.
#include <doctest/doctest.h>
#include <subfed/detail/written_tensors.hpp>

#include <subfed/average/clip_update.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/submodel.hpp>
#include <subfed/systems/distillation.hpp>
#include <subfed/systems/ensemble.hpp>
#include <subfed/systems/masked_cross_entropy.hpp>
#include <subfed/systems/proximal.hpp>
#include <subfed/systems/scaffold.hpp>
#include <subfed/systems/server_optimizer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using subfed::tensor_view;
using views = subfed::tensor_views<float>;
using read_views = subfed::tensor_views<const float>;

/// Memory for 24 elements, and vectors of four in it.
struct shared_memory {
  std::array<float, 24> elements = {};
  shared_memory() {
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i);
  }
  tensor_view<float> at(std::size_t first) { return {elements.data() + first, {4}}; }
  tensor_view<const float> read(std::size_t first) { return {elements.data() + first, {4}}; }
  tensor_view<float> row(std::size_t first) { return {elements.data() + first, {1, 4}}; }
  tensor_view<const float> read_row(std::size_t first) { return {elements.data() + first, {1, 4}}; }
};

struct two_vectors {
  subfed::model net;
  subfed::submodel all = subfed::submodel::full(made());
  const subfed::model& made() {
    net.tensor("a", {4});
    net.tensor("b", {4});
    return net;
  }
};

/// What f(memory) is refused with; nothing has been written then. "" where it is not refused.
template <class F>
std::string refusal(F&& f) {
  shared_memory memory;
  const auto before = memory.elements;
  try {
    f(memory);
  } catch (const subfed::error& e) {
    CHECK(memory.elements == before);
    return e.what();
  }
  return "";
}

std::string together(const std::string& verb, const std::string& first, const std::string& second) {
  return "subfed: " + verb + ": the tensors '" + first + "' and '" + second + "' overlap in memory";
}

}  // namespace

TEST_CASE("clip_update: the update and what was sent, and two tensors of the update") {
  const two_vectors v;
  const auto clip = [&](std::size_t sent_a, std::size_t update_a, std::size_t update_b) {
    return refusal([&](shared_memory& m) {
      subfed::clip_update<float>(v.all, read_views({m.read(sent_a), m.read(4)}), 1.0,
                                 views({m.at(update_a), m.at(update_b)}));
    });
  };
  CHECK(clip(0, 8, 12).empty());
  CHECK(clip(9, 8, 16) == together("clip_update", "sent a", "update a"));
  CHECK(clip(12, 8, 16).empty());
  CHECK(clip(13, 8, 16) == together("clip_update", "sent a", "update b"));
  CHECK(clip(0, 8, 6) == together("clip_update", "sent b", "update b"));
  CHECK(clip(0, 8, 8) == together("clip_update", "update a", "update b"));
}

TEST_CASE("server_optimizer: two global tensors in one place take one step") {
  const two_vectors v;
  const auto step = [&](std::size_t second) {
    return refusal([&](shared_memory& m) {
      subfed::server_optimizer<float, subfed::server_sgd> rule(v.net, {});
      rule.begin(read_views({m.read(0), m.read(second)}));
      const std::vector<subfed::submodel> members{v.all};
      rule.finish(subfed::held_elements(v.net, members), views({m.at(0), m.at(second)}));
    });
  };
  CHECK(step(4).empty());
  CHECK(step(3) == together("server_optimizer", "global a", "global b"));
}

TEST_CASE("clear_unheld: two global tensors in one place") {
  const two_vectors v;
  const auto clear = [&](std::size_t second) {
    return refusal([&](shared_memory& m) {
      const std::vector<subfed::submodel> members{v.all};
      subfed::clear_unheld<float>(v.net, members, views({m.at(0), m.at(second)}));
    });
  };
  CHECK(clear(4).empty());
  CHECK(clear(0) == together("clear_unheld", "global a", "global b"));
}

TEST_CASE("add_proximal and correct_gradients: gradients beside what they come from") {
  const two_vectors v;
  const auto proximal = [&](std::size_t weight, std::size_t start) {
    return refusal([&](shared_memory& m) {
      subfed::add_proximal<float>(v.net, 0.5, read_views({m.read(weight), m.read(8)}),
                                  read_views({m.read(start), m.read(12)}),
                                  views({m.at(0), m.at(20)}));
    });
  };
  CHECK(proximal(16, 4).empty());
  CHECK(proximal(3, 4) == together("proximal", "gradient a", "weight a"));
  CHECK(proximal(4, 17) == together("proximal", "gradient b", "start a"));
  const auto correct = [&](std::size_t own, std::size_t server) {
    return refusal([&](shared_memory& m) {
      subfed::correct_gradients<float>(v.net, read_views({m.read(own), m.read(8)}),
                                       read_views({m.read(server), m.read(12)}),
                                       views({m.at(0), m.at(20)}));
    });
  };
  CHECK(correct(16, 4).empty());
  CHECK(correct(3, 4) == together("correct_gradients", "gradient a", "own control a"));
  CHECK(correct(4, 17) == together("correct_gradients", "gradient b", "server control a"));
}

TEST_CASE("tensors that are no parameters have no gradient, and may share one stand-in") {
  subfed::model net;
  net.tensor("a", {4});
  for (const char* name : {"mean", "variance"}) net.tensor(name, {4}, subfed::role::statistic);
  shared_memory m;
  const auto read = [&](std::size_t a) { return read_views({m.read(a), m.read(16), m.read(16)}); };
  const views gradients({m.at(0), m.at(16), m.at(16)});
  subfed::add_proximal<float>(net, 0.5, read(4), read(8), gradients);
  CHECK(m.elements[0] == -2);
  subfed::correct_gradients<float>(net, read(4), read(8), gradients);
  CHECK(m.elements[0] == 2);
  const auto all = subfed::submodel::full(net);
  CHECK(subfed::clip_update<float>(all, read(4), 1.0, gradients).factor < 1);
  CHECK(m.elements[16] == 16);
}

TEST_CASE("control_change: the change beside what it comes from") {
  const two_vectors v;
  const auto change = [&](std::size_t start, std::size_t trained, std::size_t server) {
    return refusal([&](shared_memory& m) {
      subfed::control_change<float>(v.net, read_views({m.read(start), m.read(8)}),
                                    read_views({m.read(trained), m.read(8)}),
                                    read_views({m.read(server), m.read(8)}), {.steps = 1, .lr = 1},
                                    views({m.at(0), m.at(20)}));
    });
  };
  CHECK(change(4, 12, 16).empty());
  CHECK(change(3, 12, 16) == together("control_change", "delta a", "start a"));
  CHECK(change(4, 1, 16) == together("control_change", "delta a", "trained a"));
  CHECK(change(4, 12, 18) == together("control_change", "delta b", "server control a"));
}

TEST_CASE("average_outputs and losses: the result beside what it comes from") {
  const auto outputs = [](std::size_t second, std::size_t mean) {
    return refusal([&](shared_memory& m) {
      subfed::average_outputs<float>(read_views({m.read(0), m.read(second)}), m.at(mean));
    });
  };
  CHECK(outputs(4, 8).empty());
  CHECK(outputs(5, 8) == together("average_outputs", "mean", "output of member 1"));
  const std::array<std::int64_t, 1> labels{1};
  const auto entropy = [&](std::size_t gradient) {
    return refusal([&](shared_memory& m) {
      subfed::masked_cross_entropy<float>(m.read_row(0), labels, subfed::index_set::full(4),
                                          subfed::absent_logits::zero, m.row(gradient));
    });
  };
  CHECK(entropy(4).empty());
  CHECK(entropy(1) == together("masked_cross_entropy", "gradient", "logits"));
  const auto distilled = [&](std::size_t gradient) {
    return refusal([&](shared_memory& m) {
      subfed::distillation_loss<float>(m.read_row(0), m.read_row(4), labels, {}, m.row(gradient));
    });
  };
  CHECK(distilled(8).empty());
  CHECK(distilled(2) == together("distillation_loss", "gradient", "student"));
  CHECK(distilled(6) == together("distillation_loss", "gradient", "teacher"));
}
