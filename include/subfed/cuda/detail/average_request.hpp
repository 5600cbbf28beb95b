// SPDX-License-Identifier: MIT
/// Who takes part in an average on a device, checked as in average_cohort. Reads addresses, never
/// elements.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/cohort_order.hpp>
#include <subfed/average/options.hpp>
#include <subfed/cuda/detail/average_plan.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/tensor_checks.hpp>
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

/// The clients with positive weights, in the order of their numbers; those with the same number by
/// round, weight and nodes, and where those are equal in the given order: their elements are not
/// read.
template <class T>
struct average_request {
  std::vector<average_part<T>> parts;
  double cohort_weight = 0;
  average_report report;  ///< without what the launch counts
};

/// Throws  as average_cohort, and error for options that need the elements before the launch.
template <class T>
average_request<T> request_average(const model& net, std::span<const update<T>> updates,
                                   const tensor_views<T>& globals, const average_options& options) {
  check_device_options(net, options);
  subfed::detail::check_globals("average", net, globals);
  for (const auto& u : updates) {
    subfed::detail::check_update<T>("average", net, u.sub, u.tensors, u.weight);
  }
  average_request<T> out;
  out.report.kept = kept_elements(net, globals);
  const auto admitted = subfed::detail::admit_cohort(
      subfed::detail::in_order<subfed::detail::content_ties::as_given>(updates), options,
      out.report, out.cohort_weight, [](const update<T>& u, const update_outcome& outcome) {
        check_device_weight(u.sub, outcome.weight);
        return true;
      });
  for (const auto& a : admitted) {
    if (a.weight > 0) out.parts.push_back({&a.update->sub, a.weight, &a.update->tensors});
  }
  subfed::detail::placed_tensors places;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const auto& name = net.tensors()[t].name;
    places.add(globals[t], name, subfed::detail::access::writes);
    if (!is_averaged(net.tensors()[t])) continue;
    for (const auto& p : out.parts) {
      places.add((*p.tensors)[t], name, subfed::detail::access::reads);
    }
  }
  places.check_apart("average");
  return out;
}

}  // namespace subfed::inline v0::cuda::detail
