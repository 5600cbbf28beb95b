// SPDX-License-Identifier: MIT
/// The cases of slice and average: models, schemes, cohorts, element types and threads, each beside
/// its ceiling, and beside the peers for cohorts of 10.
#include "ceiling.hpp"
#include "measure.hpp"
#include "peers/peer.hpp"
#include "register.hpp"
#include "workload.hpp"

#include <subfed/average.hpp>
#include <subfed/subfed.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bench {
namespace {

/// Runs f with an executor of so many threads.
template <class F>
void with_executor(int threads, F&& f) {
#if defined(_OPENMP)
  if (threads > 1) return f(subfed::openmp{threads});
#endif
  f(subfed::serial{});
}

template <class T>
void slice_case(benchmark::State& state, const case_key& key) {
  workload<T>& work = workload_of<T>(key);
  with_executor(key.threads, [&](auto executor) {
    measure(state, 2.0 * static_cast<double>(work.client_bytes),
            ceiling(2 * work.client_bytes, key.threads), [&] {
              for (std::size_t c = 0; c < work.cohort.size(); ++c) {
                subfed::slice<T>(work.globals.views(), work.cohort[c], work.locals(c).views(),
                                 executor);
              }
            });
  });
}

/// Sums in fixed point instead of doubles.
subfed::average_options fixed_options(const case_key& key) {
  return {.sums = subfed::fixed_point{.bound = 8, .clients = key.clients}};
}

template <class T>
void average_case(benchmark::State& state, const case_key& key,
                  const subfed::average_options& options) {
  workload<T>& work = workload_of<T>(key);
  const std::int64_t bytes = work.client_bytes + work.held_bytes;
  with_executor(key.threads, [&](auto executor) {
    measure(state, static_cast<double>(bytes), ceiling(bytes, key.threads), [&] {
      subfed::average_cohort<T>(work.net, work.updates, work.globals.views(), options, executor);
    });
  });
}

/// So many updates a call.
template <class T>
void streaming_case(benchmark::State& state, const case_key& key,
                    const subfed::average_options& options, std::size_t group = 1) {
  workload<T>& work = workload_of<T>(key);
  const std::int64_t bytes = work.client_bytes + work.held_bytes;
  subfed::selective_average<T> mean(work.net, options);  // kept from round to round
  measure(state, static_cast<double>(bytes), ceiling(bytes, key.threads), [&] {
    mean.clear();
    const std::span<const subfed::update<T>> all(work.updates);
    for (std::size_t from = 0; from < all.size(); from += group) {
      mean.add(all.subspan(from, std::min(group, all.size() - from)));
    }
    mean.finish(work.globals.views());
  });
}

/// Median (trim 1/2) or trimmed mean of each parameter's holders.
template <class T>
void robust_case(benchmark::State& state, const case_key& key, double trim) {
  workload<T>& work = workload_of<T>(key);
  const std::int64_t bytes = work.client_bytes + work.held_bytes;
  with_executor(key.threads, [&](auto executor) {
    measure(state, static_cast<double>(bytes), ceiling(bytes, key.threads), [&] {
      subfed::robust_cohort<T>(work.net, work.updates, work.globals.views(),
                               {.trim = trim, .on_few = subfed::few_holders::mean}, executor);
    });
  });
}

/// All updates of the cohort, which are within the bound: the norm is worked out, nothing is written.
template <class T>
void clip_case(benchmark::State& state, const case_key& key) {
  workload<T>& work = workload_of<T>(key);
  std::vector<std::vector<std::vector<T>>> sent;
  for (std::size_t c = 0; c < work.cohort.size(); ++c) {
    auto& own = sent.emplace_back();
    for (const auto& view : work.locals(c).views()) {
      own.emplace_back(view.data_handle(), view.data_handle() + view.size());
      for (T& x : own.back()) x = T(static_cast<float>(x) + 1);  // differences that are not 0
    }
  }
  const std::int64_t bytes = 2 * work.client_bytes;
  measure(state, static_cast<double>(bytes), ceiling(bytes, key.threads), [&] {
    for (std::size_t c = 0; c < work.cohort.size(); ++c) {
      std::vector<subfed::tensor_view<const T>> views;
      for (std::size_t t = 0; t < sent[c].size(); ++t) {
        views.emplace_back(sent[c][t].data(), work.cohort[c].extents(subfed::tensor_id(t)));
      }
      subfed::clip_update<T>(work.cohort[c], subfed::tensor_views<const T>(views), 1e9,
                             work.locals(c).views());
    }
  });
}

void peer_case(benchmark::State& state, const case_key& key, const peer_entry& which,
               void (peer::*job)(), bool slicing) {
  workload<float>& work = workload_of<float>(key);
  set_torch_threads(key.threads);
  const auto made = which.make(work);
  const std::int64_t bytes = slicing ? 2 * work.client_bytes : work.client_bytes + work.held_bytes;
  measure(state, static_cast<double>(bytes), ceiling(bytes, key.threads),
          [&] { (made.get()->*job)(); });
}

std::string name_of(const char* job, const case_key& key, const char* element,
                    const std::string& who) {
  return std::string(job) + "/" + key.model + "/" + std::to_string(key.clients) + "/" + key.scheme +
         "/" + element + "/" + std::to_string(key.threads) + "/" + who;
}

template <class F>
void add(const std::string& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), f)->UseManualTime()->Unit(benchmark::kMillisecond);
}

