// SPDX-License-Identifier: MIT
/// The mode of the calling thread's arithmetic does not show in results.
#include <subfed/detail/float_mode.hpp>

#include <subfed/average/by_element.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/systems/channel_moments.hpp>
#include <subfed/systems/distillation.hpp>
#include <subfed/systems/ensemble.hpp>
#include <subfed/systems/feddrop_optimizer.hpp>
#include <subfed/systems/masked_cross_entropy.hpp>
#include <subfed/systems/proximal.hpp>
#include <subfed/systems/scaffold.hpp>
#include <subfed/systems/server_optimizer.hpp>
#include <subfed/systems/server_rules.hpp>
#include <subfed/systems/trajectory_similarity.hpp>
#include <support/checks.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#if defined(__SSE2__)

using subfed::half;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::update;

namespace {

constexpr unsigned zeros = 0x8040;   // FTZ, DAZ
constexpr unsigned upward = 0x4000;  // rounding

/// The thread's mode while it lives.
struct other_mode {
  unsigned before = _mm_getcsr();
  explicit other_mode(unsigned bits) { _mm_setcsr(before | bits); }
  ~other_mode() { _mm_setcsr(before); }
};

/// Every other part on a thread of its own, which has a mode of its own.
struct two_threads {
  unsigned mode = 0x1F80;  // the standard one
  void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& f) const {
    std::thread other([&] {
      _mm_setcsr(mode);
      for (std::int64_t i = 1; i < n; i += 2) f(i);
    });
    for (std::int64_t i = 0; i < n; i += 2) f(i);
    other.join();
  }
};

constexpr std::uint32_t denormal = 0x000116C2;  // 1e-40f

}  // namespace

TEST_CASE("the mode is the standard one inside and the thread's own afterwards, with its flags") {
  for (const unsigned bits : {0u, zeros, upward, zeros | upward}) {
    const other_mode mode(bits);
    const unsigned before = _mm_getcsr();
    {
      const subfed::detail::float_mode standard;
      CHECK((_mm_getcsr() & 0xE040) == 0);
      _mm_setcsr(_mm_getcsr() | 0x20);  // as an inexact result does
    }
    CHECK((_mm_getcsr() & ~0x3Fu) == (before & ~0x3Fu));
    CHECK((_mm_getcsr() & 0x20) != 0);
  }
}

TEST_CASE("an average of denormal floats is the same on any threads, whatever the caller's mode") {
  constexpr std::int64_t size = std::int64_t{1} << 20;
  subfed::model net;
  net.tensor("x", {size});
  const auto full = submodel::full(net);
  const std::vector<float> tiny(static_cast<std::size_t>(size), std::bit_cast<float>(denormal));
  // Two clients: the value of a single one is copied.
  const std::vector<update<float>> updates{
      {full, {tensor_view<const float>(tiny.data(), {size})}, 3},
      {full, {tensor_view<const float>(tiny.data(), {size})}, 1}};
  std::vector<float> global(static_cast<std::size_t>(size));
  const tensor_views<float> globals{tensor_view<float>(global.data(), {size})};
  const auto all_right = [&] {
    for (const float x : global) {
      if (std::bit_cast<std::uint32_t>(x) != denormal) return false;
    }
    return true;
  };
  for (const unsigned bits : {0u, zeros, upward, zeros | upward}) {
    INFO("mode ", bits);
    const other_mode mode(bits);
    std::fill(global.begin(), global.end(), 1.0f);
    subfed::average_cohort<float>(net, updates, globals);
    CHECK(all_right());
    std::fill(global.begin(), global.end(), 1.0f);
    subfed::average_cohort<float>(net, updates, globals, {}, two_threads{});
    CHECK(all_right());
    std::fill(global.begin(), global.end(), 1.0f);
    subfed::average_cohort<float>(net, updates, globals, {}, two_threads{0x1F80 | zeros});
    CHECK(all_right());
    subfed::selective_average<float> mean(net), other(net);
    for (const auto& u : updates) mean.add(full, u.tensors, u.weight);
    other.merge(mean);
    std::fill(global.begin(), global.end(), 1.0f);
    other.finish(globals, two_threads{});
    CHECK(all_right());
  }
}

