// SPDX-License-Identifier: MIT
/// Who takes part in an average on a device, checked as in average_cohort. Reads addresses, never
/// elements.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/cohort_request.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/cuda/detail/average_plan.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0::cuda::detail {

/// Throws  error for options that need the elements before the launch, and for a step where a
///         tensor takes none: a launch has one rule for all tensors.
inline void check_device_options(const model& net, const average_options& options) {
  subfed::detail::check_options("average", options);
  if (options.sums) {
    subfed::detail::fail("subfed: cuda: on a device sums are doubles, not in fixed point");
  }
  const bool whole_updates = options.on_non_finite == non_finite::refuse ||
                             options.on_non_finite == non_finite::skip_client;
  if (whole_updates) {
    subfed::detail::fail(
        "subfed: cuda: non_finite::refuse and skip_client need the elements of an update before "
        "the launch; on a device there are propagate and skip_element");
  }
  for (const auto& tensor : net.tensors()) {
    if (tensor.role != role::counter || options.integers == integer_rule::keep) continue;
    subfed::detail::fail("subfed: cuda: tensor '" + tensor.name +
                             "' is a counter, of which a device knows integer_rule::keep alone",
                         {.tensor = tensor.name});
  }
  if (options.step == 1) return;
  for (const auto& tensor : net.tensors()) {
    if (tensor.role != role::statistic) continue;
    subfed::detail::fail("subfed: cuda: the step is " + subfed::detail::text(options.step) +
                             ", but tensor '" + tensor.name + "' is a " +
                             std::string(role_text(tensor.role)) +
                             ", which takes steps of 1 alone; on a device there is one for all",
                         {.tensor = tensor.name});
  }
}

/// Elements of the global tensors that stay as they are.
template <class T>
std::int64_t kept_elements(const model& net, const tensor_views<T>& globals) {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    if (!is_averaged(net.tensors()[t])) n += globals[t].size();
  }
  return n;
}

/// An update's tensors, with an empty view for each that does not take part: those must not be
/// read.
template <class T>
tensor_views<const T> sent_views(const model& net, const tensor_views<const T>& tensors) {
  std::vector<tensor_view<const T>> out;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const bool sent = is_averaged(net.tensors()[t]);
    out.push_back(sent ? tensors[t] : tensor_view<const T>(nullptr, {0}));
  }
  return out;
}

/// Throws  error for a weight with which sums and products may leave the range of double: the host
///         scales such weights, a device does not.
inline void check_device_weight(const submodel& sub, double weight) {
  constexpr double least = 0x1p-400;
  constexpr double most = 0x1p400;
  if (weight == 0 || (weight >= least && weight <= most)) return;
  subfed::detail::fail("subfed: cuda: the weight of " + subfed::detail::client_text(sub) + " is " +
                           subfed::detail::text(weight) +
                           ", expected 0 or 2^-400 to 2^400 on a device",
                       {.client = sub.origin().client});
}

/// As average_cohort, except that updates with the same number, round, weight and nodes stay in the
/// given order: their elements are not read.
///
/// Throws  as average_cohort, and error for options that need the elements before the launch.
template <class T>
subfed::detail::cohort_request<T> request_average(const model& net,
                                                  std::span<const update<T>> updates,
                                                  const tensor_views<T>& globals,
                                                  const average_options& options) {
  check_device_options(net, options);
  auto out = subfed::detail::request_cohort<subfed::detail::content_ties::as_given>(
      net, updates, globals, options,
      [](const update<T>& u, const update_outcome& outcome) {
        check_device_weight(u.sub, outcome.weight);
        return true;
      },
      is_averaged);
  out.report.kept = kept_elements(net, globals);
  return out;
}

}  // namespace subfed::inline v0::cuda::detail