template <class T>
void add_own(const case_key& key, const char* element) {
  add(name_of("slice", key, element, "subfed"),
      [key](benchmark::State& s) { slice_case<T>(s, key); });
  add(name_of("average", key, element, "subfed"),
      [key](benchmark::State& s) { average_case<T>(s, key, {}); });
  if (key.threads == 1) {
    add(name_of("average", key, element, "subfed streaming"),
        [key](benchmark::State& s) { streaming_case<T>(s, key, {}); });
    if (key.clients > 10) return;
    for (const std::size_t group : {std::size_t{4}, std::size_t{10}}) {
      add(name_of("average", key, element, "subfed streaming by " + std::to_string(group)),
          [key, group](benchmark::State& s) { streaming_case<T>(s, key, {}, group); });
    }
    add(name_of("average", key, element, "subfed fixed point"),
        [key](benchmark::State& s) { average_case<T>(s, key, fixed_options(key)); });
    add(name_of("average", key, element, "subfed streaming fixed point"),
        [key](benchmark::State& s) { streaming_case<T>(s, key, fixed_options(key)); });
    add(name_of("average", key, element, "subfed streaming fixed point by 10"),
        [key](benchmark::State& s) { streaming_case<T>(s, key, fixed_options(key), 10); });
    if (key.model == "MLP-100M") return;  // minutes
    add(name_of("average", key, element, "subfed median"),
        [key](benchmark::State& s) { robust_case<T>(s, key, 0.5); });
    add(name_of("average", key, element, "subfed trimmed mean"),
        [key](benchmark::State& s) { robust_case<T>(s, key, 0.2); });
    add(name_of("average", key, element, "subfed clipping"),
        [key](benchmark::State& s) { clip_case<T>(s, key); });
  }
}

void add_peers(const case_key& key) {
  for (const peer_entry& which : peers()) {
    // Of these only LibTorch runs on several threads. Windows of one element each are no use.
    const bool torch = which.name.find("LibTorch") == 0;
    if (key.threads > 1 && !torch) continue;
    if (key.scheme == "random" && which.name == "LibTorch windows") continue;
    if (key.model != "PreResNet18" && which.name == "LibTorch as released") continue;  // minutes
    add(name_of("slice", key, "float", which.name),
        [key, which](benchmark::State& s) { peer_case(s, key, which, &peer::slice, true); });
    add(name_of("average", key, "float", which.name),
        [key, which](benchmark::State& s) { peer_case(s, key, which, &peer::average, false); });
  }
}

}  // namespace

void register_cases() {
  for (const int threads : {1, 2}) {
    add("memory/reading/" + std::to_string(threads), [threads](benchmark::State& state) {
      const reading all(threads);
      measure(state, [&] { benchmark::DoNotOptimize(all()); });
      state.counters["GB_s"] = static_cast<double>(reading::bytes) / state.counters["ms"] / 1e6;
    });
  }
  struct {
    const char* model;
    std::int64_t most_clients;  // as many as take seconds
  } const models[] = {
      {"PreResNet18", 100}, {"VGG-9", 1000}, {"Transformer", 1000}, {"MLP-100M", 10}};
  for (const auto& [model, most_clients] : models) {
    for (const std::int64_t clients : {10, 100, 1000}) {
      if (clients > most_clients) continue;
      for (const char* scheme : {"rolling", "static", "random", "ensemble"}) {
        // Its layers are no multiples of members.
        if (std::string(model) == "MLP-100M" && std::string(scheme) == "ensemble") continue;
        for (const int threads : {1, 2}) {
          const case_key key{model, scheme, clients, threads};
          add_own<float>(key, "float");
          if (clients == 10 && std::string(model) != "MLP-100M") add_peers(key);
        }
        add_own<subfed::half>({model, scheme, clients, 1}, "half");
      }
    }
  }
}

}  // namespace bench