TEST_CASE("weights that are denormal doubles count, and rounding is to nearest, in any mode") {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = submodel::full(net);
  const float a = 0.1f, b = 0.3f;
  const auto run = [&](double weight) {
    const std::vector<update<float>> updates{{full, {tensor_view<const float>(&a, {1})}, weight},
                                             {full, {tensor_view<const float>(&b, {1})}, weight}};
    float global = 1;
    subfed::average_cohort<float>(net, updates, {tensor_view<float>(&global, {1})});
    return global;
  };
  const float expected = run(1);
  for (const unsigned bits : {zeros, upward, zeros | upward}) {
    const other_mode mode(bits);
    CHECK(run(1e-310) == expected);
    CHECK(run(0.7) == expected);
  }
}

TEST_CASE("slices convert and scatters add denormal numbers in any mode") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  const other_mode mode(zeros);
  const std::vector<half> tiny{std::bit_cast<half>(std::uint16_t{1}), half(1)};
  std::vector<float> wide(2);
  subfed::slice(tensor_view<const half>(tiny.data(), {2}), full[subfed::tensor_id(0)],
                tensor_view<float>(wide.data(), {2}));
  CHECK(std::bit_cast<std::uint32_t>(wide[0]) == 0x33800000);
  std::vector<float> sums(2, std::bit_cast<float>(denormal));
  const std::vector<float> more(2, std::bit_cast<float>(denormal));
  subfed::scatter_add<float>({tensor_view<const float>(more.data(), {2})}, full,
                             {tensor_view<float>(sums.data(), {2})});
  CHECK(std::bit_cast<std::uint32_t>(sums[1]) == 2 * denormal);
  subfed::scatter_add(tensor_view<const float>(more.data(), {2}), full[subfed::tensor_id(0)],
                      tensor_view<float>(sums.data(), {2}));
  CHECK(std::bit_cast<std::uint32_t>(sums[0]) == 3 * denormal);
  const double weight = 3;
  const std::vector<double> weights(2, weight);
  subfed::element_weighted_average<float> mean(net);
  mean.add(full, {tensor_view<const float>(more.data(), {2})},
           {tensor_view<const double>(weights.data(), {2})});
  mean.finish({tensor_view<float>(sums.data(), {2})});
  CHECK(std::bit_cast<std::uint32_t>(sums[0]) == denormal);
}

TEST_CASE("a server's step is the same in any mode, in values and moments") {
  subfed::model net;
  const auto x = net.tensor("x", {3});
  const std::vector<submodel> all{submodel::full(net)};
  const auto step = [&](unsigned bits) {
    std::vector<float> global{std::bit_cast<float>(denormal), 1.0f, 0.1f};
    const tensor_views<float> globals{tensor_view<float>(global.data(), {3})};
    subfed::server_optimizer<float, subfed::server_adam> adam(net, {.lr = 1e-40});
    std::vector<std::uint64_t> out;
    const other_mode mode(bits);
    for (const float average : {1.0f, 0.3f}) {
      adam.begin({tensor_view<const float>(global.data(), {3})});
      global[1] = global[2] = average;
      adam.finish(subfed::held_elements(net, all), globals);
      for (const float value : global) out.push_back(std::bit_cast<std::uint32_t>(value));
    }
    for (const double m : adam.first_moment(x)) out.push_back(std::bit_cast<std::uint64_t>(m));
    for (const double v : adam.second_moment(x)) out.push_back(std::bit_cast<std::uint64_t>(v));
    return out;
  };
  const auto expected = step(0);
  CHECK(expected[0] == denormal);
  for (const unsigned bits : {zeros, upward, zeros | upward}) CHECK(step(bits) == expected);
}

