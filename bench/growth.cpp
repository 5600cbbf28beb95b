// SPDX-License-Identifier: MIT
/// How time and memory grow with clients and parameters.
#include "ceiling.hpp"
#include "measure.hpp"
#include "register.hpp"
#include "workload.hpp"

#include <subfed/subfed.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

namespace {
std::atomic<std::int64_t> allocated{0}, peak{0};

// The size stands in front of the block.
constexpr std::size_t header = alignof(std::max_align_t);

void* allocate(std::size_t bytes) {
  auto* const block = static_cast<std::byte*>(std::malloc(bytes + header));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = bytes;
  const std::int64_t now = allocated += static_cast<std::int64_t>(bytes);
  std::int64_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
  return block + header;
}

void release(void* p) noexcept {
  if (p == nullptr) return;
  std::byte* const block = static_cast<std::byte*>(p) - header;
  allocated -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block));
  std::free(block);
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }

namespace bench {
namespace {

/// Runs the job once and returns the most memory that it held at a time, in MB.
template <class F>
double peak_megabytes(F&& job) {
  const std::int64_t before = allocated;
  peak = before;
  job();
  return static_cast<double>(peak - before) / 1e6;
}

template <class Job>
void grown(benchmark::State& state, workload<float>& work, Job job) {
  const std::int64_t bytes = work.client_bytes + work.held_bytes;
  measure(state, static_cast<double>(bytes), ceiling(bytes, 1), job);
  state.counters["peak_MB"] = peak_megabytes(job);
  state.counters["parameters"] =
      static_cast<double>(work.globals.bytes()) / static_cast<double>(sizeof(float));
}

void one_pass(benchmark::State& state, const case_key& key) {
  workload<float>& work = workload_of<float>(key);
  grown(state, work,
        [&] { subfed::average_cohort<float>(work.net, work.updates, work.globals.views()); });
}

void streaming(benchmark::State& state, const case_key& key) {
  workload<float>& work = workload_of<float>(key);
  grown(state, work, [&] {
    subfed::selective_average<float> mean(work.net);
    for (const auto& u : work.updates) mean.add(u.sub, u.tensors, u.weight);
    mean.finish(work.globals.views());
  });
}

/// Clients that send what has to be left out: of a tensor of 2,000,000 floats 999 in 1000 elements are
/// NaN, at other places for each client, so that nobody's sets are like another's.
void hostile(benchmark::State& state, std::int64_t clients, bool stream) {
  constexpr std::int64_t elements = 2'000'000;
  subfed::model net;
  net.tensor("x", {net.group("g", elements)});
  const subfed::submodel all = subfed::submodel::full(net);
  std::vector<std::vector<float>> sent;
  for (std::int64_t c = 0; c < clients; ++c) {
    sent.emplace_back(elements, std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = c; i < elements; i += 1000) sent.back()[static_cast<std::size_t>(i)] = 1;
  }
  std::vector<subfed::update<float>> updates;
  for (const auto& values : sent) {
    updates.push_back({all, {subfed::tensor_view<const float>(values.data(), {elements})}});
  }
  std::vector<float> global(elements);
  const subfed::tensor_views<float> globals{subfed::tensor_view<float>(global.data(), {elements})};
  const subfed::average_options options{.on_non_finite = subfed::non_finite::skip_element};
  const auto job = [&] {
    if (!stream) {
      subfed::average_cohort<float>(net, updates, globals, options);
      return;
    }
    subfed::selective_average<float> mean(net, options);
    for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
    mean.finish(globals);
  };
  const std::int64_t bytes = (clients + 1) * elements * static_cast<std::int64_t>(sizeof(float));
  measure(state, static_cast<double>(bytes), ceiling(bytes, 1), job);
  state.counters["peak_MB"] = peak_megabytes(job);
  state.counters["parameters"] = static_cast<double>(elements);
}

void add(const std::string& axis, const std::string& value, const case_key& key) {
  for (const bool stream : {false, true}) {
    const std::string name = "growth/" + axis + "/" + value + "/" + key.scheme + "/" +
                             (stream ? "streaming" : "one pass");
    benchmark::RegisterBenchmark(
        name.c_str(),
        [key, stream](benchmark::State& s) { stream ? streaming(s, key) : one_pass(s, key); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

void register_growth() {
  for (const char* scheme : {"rolling", "random"}) {
    for (const std::int64_t clients : {10, 100, 1000, 10000}) {
      add("clients", std::to_string(clients), {"1e6", scheme, clients, 1});
    }
  }
  for (const std::int64_t clients : {2, 12, 50}) {
    for (const bool stream : {false, true}) {
      const std::string name =
          "growth/hostile/" + std::to_string(clients) + (stream ? "/streaming" : "/one pass");
      benchmark::RegisterBenchmark(
          name.c_str(), [clients, stream](benchmark::State& s) { hostile(s, clients, stream); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  for (const char* parameters : {"1e5", "1e6", "1e7", "1e8", "1e9"}) {
    add("parameters", parameters, {parameters, "rolling", 10, 1});
  }
}

}  // namespace bench
