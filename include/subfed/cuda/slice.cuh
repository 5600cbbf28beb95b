// SPDX-License-Identifier: MIT
/// Slice, scatter and scatter_add on tensors in device memory: one launch for all tensors of a
/// submodel, and for all clients of a cohort.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/cuda/detail/copy_checks.hpp>
#include <subfed/cuda/detail/copy_kernel.hpp>
#include <subfed/cuda/detail/copy_plan.hpp>
#include <subfed/cuda/element.cuh>
#include <subfed/cuda/error.cuh>
#include <subfed/cuda/on_device.cuh>
#include <subfed/cuda/workspace.cuh>
#include <subfed/detail/internals.hpp>
#include <subfed/error.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda {

/// One client's submodel and its tensors, in the order in which the model describes them.
template <class T>
struct client_tensors {
  submodel sub;
  tensor_views<T> tensors;
};

namespace detail {

template <class From, class To, class Operation>
__global__ void __launch_bounds__(threads_a_block, blocks_at_once)
    copy_kernel(const copy_call call, const Operation operation) {
  copy_thread<From, To>(call, blockIdx.x, static_cast<int>(threadIdx.x), operation);
}

inline void check_kept(const uploaded& place) {
  if (place.is_kept()) return;
  subfed::detail::fail(place.generation == nullptr
                           ? "subfed: cuda: a call is launched before its upload"
                           : "subfed: cuda: a call is launched after its workspace was reset");
}

}  // namespace detail

/// A slice, scatter or scatter_add that has been checked and planned. upload() it once, then
/// launch() it as often as the tensors' contents change; their addresses are part of it.
template <class From, class To, class Operation>
class copies {
 public:
  /// Bytes of a workspace that the plan takes.
  std::size_t bytes() const noexcept { return packed_.size(); }

  /// Copies the plan to the device, in the order of the stream.
  ///
  /// Throws  error when the workspace has too little room or serves another stream or device, and
  ///         while the stream is captured; cuda_error.
  void upload(workspace& memory, cudaStream_t stream) {
    place_ = subfed::detail::internals::upload(memory, packed_, stream);
  }

  /// Starts the copies, in the order of the stream. May be captured in a graph.
  ///
  /// Throws  error before the upload and after a reset of the workspace; cuda_error.
  /// Cost    One kernel. No synchronisation, no allocation.
  void launch(cudaStream_t stream) const {
    detail::check_kept(place_);
    if (call_.blocks == 0) return;
    detail::copy_call call = call_;
    call.packed = place_.data;
    Operation operation;
    void* arguments[] = {&call, &operation};
    detail::check(
        cudaLaunchKernel(reinterpret_cast<const void*>(&detail::copy_kernel<From, To, Operation>),
                         dim3(static_cast<unsigned>(call.blocks)), dim3(detail::threads_a_block),
                         arguments, 0, stream),
        "cudaLaunchKernel");
  }

 private:
  friend struct subfed::detail::internals;
  copies(detail::copy_call call, detail::packed_arrays bytes)
      : call_(call), packed_(std::move(bytes)) {}

  detail::copy_call call_;
  detail::packed_arrays packed_;
  detail::uploaded place_;
};

namespace detail {

template <class T, class Operation>
copies<kernel_element_t<T>, kernel_element_t<T>, Operation> prepare_one_scatter(
    const char* verb, const tensor_views<const T>& locals, const submodel& sub,
    const tensor_views<T>& globals) {
  using E = kernel_element_t<T>;
  const copy_part<const T> part{&sub, &locals};
  check_copies<T, const T>(verb, globals, std::span(&part, 1));
  const int device = current_device();
  check_on_device(verb, "global", sub.parent(), globals, device);
  check_on_device(verb, "local", sub.parent(), locals, device);
  copy_plan<direction::scatter, E, E> plan(sub.parent());
  plan.add(sub, globals, locals);
  const copy_call call = plan.finish();
  using launch = copies<E, E, Operation>;
  return subfed::detail::internals::make<launch>(call, plan.bytes());
}

template <class T, class Operation>
using copies_of = copies<kernel_element_t<T>, kernel_element_t<T>, Operation>;

}  // namespace detail