TEST_CASE("FedDrop's similarities and probabilities are the same in any mode") {
  subfed::model net;
  const auto hidden = net.group("hidden", 4);
  const std::vector layers{linear(net, "a", {.in = 3, .out = hidden}),
                           linear(net, "b", {.in = hidden, .out = 2})};
  subfed::workload work(net);
  for (const auto& layer : layers) work.linear(layer);
  const subfed::flops_budget budget(subfed::expected_flops(net, work), 0.6);
  const auto optimised = [&](unsigned bits) {
    std::vector<std::vector<float>> old, own;
    subfed::random_stream stream(3, 0, 0, 0);
    const auto views = [&](std::vector<std::vector<float>>& values, double size) {
      std::vector<tensor_view<const float>> made;
      for (const auto& tensor : net.tensors()) {
        std::int64_t count = 1;
        for (const std::int64_t e : tensor.extents) count *= e;
        values.emplace_back();
        for (std::int64_t i = 0; i < count; ++i) {
          values.back().push_back(static_cast<float>(size * (stream.next_unit() - 0.5)));
        }
        made.emplace_back(values.back().data(), tensor.extents);
      }
      return tensor_views<const float>(made);
    };
    old.reserve(4), own.reserve(8);
    const auto before = views(old, 1e-39);
    const subfed::keep_probabilities keep(net, budget.constant_start());
    std::vector<subfed::trajectory<float>> clients;
    for (const double size : {1e-39, 0.3}) {
      clients.push_back({submodel::full(net), views(own, size), keep, size});
    }
    const other_mode mode(bits);
    const auto similarity = subfed::similarity_of<float>(net, before, clients);
    std::vector<std::uint64_t> out;
    for (std::size_t n = 0; n < similarity.nodes(); ++n) {
      for (const double s : similarity.triangle(n)) out.push_back(std::bit_cast<std::uint64_t>(s));
    }
    std::vector<subfed::keep_probabilities> probabilities(2, keep);
    const auto report =
        subfed::optimize_keep(similarity, budget, probabilities, {.iterations = 20});
    out.push_back(std::bit_cast<std::uint64_t>(report.penalised));
    out.push_back(std::bit_cast<std::uint64_t>(budget.constant_start()));
    for (const auto& client : probabilities) {
      for (const double p : client.values()) out.push_back(std::bit_cast<std::uint64_t>(p));
    }
    return out;
  };
  const auto expected = optimised(0);
  for (const unsigned bits : {zeros, upward, zeros | upward}) CHECK(optimised(bits) == expected);
}

TEST_CASE("what clients compute is the same in any mode: SCAFFOLD, FedProx, losses, moments") {
  subfed::model net;
  net.tensor("x", {1, 3});
  const float small = std::bit_cast<float>(denormal);
  const std::vector<float> a{small, 0.1f, 3.0f}, b{2 * small, 0.7f, -1.0f}, c{small, 0.3f, 0.2f};
  const auto view = [](const auto& values) {
    return tensor_view<const float>(values.data(), {1, 3});
  };
  const std::vector<std::int64_t> labels{1};
  const auto computed = [&](unsigned bits) {
    std::vector<std::uint64_t> out;
    std::vector<float> to(3);
    const tensor_view<float> written(to.data(), {1, 3});
    const auto keep = [&](const std::vector<double>& numbers) {
      for (const float x : to) out.push_back(std::bit_cast<std::uint32_t>(x));
      for (const double x : numbers) out.push_back(std::bit_cast<std::uint64_t>(x));
    };
    const other_mode mode(bits);
    to = c;
    subfed::correct_gradients<float>(net, {view(a)}, {view(b)}, {written});
    keep({});
    subfed::control_change<float>(net, {view(a)}, {view(b)}, {view(c)}, {.steps = 3, .lr = 0.7},
                                  {written});
    keep({});
    to = c;
    subfed::add_proximal<float>(net, 0.3, {view(a)}, {view(b)}, {written});
    keep({subfed::proximal_term<float>(net, 0.3, {view(a)}, {view(b)})});
    subfed::average_outputs<float>({view(a), view(b), view(c)}, written);
    keep({});
    keep({subfed::masked_cross_entropy<float>(view(a), labels, index_set(3, {0, 1}),
                                              subfed::absent_logits::zero, written)});
    keep({subfed::distillation_loss<float>(view(a), view(b), labels,
                                           {.alpha = 0.3, .temperature = 1.7}, written)});
    subfed::channel_moments moments(3), others(3);
    for (const auto& values : {a, b}) moments.add<float>(view(values));
    for (const auto& values : {b, c}) others.add<float>(view(values));
    moments.merge(others);
    keep(moments.mean());
    keep(moments.variance());
    keep(moments.unbiased_variance());
    return out;
  };
  const auto expected = computed(0);
  for (const unsigned bits : {zeros, upward, zeros | upward}) CHECK(computed(bits) == expected);
}

