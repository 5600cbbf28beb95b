// SPDX-License-Identifier: MIT
/// Device memory for the GPU tests and benchmarks.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/cuda/error.cuh>
#include <subfed/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpu {

inline void check(cudaError_t code) { subfed::cuda::detail::check(code, "a call of the test"); }

/// Elements on the device.
template <class T>
class memory {
 public:
  explicit memory(std::size_t elements) : size_(elements) {
    void* p = nullptr;
    check(cudaMalloc(&p, elements * sizeof(T) + 16));
    data_ = static_cast<T*>(p);
  }
  explicit memory(const std::vector<T>& from) : memory(from.size()) { copy_from(from); }
  memory(memory&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  memory& operator=(memory&&) = delete;
  ~memory() { static_cast<void>(cudaFree(data_)); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  void copy_from(const std::vector<T>& from) {
    check(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> fetched() const {
    std::vector<T> out(size_);
    check(cudaMemcpy(out.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// A stream that ends with the scope.
class stream {
 public:
  stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace gpu
