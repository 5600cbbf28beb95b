// SPDX-License-Identifier: MIT
#include <subfed/cuda/average_cohort.cuh>
#include <subfed/cuda/selective_average.cuh>
#include <subfed/cuda/slice.cuh>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

using work = std::vector<std::function<void()>>;

struct CUstream_st {
  work waiting = {};
  bool captures = false;
  work captured = {};
};
struct CUevent_st {
  bool done = true;
};
struct CUgraph_st {
  work steps;
};
struct CUgraphExec_st {
  work steps;
};

namespace {

/// Makes the work of a launch from its arguments, which are copied.
using launcher = std::function<std::function<void()>(unsigned, void**)>;

CUstream_st default_stream;
std::map<const char*, std::size_t> device_memory;  // size by address

CUstream_st& seen(cudaStream_t stream) { return stream == nullptr ? default_stream : *stream; }

cudaError_t put(cudaStream_t stream, std::function<void()> step) {
  CUstream_st& s = seen(stream);
  (s.captures ? s.captured : s.waiting).push_back(std::move(step));
  return cudaSuccess;
}

cudaError_t run(cudaStream_t stream) {
  for (const auto& step : std::exchange(seen(stream).waiting, {})) step();
  return cudaSuccess;
}

template <class A, class B>
std::pair<const void* const, launcher> entry(void (*kernel)(A, B)) {
  return {reinterpret_cast<const void*>(kernel), [kernel](unsigned blocks, void** arguments) {
            auto a = *static_cast<std::remove_const_t<A>*>(arguments[0]);
            auto b = *static_cast<std::remove_const_t<B>*>(arguments[1]);
            return [=] {
              for (unsigned block = 0; block < blocks; ++block) {
                blockIdx.x = block;
                for (int t = 0; t < subfed::cuda::detail::threads_a_block; ++t) {
                  threadIdx.x.number = t;
                  kernel(a, b);
                }
              }
            };
          }};
}

template <class E>
void add_kernels(std::map<const void*, launcher>& to) {
  namespace kernels = subfed::cuda::detail;
  to.insert(entry(&kernels::copy_kernel<E, E, kernels::assign>));
  to.insert(entry(&kernels::copy_kernel<E, E, kernels::add>));
  to.insert(entry(&kernels::copy_kernel<E, double, kernels::accumulate>));
  to.insert(entry(&kernels::average_kernel<E>));
}

const std::map<const void*, launcher>& all_kernels() {
  static const std::map<const void*, launcher> out = [] {
    std::map<const void*, launcher> made;
    made.insert(entry(&subfed::cuda::detail::clear_kernel<double>));
    add_kernels<float>(made);
    add_kernels<subfed::cuda::detail::stored16<10>>(made);
    add_kernels<subfed::cuda::detail::stored16<7>>(made);
    return made;
  }();
  return out;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorInvalidValue ? "invalid argument" : "another error";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) {
  std::strcpy(out->name, "none: the host stands in for it");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* at) {
  const auto* const p = static_cast<const char*>(at);
  const auto after = device_memory.upper_bound(p);
  const bool found =
      after != device_memory.begin() && p < std::prev(after)->first + std::prev(after)->second;
  *out = {found ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, 0};
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  *out = std::aligned_alloc(256, (bytes / 256 + 1) * 256);
  std::memset(*out, 0xAB, bytes);
  device_memory[static_cast<const char*>(*out)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {  // does not wait, so that sanitizers see what the work left reads
  device_memory.erase(static_cast<const char*>(p));
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  *out = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  run(nullptr);
  if (bytes != 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return put(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  run(nullptr);
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return put(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return run(stream); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->done = false;
  return put(stream, [event] { event->done = true; });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* out) {
  *out = seen(stream).captures ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  seen(stream).captures = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  seen(stream).captures = false;
  *out = new CUgraph_st{std::exchange(seen(stream).captured, {})};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  *out = new CUgraphExec_st{graph->steps};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const auto& step : graph->steps) put(stream, step);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3, void** arguments, std::size_t,
                             cudaStream_t stream) {
  const auto found = all_kernels().find(kernel);
  if (found == all_kernels().end()) {
    std::printf("a kernel is launched that tests/cuda/standin/runtime.cpp does not list\n");
    std::abort();
  }
  return put(stream, found->second(blocks.x, arguments));
}