TEST_CASE("what systems compute of tensors is the same in any mode") {
  const float tiny = std::bit_cast<float>(denormal);
  const auto bits_of = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  subfed::model net;
  const auto nodes = net.group("g", 2);
  net.tensor("x", {nodes});
  const auto full = submodel::full(net);
  const std::vector<float> small(2, tiny), zero(2, 0.0f), ones(2, 1.0f);
  const auto view = [](const std::vector<float>& of) {
    return tensor_views<const float>{tensor_view<const float>(of.data(), {2})};
  };
  std::vector<float> out(2);
  const tensor_view<float> written(out.data(), {2});
  const other_mode mode(zeros);

  subfed::server_optimizer<float, subfed::server_sgd> sgd(net, {.lr = 0.5});
  sgd.begin(view(small));
  out = {std::bit_cast<float>(3 * denormal), std::bit_cast<float>(denormal)};
  sgd.finish(subfed::held_elements(net, std::vector<submodel>{full}), {written});
  CHECK(bits_of(out[0]) == 2 * denormal);
  CHECK(bits_of(out[1]) == denormal);

  const std::vector<subfed::trajectory<float>> moved{
      {full, view(small), subfed::keep_probabilities(net), 1}};
  CHECK(std::bit_cast<std::uint64_t>(
            subfed::similarity_of<float>(net, view(zero), moved)(0, 0, 0)) != 0);

  subfed::average_outputs<float>(view(small), written);
  CHECK(bits_of(out[0]) == denormal);

  std::fill(out.begin(), out.end(), 0.0f);
  subfed::add_proximal<float>(net, 1, view(small), view(zero), {written});
  CHECK(bits_of(out[0]) == denormal);
  CHECK(std::bit_cast<std::uint64_t>(
            subfed::proximal_term<float>(net, 1, view(small), view(zero))) != 0);

  std::fill(out.begin(), out.end(), tiny);
  subfed::correct_gradients<float>(net, view(zero), view(small), {written});
  CHECK(bits_of(out[0]) == 2 * denormal);
  subfed::control_change<float>(net, view(small), view(zero), view(zero), {.steps = 1, .lr = 1},
                                {written});
  CHECK(bits_of(out[0]) == denormal);

  subfed::channel_moments moments(2);
  moments.add(tensor_view<const float>(small.data(), {1, 2}));
  CHECK(std::bit_cast<std::uint64_t>(moments.mean()[0]) != 0);

  // A gradient that only a denormal number can hold: exp(-90) / 2.
  const std::vector<float> logits{90, 0, 90, 0}, same{90, 0, 90, 0};
  const std::vector<std::int64_t> labels{0, 0};
  std::vector<float> gradient(4);
  const tensor_view<const float> scores(logits.data(), {2, 2});
  const tensor_view<float> slopes(gradient.data(), {2, 2});
  subfed::masked_cross_entropy<float>(scores, labels, subfed::index_set::full(2),
                                      subfed::absent_logits::zero, slopes);
  CHECK(bits_of(gradient[1]) != 0);
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  subfed::distillation_loss<float>(scores, tensor_view<const float>(same.data(), {2, 2}), labels,
                                   {.alpha = 0}, slopes);
  CHECK(bits_of(gradient[1]) != 0);
}

#endif
