// SPDX-License-Identifier: MIT
/// Slice, scatter_add and average on a device beside copies of as many bytes, and beside torch where
/// it is present: one line a case.
#include "cases.hpp"
#include "peer.hpp"

#include <cuda/gpu/device_memory.cuh>
#include <subfed/cuda.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using subfed::tensor_view;

/// Milliseconds of a launch on the device, median.
template <class F>
double launch_ms(cudaStream_t stream, int runs, F&& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  gpu::check(cudaEventCreate(&begin));
  gpu::check(cudaEventCreate(&end));
  std::vector<double> times;
  launch();
  for (int i = 0; i < runs; ++i) {
    gpu::check(cudaEventRecord(begin, stream));
    launch();
    gpu::check(cudaEventRecord(end, stream));
    gpu::check(cudaEventSynchronize(end));
    float ms = 0;
    gpu::check(cudaEventElapsedTime(&ms, begin, end));
    times.push_back(static_cast<double>(ms));
  }
  gpu::check(cudaEventDestroy(begin));
  gpu::check(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

std::vector<std::vector<std::int64_t>> shapes_of(const subfed::submodel& sub) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    out.push_back(sub.extents(subfed::tensor_id(t)));
  }
  return out;
}

/// All tensors in one allocation, each at a multiple of 256 bytes.
struct block {
  explicit block(const std::vector<std::vector<std::int64_t>>& shapes) : memory(room(shapes)) {
    gpu::check(cudaMemset(memory.data(), 0, memory.size() * sizeof(float)));
    std::size_t at = 0;
    for (const auto& s : shapes) {
      views.emplace_back(memory.data() + at, s);
      at += padded(count(s));
      bytes += count(s) * sizeof(float);
    }
  }
  static std::size_t count(const std::vector<std::int64_t>& shape) {
    std::size_t n = 1;
    for (const std::int64_t e : shape) n *= static_cast<std::size_t>(e);
    return n;
  }
  static std::size_t padded(std::size_t n) { return (n + 63) / 64 * 64; }
  static std::size_t room(const std::vector<std::vector<std::int64_t>>& shapes) {
    std::size_t n = 0;
    for (const auto& s : shapes) n += padded(count(s));
    return n;
  }
  gpu::memory<float> memory;
  std::vector<tensor_view<float>> views;
  std::size_t bytes = 0;
};

/// GB/s of a copy that reads and writes so many bytes together.
double copy_speed(cudaStream_t stream, double moved, int runs) {
  const std::size_t most = std::size_t{4} << 30;
  const std::size_t half = (std::min)(static_cast<std::size_t>(moved / 2), most);
  const gpu::memory<char> from(half), to(half);
  const double ms = launch_ms(stream, runs, [&] {
    gpu::check(cudaMemcpyAsync(to.data(), from.data(), half, cudaMemcpyDeviceToDevice, stream));
  });
  return 2 * static_cast<double>(half) / ms / 1e6;
}

void print_row(const std::string& what, const std::string& name, double moved, double ms,
               double copied, double torch_ms) {
  const double speed = moved / ms / 1e6;
  std::printf("%-12s %-44s %8.1f MB %9.3f ms %8.1f GB/s %8.1f GB/s %6.2f", what.c_str(),
              name.c_str(), moved / 1e6, ms, speed, copied, speed / copied);
  if (torch_ms > 0) {
    std::printf(" %9.3f ms %7.1f x", torch_ms, torch_ms / ms);
  } else {
    std::printf(" %12s %9s", "-", "-");
  }
  std::printf("\n");
  std::fflush(stdout);
}

