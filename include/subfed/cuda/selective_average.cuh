// SPDX-License-Identifier: MIT
/// The selective average on a device, one update at a time: add, finish.
#pragma once

#include <cuda_runtime_api.h>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/options.hpp>
#include <subfed/cuda/average_cohort.cuh>
#include <subfed/cuda/detail/average_plan.hpp>
#include <subfed/cuda/detail/average_request.hpp>
#include <subfed/cuda/detail/copy_kernel.hpp>
#include <subfed/cuda/detail/copy_plan.hpp>
#include <subfed/cuda/element.cuh>
#include <subfed/cuda/error.cuh>
#include <subfed/cuda/on_device.cuh>
#include <subfed/cuda/slice.cuh>
#include <subfed/cuda/workspace.cuh>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::cuda {

namespace detail {

/// sums[i] = -0, which changes no number that is added to it.
struct clearing {
  static constexpr std::int64_t a_thread = 8;
  static constexpr std::int64_t a_block = a_thread * threads_a_block;
};
template <class Sum>
__global__ void clear_kernel(Sum* sums, const std::int64_t size) {
  std::int64_t i = blockIdx.x * clearing::a_block + static_cast<int>(threadIdx.x);
  for (std::int64_t n = 0; n < clearing::a_thread; ++n, i += threads_a_block) {
    if (i < size) sums[i] = -0.0;
  }
}

}  // namespace detail

/// subfed::selective_average on tensors in device memory: updates come one by one and are not kept.
///
/// Numerics  The bits of subfed::selective_average for the same calls in the same order, except for
///           NaNs and for doubles whose sums or products leave the range of double.
/// Cost      8 bytes of device memory per parameter, and one submodel for each different set of
///           nodes.
template <class T>
class selective_average {
 public:
  /// sums: device memory for net.size() doubles, owned by the caller. Call clear() first.
  ///
  /// Throws  error for options that need the elements before a launch, including
  ///         non_finite::skip_element, for a step with a model that has statistics, for another
  ///         rule than keep with one that has counters, memory elsewhere, or another number of
  ///         doubles.
  selective_average(model net, const tensor_view<double>& sums, const average_options& options = {})
      : model_(std::move(net)), options_(options), sums_(sums.data_handle()) {
    detail::check_device_options(model_, options_);
    if (options_.on_non_finite == non_finite::skip_element) {
      subfed::detail::fail(
          "subfed: cuda: selective_average does not offer non_finite::skip_element on a device; "
          "prepare_average does");
    }
    if (sums.size() != model_.size() || !sums.is_row_major()) {
      subfed::detail::fail("subfed: cuda: the sums of an average are " +
                           std::to_string(sums.size()) + " doubles, expected " +
                           std::to_string(model_.size()) + " without gaps");
    }
    detail::check_on_device("cuda::average", "sums'", "sums", sums, detail::current_device());
    double* at = sums_;
    for (const auto& t : model_.tensors()) {
      views_.emplace_back(at, t.extents);
      at += views_.back().size();
    }
  }

  /// Sets the sums to nothing (-0), in the order of the stream, and forgets all updates.
  void clear(cudaStream_t stream) {
    if (model_.size() != 0) {
      std::int64_t size = model_.size();
      const std::int64_t blocks =
          (size + detail::clearing::a_block - 1) / detail::clearing::a_block;
      void* arguments[] = {&sums_, &size};
      detail::check(cudaLaunchKernel(reinterpret_cast<const void*>(&detail::clear_kernel<double>),
                                     dim3(static_cast<unsigned>(blocks)),
                                     dim3(detail::threads_a_block), arguments, 0, stream),
                    "cudaLaunchKernel");
    }
    holders_ = {};
    seen_.clear();
    cohort_weight_ = 0;
    report_ = {};
    cleared_ = true;
  }

