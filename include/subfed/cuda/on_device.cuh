// SPDX-License-Identifier: MIT
/// Whether tensors are where kernels can read and write them.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/cuda/error.cuh>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <string>

namespace subfed::inline v0::cuda::detail {

/// Throws  error for a tensor that is not in memory of that device, nor managed.
/// Cost    One query to the driver for each tensor.
template <class T>
void check_on_device(const char* verb, const char* role, const std::string& name,
                     const tensor_view<T>& tensor, int device) {
  if (tensor.size() == 0) return;
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, tensor.data_handle()), "cudaPointerGetAttributes");
  if (found.type == cudaMemoryTypeManaged) return;
  if (found.type == cudaMemoryTypeDevice && found.device == device) return;
  const std::string place = found.type == cudaMemoryTypeDevice
                                ? "on CUDA device " + std::to_string(found.device)
                                : "in host memory";
  subfed::detail::fail(std::string("subfed: ") + verb + ": the " + role + " tensor '" + name +
                       "' is " + place + ", expected on CUDA device " + std::to_string(device));
}

template <class T>
void check_on_device(const char* verb, const char* role, const model& net,
                     const tensor_views<T>& tensors, int device) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    check_on_device(verb, role, net.tensors()[t].name, tensors[t], device);
  }
}

}  // namespace subfed::inline v0::cuda::detail
