// SPDX-License-Identifier: MIT
/// What comes before the bytes move: index sets, submodels, plans.
#include "measure.hpp"
#include "register.hpp"
#include "workload.hpp"

#include <subfed/subfed.hpp>

#include <string>

namespace bench {
namespace {

template <class Scheme>
void add_sets(const char* name, const Scheme& scheme) {
  for (const std::int64_t extent : {64, 1024, 16384, 262144, 1000000}) {
    const std::string full = std::string("index_set/") + name + "/" + std::to_string(extent);
    benchmark::RegisterBenchmark(full.c_str(), [scheme, extent](benchmark::State& state) {
      std::uint64_t round = 0;
      for (auto _ : state) {
        benchmark::DoNotOptimize(
            scheme(subfed::draw_request{7, round++, 3, "hidden", extent, 0.25}));
      }
      state.counters["ns_a_node"] = benchmark::Counter(
          static_cast<double>(extent) / 4 * 1e-9 * static_cast<double>(state.iterations()),
          benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    });
  }
}

template <class F>
void add_planning(const std::string& name, F f) {
  benchmark::RegisterBenchmark(("planning/" + name).c_str(), [f](benchmark::State& state) {
    const subfed::model net = make_model("PreResNet18");
    f(state, net);
  })->Unit(benchmark::kMicrosecond);
}

template <class Scheme>
void add_scheme(const std::string& name, const Scheme& scheme) {
  add_planning("draw/" + name, [scheme](benchmark::State& state, const subfed::model& net) {
    std::uint64_t round = 0;
    for (auto _ : state) {
      benchmark::DoNotOptimize(draw(net, scheme, {.round = round++, .capacity = 0.25}));
    }
  });
  add_planning("plan/" + name, [scheme](benchmark::State& state, const subfed::model& net) {
    const auto sub = draw(net, scheme, {.round = 17, .capacity = 0.25});
    for (auto _ : state) benchmark::DoNotOptimize(sub.planned());
  });
  for (const bool planned : {false, true}) {
    add_planning((planned ? "slice a planned 1-16 submodel/" : "slice a 1-16 submodel/") + name,
                 [scheme, planned](benchmark::State& state, const subfed::model& net) {
                   auto sub = draw(net, scheme, {.round = 17, .capacity = 1.0 / 16});
                   if (planned) sub = sub.planned();
                   const tensors<float> globals(shapes_of(net), 1), locals(shapes_of(sub), 1);
                   const subfed::tensor_views<const float> from(globals.views());
                   const subfed::tensor_views<float> to(locals.views());
                   for (auto _ : state) subfed::slice<float>(from, sub, to);
                 });
  }
}

}  // namespace

void register_planning() {
  add_sets("rolling", subfed::rolling{});
  add_sets("static", subfed::prefix{});
  add_sets("random", subfed::random_subset{});
  add_sets("ensemble", subfed::simple_ensemble{});
  add_scheme("rolling", subfed::rolling{});
  add_scheme("static", subfed::prefix{});
  add_scheme("random", subfed::random_subset{});
}

}  // namespace bench
