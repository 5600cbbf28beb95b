// SPDX-License-Identifier: MIT
/// Memory for what calls upload, allocated once, before the hot path.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/cuda/detail/packed_arrays.hpp>
#include <subfed/cuda/error.cuh>
#include <subfed/detail/internals.hpp>
#include <subfed/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace subfed::inline v0::cuda {

namespace detail {

inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

struct free_device {
  void operator()(void* p) const noexcept { static_cast<void>(cudaFree(p)); }
};
struct free_host {
  void operator()(void* p) const noexcept { static_cast<void>(cudaFreeHost(p)); }
};
struct destroy_event {
  void operator()(cudaEvent_t e) const noexcept { static_cast<void>(cudaEventDestroy(e)); }
};

/// Where an upload is, and whether the workspace still keeps it.
struct uploaded {
  std::byte* data = nullptr;
  std::shared_ptr<const std::uint64_t> generation = nullptr;
  std::uint64_t made_in = 0;
  bool is_kept() const noexcept { return generation != nullptr && *generation == made_in; }
};

}  // namespace detail

/// Holds the plans of calls: a number of bytes of device memory, and as many of pinned host memory
/// from which they are uploaded. One workspace serves one device and, between two resets, one
/// stream.
///
/// Plans are kept until reset() or the end of the workspace; a call whose plan is gone refuses to be
/// launched. A graph that has captured launches needs them as long as it is launched.
class workspace {
 public:
  /// On the current device.
  ///
  /// Throws  cuda_error.
  /// Cost    The only allocations of the CUDA headers.
  explicit workspace(std::size_t bytes) : capacity_(bytes), device_(detail::current_device()) {
    void* p = nullptr;
    detail::check(cudaMalloc(&p, rounded(bytes) + unit), "cudaMalloc");
    device_memory_.reset(p);
    detail::check(cudaMallocHost(&p, rounded(bytes) + unit), "cudaMallocHost");
    host_memory_.reset(p);
    cudaEvent_t e = nullptr;
    detail::check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    last_upload_.reset(e);
  }
  workspace(workspace&&) = default;
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  workspace& operator=(workspace&&) = delete;
  /// Pre: the stream has finished all launches.
  ~workspace() {
    if (generation_ != nullptr) ++*generation_;
  }

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t used() const noexcept { return used_; }

  /// Forgets all plans. Pre: launches on the stream so far are done, or the next upload is on the same
  /// stream.
  ///
  /// Throws  error while an upload is in progress: nothing here waits for a device.
  void reset() {
    const cudaError_t state = used_ == 0 ? cudaSuccess : cudaEventQuery(last_upload_.get());
    if (state == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      subfed::detail::fail(
          "subfed: cuda: the workspace is reset while an upload from it is in progress: "
          "synchronise "
          "the stream first, or take another workspace");
    }
    detail::check(state, "cudaEventQuery");
    ++*generation_;
    used_ = 0;
  }

 private:
  friend struct subfed::detail::internals;

  /// Copies packed arrays to the device, in the order of the stream.
  ///
  /// Throws  error when too little room is left, on another device or stream than before, or while
  ///         the stream is captured.
  detail::uploaded upload(const detail::packed_arrays& from, cudaStream_t stream) {
    check_use(from.size(), stream);
    stream_ = stream;
    auto* const host = static_cast<std::byte*>(host_memory_.get()) + used_;
    auto* const device = static_cast<std::byte*>(device_memory_.get()) + used_;
    if (from.size() != 0) {
      std::memcpy(host, from.data(), from.size());
      detail::check(cudaMemcpyAsync(device, host, from.size(), cudaMemcpyHostToDevice, stream),
                    "cudaMemcpyAsync");
      used_ += rounded(from.size());
      detail::check(cudaEventRecord(last_upload_.get(), stream), "cudaEventRecord");
    }
    return {device, generation_, *generation_};
  }

  static constexpr std::size_t unit = 256;
  static constexpr std::size_t rounded(std::size_t n) noexcept {
    return (n + unit - 1) / unit * unit;
  }

  void check_use(std::size_t bytes, cudaStream_t stream) const {
    const int device = detail::current_device();
    if (device != device_) {
      subfed::detail::fail("subfed: cuda: the workspace is on device " + std::to_string(device_) +
                           ", but the current device is " + std::to_string(device));
    }
    if (used_ != 0 && stream != stream_) {
      subfed::detail::fail("subfed: cuda: the workspace is in use on another stream: reset it");
    }
    if (bytes > rounded(capacity_) - used_) {
      subfed::detail::fail("subfed: cuda: the plan takes " + std::to_string(bytes) +
                           " bytes, but of the workspace's " + std::to_string(capacity_) +
                           " bytes only " + std::to_string(rounded(capacity_) - used_) +
                           " are free: reset it, or use a larger one");
    }
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    detail::check(cudaStreamIsCapturing(stream, &capturing), "cudaStreamIsCapturing");
    if (capturing != cudaStreamCaptureStatusNone) {
      subfed::detail::fail(
          "subfed: cuda: a plan is uploaded while the stream is captured: upload first, capture "
          "the "
          "launch");
    }
  }

  std::size_t capacity_;
  int device_;
  std::size_t used_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<void, detail::free_device> device_memory_;
  std::unique_ptr<void, detail::free_host> host_memory_;
  std::unique_ptr<CUevent_st, detail::destroy_event> last_upload_;
  std::shared_ptr<std::uint64_t> generation_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace subfed::inline v0::cuda