void run_case(const std::string& model, const std::string& scheme, std::int64_t clients, int runs) {
  const gpu::stream stream;
  const subfed::model net = bench::device::model_called(model);
  const auto cohort = bench::device::cohort_of(net, scheme, clients);
  const block globals(shapes_of(subfed::submodel::full(net)));
  const std::string called = model + ", " + scheme + ", " + std::to_string(clients) + " clients";

  // Clients share the tensors of earlier ones of the same size once the memory is full: the caches
  // hold neither. Only the first ones, with tensors of their own, are sliced.
  std::size_t free = 0, total = 0;
  gpu::check(cudaMemGetInfo(&free, &total));
  std::size_t left = free / 10 * 6;
  std::vector<block> blocks;
  std::map<std::int64_t, std::size_t> by_size;
  std::vector<subfed::update<float>> updates;
  std::vector<subfed::cuda::client_tensors<float>> own;
  double cut_bytes = 0, update_bytes = 0;
  for (const auto& sub : cohort) {
    const auto shapes = shapes_of(sub);
    const std::size_t bytes = block::room(shapes) * sizeof(float);
    const auto known = by_size.find(sub.size());
    std::size_t at = blocks.size();
    if (bytes <= left) {
      left -= bytes;
      blocks.emplace_back(shapes);
      by_size[sub.size()] = at;
      own.push_back({sub, blocks[at].views});
      cut_bytes += static_cast<double>(blocks[at].bytes);
    } else if (known != by_size.end()) {
      at = known->second;
    } else {
      std::printf("%s: not enough memory on this device\n", called.c_str());
      return;
    }
    update_bytes += static_cast<double>(blocks[at].bytes);
    std::vector<tensor_view<float>> views;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      views.emplace_back(blocks[at].views[t].data_handle(), shapes[t]);
    }
    updates.push_back({sub, views, 1.0});
  }

  const auto cut = [&] {
    auto call = subfed::cuda::prepare_slice<float>(globals.views, own);
    subfed::cuda::workspace memory(call.bytes());
    call.upload(memory, stream);
    stream.wait();
    const double ms = launch_ms(stream, runs, [&] { call.launch(stream); });
    double torch_ms = 0;
#if defined(SUBFED_BENCH_TORCH)
    for (std::size_t c = 0; own.size() <= 10 && c < own.size(); ++c) {
      torch_ms += bench::torch_slice_ms(globals.views, own[c].sub, 5);
    }
#endif
    print_row("slice", called, 2 * cut_bytes, ms, copy_speed(stream, 2 * cut_bytes, runs),
              torch_ms);
  };
  cut();

  {
    auto call = subfed::cuda::prepare_scatter<float>(own[0].tensors, own[0].sub, globals.views);
    subfed::cuda::workspace memory(call.bytes());
    call.upload(memory, stream);
    stream.wait();
    const double moved = 2.0 * static_cast<double>(blocks[0].bytes);
    const double ms = launch_ms(stream, runs, [&] { call.launch(stream); });
    print_row("scatter", called + ", first", moved, ms, copy_speed(stream, moved, runs), 0);
  }

  auto mean = subfed::cuda::prepare_average<float>(net, updates, globals.views);
  subfed::cuda::workspace memory(mean.bytes());
  mean.upload(memory, stream);
  stream.wait();
  const double ms = launch_ms(stream, runs, [&] { mean.launch(stream); });
  const double moved = update_bytes + static_cast<double>(mean.report(stream).held) * sizeof(float);
  double torch_ms = 0;
#if defined(SUBFED_BENCH_TORCH)
  torch_ms = bench::torch_average_ms(net, updates, globals.views, 3);
#endif
  print_row("average", called, moved, ms, copy_speed(stream, moved, runs), torch_ms);
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("subfed: the GPU benchmarks are skipped: no CUDA device\n");
    return 77;
  }
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  cudaDeviceProp card{};
  gpu::check(cudaGetDeviceProperties(&card, 0));
  std::printf("%s, float; medians of %d runs; GB/s: bytes read and written\n", card.name,
              quick ? 3 : 20);
  std::printf("%-12s %-44s %11s %12s %13s %13s %6s %12s %9s\n", "", "case", "moved", "time",
              "speed", "device copy", "ratio", "torch", "faster");
  for (const std::string model : {"PreResNet18", "Transformer", "1e9"}) {
    if (quick && model == "1e9") continue;
    for (const std::string scheme : {"rolling", "random", "static"}) {
      for (const std::int64_t clients : {std::int64_t{1}, std::int64_t{10}, std::int64_t{100}}) {
        run_case(model, scheme, clients, quick ? 3 : 20);
      }
    }
  }
}