  /// Adds a client's update, in the order of the stream.
  ///
  /// Throws  as subfed::selective_average::add, error before clear() and for memory elsewhere, and as
  ///         copies::upload. Nothing is added then.
  /// Cost    One upload, one kernel; reads the update once, reads and writes its sums.
  update_outcome add(const submodel& sub, const tensor_views<const T>& tensors, double weight,
                     workspace& memory, cudaStream_t stream) {
    using E = detail::kernel_element_t<T>;
    if (!cleared_) subfed::detail::fail("subfed: cuda: an average is added to before clear()");
    subfed::detail::check_update("average", model_, sub, tensors, weight);
    const update_outcome outcome = outcome_of(sub, weight);
    if (!outcome) return outcome;
    weight = outcome.weight;
    detail::check_device_weight(sub, weight);
    subfed::detail::check_total_weight("average", cohort_weight_ + weight, options_);
    const tensor_views<const T> sent = detail::sent_views(model_, tensors);
    detail::check_on_device("cuda::average", "client", model_, sent, detail::current_device());
    subfed::detail::placed_tensors places;
    for (std::size_t t = 0; t < views_.size(); ++t) {
      places.add(views_[t], model_.tensors()[t].name, subfed::detail::access::writes);
      places.add(sent[t], model_.tensors()[t].name, subfed::detail::access::reads);
    }
    places.check_apart("average");
    decltype(seen_) seen;  // all memory is taken before the launch
    if (options_.round) seen.insert({sub.origin().round, sub.origin().client});
    if (weight > 0) {
      auto holder = holders_.prepare(sub, weight);
      detail::copy_plan<detail::direction::scatter, E, double> plan(model_);
      plan.add(sub, tensor_views<double>(views_), sent, weight);
      const detail::copy_call call = plan.finish();
      using launch = copies<E, double, detail::accumulate>;
      auto addition = subfed::detail::internals::make<launch>(call, plan.bytes());
      addition.upload(memory, stream);
      addition.launch(stream);
      holders_.add(std::move(holder));
    }
    ++report_.clients;
    cohort_weight_ += weight;
    seen_.merge(seen);
    return outcome;
  }

  /// Plans to write the average of what has been added so far into the global tensors; upload() and
  /// launch() it. The state is kept.
  ///
  /// Throws  as subfed::selective_average::finish, and error for memory elsewhere; cuda_error.
  average<detail::kernel_element_t<T>> prepare_finish(const tensor_views<T>& globals) const {
    subfed::detail::check_globals("average", model_, globals);
    detail::check_on_device("cuda::average", "global", model_, globals, detail::current_device());
    subfed::detail::placed_tensors places;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      places.add(globals[t], model_.tensors()[t].name, subfed::detail::access::writes);
      places.add(views_[t], model_.tensors()[t].name, subfed::detail::access::reads);
    }
    places.check_apart("average");
    std::vector<detail::member<T>> parts;
    for (const auto& e : holders_.entries()) parts.push_back({&e.sub, e.weight, nullptr});
    const detail::average_plan<detail::kernel_element_t<T>> plan(
        model_, globals, std::span<const detail::member<T>>(parts), sums_,
        detail::rule_of(options_, cohort_weight_, report_.clients));
    average_report report = report_;
    report.kept = detail::kept_elements(model_, globals);
    using launch = average<detail::kernel_element_t<T>>;
    return subfed::detail::internals::make<launch>(plan, report);
  }

  /// Plans, uploads and launches in one.
  average<detail::kernel_element_t<T>> finish(const tensor_views<T>& globals, workspace& memory,
                                              cudaStream_t stream) const {
    auto call = prepare_finish(globals);
    call.upload(memory, stream);
    call.launch(stream);
    return call;
  }

 private:
  /// Throws  error for an update that is refused for its round, and counts it.
  update_outcome outcome_of(const submodel& sub, double weight) {
    update_outcome out = subfed::detail::outcome_by_round(sub, weight, options_);
    if (out && options_.round && seen_.count({out.round, out.client}) != 0) {
      out.fate = fate::repeated;
      out.weight = 0;
    }
    if (out) return out;
    if (subfed::detail::is_refused(out.fate, options_)) {
      ++report_.refused_clients;
      subfed::detail::refuse_round(sub, out.fate, options_);
    }
    subfed::detail::leave_out(report_, out);
    return out;
  }

  model model_;
  average_options options_;
  double* sums_;
  std::vector<tensor_view<double>> views_;
  subfed::detail::holder_list holders_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;  // round and client, if options_.round
  double cohort_weight_ = 0;
  average_report report_;
  bool cleared_ = false;
};

}  // namespace subfed::inline v0::cuda