/// Plans to copy every client's tensors out of the global ones, as subfed::slice does: one launch
/// for the whole cohort.
///
///   auto cut = subfed::cuda::prepare_slice<float>(globals, clients);
///   cut.upload(memory, stream);
///   cut.launch(stream);
///
/// Shapes    as subfed::slice of each tensor; any strides. All in memory of the current device.
/// Throws    as subfed::slice, error for an empty cohort, submodels of different models or memory
///           elsewhere; cuda_error. Nothing is launched then.
/// Numerics  Bits are copied.
/// Cost      On the host O(tensors of all clients), and the nodes of each distinct submodel.
template <class T>
detail::copies_of<T, detail::assign> prepare_slice(
    const tensor_views<std::type_identity_t<const T>>& globals,
    std::span<const std::type_identity_t<client_tensors<T>>> clients) {
  using E = detail::kernel_element_t<T>;
  std::vector<detail::copy_part<T>> parts;
  for (const auto& c : clients) parts.push_back({&c.sub, &c.tensors});
  detail::check_copies<const T, T>("cuda::slice", globals, parts);
  const model& net = clients.front().sub.parent();
  const int device = detail::current_device();
  detail::check_on_device("cuda::slice", "global", net, globals, device);
  detail::copy_plan<detail::direction::slice, E, E> plan(net);
  for (const auto& c : clients) {
    detail::check_on_device("cuda::slice", "local", net, c.tensors, device);
    plan.add(c.sub, globals, c.tensors);
  }
  const detail::copy_call call = plan.finish();
  using launch = detail::copies_of<T, detail::assign>;
  return subfed::detail::internals::make<launch>(call, plan.bytes());
}

/// Plans to put a client's tensors back into the global ones: global(s[p]) = local(p).
///
/// Throws    as subfed::scatter, and error for memory elsewhere; cuda_error.
template <class T>
detail::copies_of<T, detail::assign> prepare_scatter(
    const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
    const tensor_views<std::type_identity_t<T>>& globals) {
  return detail::prepare_one_scatter<T, detail::assign>("cuda::scatter", locals, sub, globals);
}

/// Plans to add a client's tensors to the global ones: global(s[p]) += local(p).
///
/// Throws    as subfed::scatter_add, and error for memory elsewhere; cuda_error.
/// Numerics  One addition per element, in the element type; for half and bfloat16 rounded once.
template <class T>
detail::copies_of<T, detail::add> prepare_scatter_add(
    const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
    const tensor_views<std::type_identity_t<T>>& globals) {
  return detail::prepare_one_scatter<T, detail::add>("cuda::scatter_add", locals, sub, globals);
}

/// Plans, uploads and launches in one, for one client's tensors.
template <class T>
void slice(const tensor_views<std::type_identity_t<const T>>& globals, const submodel& sub,
           const tensor_views<std::type_identity_t<T>>& locals, workspace& memory,
           cudaStream_t stream) {
  const client_tensors<T> client{sub, locals};
  auto call = prepare_slice<T>(globals, std::span(&client, 1));
  call.upload(memory, stream);
  call.launch(stream);
}
template <class T>
void scatter(const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
             const tensor_views<std::type_identity_t<T>>& globals, workspace& memory,
             cudaStream_t stream) {
  auto call = prepare_scatter<T>(locals, sub, globals);
  call.upload(memory, stream);
  call.launch(stream);
}
template <class T>
void scatter_add(const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
                 const tensor_views<std::type_identity_t<T>>& globals, workspace& memory,
                 cudaStream_t stream) {
  auto call = prepare_scatter_add<T>(locals, sub, globals);
  call.upload(memory, stream);
  call.launch(stream);
}

}  // namespace subfed::inline v0::cuda
