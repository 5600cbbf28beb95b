// SPDX-License-Identifier: MIT
/// The selective average in one pass over a whole cohort's updates in device memory.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/cuda/detail/average_kernel.hpp>
#include <subfed/cuda/detail/average_plan.hpp>
#include <subfed/cuda/detail/average_request.hpp>
#include <subfed/cuda/element.cuh>
#include <subfed/cuda/error.cuh>
#include <subfed/cuda/on_device.cuh>
#include <subfed/cuda/slice.cuh>
#include <subfed/cuda/workspace.cuh>
#include <subfed/detail/internals.hpp>
#include <subfed/model.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda {

namespace detail {

/// counts: elements held, values skipped.
template <class E>
__global__ void __launch_bounds__(threads_a_block, blocks_at_once)
    average_kernel(const average_call call, unsigned long long* counts) {
  average_counts own = average_thread<E>(call, blockIdx.x, static_cast<int>(threadIdx.x));
  for (unsigned step = 16; step != 0; step /= 2) {
    own.held += __shfl_down_sync(0xFFFFFFFFu, own.held, step);
    own.skipped += __shfl_down_sync(0xFFFFFFFFu, own.skipped, step);
  }
  if (threadIdx.x % 32 != 0) return;
  if (own.held != 0) atomicAdd(counts, static_cast<unsigned long long>(own.held));
  if (own.skipped != 0) atomicAdd(counts + 1, static_cast<unsigned long long>(own.skipped));
}

}  // namespace detail

/// An average that has been checked and planned. upload() it once, then launch() it as often as the
/// tensors' contents change; their addresses are part of it. E: the element type in kernels.
template <class E>
class average {
 public:
  /// Bytes of a workspace that the plan takes.
  std::size_t bytes() const noexcept { return packed_.size(); }

  /// Copies the plan to the device, in the order of the stream. Throws  as copies::upload.
  void upload(workspace& memory, cudaStream_t stream) {
    place_ = subfed::detail::internals::upload(memory, packed_, stream);
  }

  /// Starts the average, in the order of the stream. May be captured in a graph.
  ///
  /// Throws  error before the upload and after a reset of the workspace; cuda_error.
  /// Cost    16 bytes cleared and one kernel. No synchronisation, no allocation.
  void launch(cudaStream_t stream) const {
    detail::check_kept(place_);
    detail::check(cudaMemsetAsync(counts(), 0, 2 * sizeof(std::uint64_t), stream),
                  "cudaMemsetAsync");
    if (call_.blocks == 0) return;
    detail::average_call call = call_;
    call.packed = place_.data;
    auto* counted = static_cast<unsigned long long*>(counts());
    void* arguments[] = {&call, &counted};
    detail::check(cudaLaunchKernel(reinterpret_cast<const void*>(&detail::average_kernel<E>),
                                   dim3(static_cast<unsigned>(call.blocks)),
                                   dim3(detail::threads_a_block), arguments, 0, stream),
                  "cudaLaunchKernel");
  }

  /// What the last launch on this stream did. Waits for the stream.
  ///
  /// Throws  error before the upload and after a reset of the workspace; cuda_error.
  average_report report(cudaStream_t stream) const {
    detail::check_kept(place_);
    std::uint64_t counted[2] = {};
    detail::check(
        cudaMemcpyAsync(counted, counts(), sizeof counted, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
    detail::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    average_report out = report_;
    out.held = static_cast<std::int64_t>(counted[0]);
    out.skipped_elements = static_cast<std::int64_t>(counted[1]);
    out.unheld = elements_ - out.held;
    return out;
  }

 private:
  friend struct subfed::detail::internals;
  average(const detail::average_plan<E>& plan, const average_report& report)
      : call_(plan.call()), packed_(plan.bytes()), elements_(plan.elements()), report_(report) {
    counts_at_ = packed_.append(std::vector<std::uint64_t>{0, 0});
  }

  void* counts() const noexcept { return place_.data + counts_at_; }

  detail::average_call call_;
  detail::packed_arrays packed_;
  std::int64_t counts_at_;
  std::int64_t elements_;
  average_report report_;
  detail::uploaded place_;
};

/// Plans the average of every global parameter over exactly the clients that hold it,
/// [Rolex, Eq. 10], as subfed::average_cohort does, but for tensors in device memory: one launch
/// for all of them.
///
///   auto mean = subfed::cuda::prepare_average<float>(net, updates, globals);
///   mean.upload(memory, stream);
///   mean.launch(stream);
///
/// Shapes    as subfed::average_cohort. All in memory of the current device.
/// Post      Elements that no client holds with a positive weight keep their bits, and so do counters
///           and local tensors.
/// Throws    as subfed::average_cohort; error for memory elsewhere, for weights other than 0
///           outside 2^-400 to 2^400, for a step with a model that has statistics, which take none,
///           for another rule than integer_rule::keep with one that has counters, and for
///           non_finite::refuse and skip_client, which need the elements before the launch;
///           cuda_error. Nothing is launched then. Updates have the element type of the global
///           tensors.
/// Numerics  The bits of subfed::average_cohort, except for NaNs, whose sign and payload are the
///           device's: each element's sum and weight are doubles, added by one thread in the order
///           of the clients' numbers, and rounded to T once. No atomics on floating point. Not done
///           on a device: wider numbers where doubles' sums or products leave the range of double,
///           and counting of results that are too large for T.
/// Cost      Reads each element of the updates once, writes each held global element once.
template <class T>
average<detail::kernel_element_t<T>> prepare_average(
    const model& net, std::span<const std::type_identity_t<update<T>>> updates,
    const tensor_views<std::type_identity_t<T>>& globals, const average_options& options = {}) {
  const auto request = detail::request_average<T>(net, updates, globals, options);
  const int device = detail::current_device();
  detail::check_on_device("cuda::average", "global", net, globals, device);
  for (const auto& m : request.members) {
    detail::check_on_device("cuda::average", "client", net, detail::sent_views(net, *m.tensors),
                            device);
  }
  const detail::average_plan<detail::kernel_element_t<T>> plan(
      net, globals, std::span<const detail::member<T>>(request.members), nullptr,
      detail::rule_of(options, request.cohort_weight, request.report.clients));
  using launch = average<detail::kernel_element_t<T>>;
  return subfed::detail::internals::make<launch>(plan, request.report);
}

/// Plans, uploads and launches in one. The result's report() says what was done.
template <class T>
average<detail::kernel_element_t<T>> average_cohort(
    const model& net, std::span<const std::type_identity_t<update<T>>> updates,
    const tensor_views<std::type_identity_t<T>>& globals, const average_options& options,
    workspace& memory, cudaStream_t stream) {
  auto call = prepare_average<T>(net, updates, globals, options);
  call.upload(memory, stream);
  call.launch(stream);
  return call;
}

}  // namespace subfed::inline v0::cuda
