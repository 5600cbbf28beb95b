// SPDX-License-Identifier: MIT
/// The selective average in one pass over a whole cohort's updates.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/cohort_request.hpp>
#include <subfed/average/detail/model_average.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/executor.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// The elements to which average_model gives a value.
template <class U>
held_elements held_by_members(const model& net, const std::vector<member<U>>& members,
                              const average_options& options) {
  held_elements out(net);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    if (net.tensors()[t].is_local()) continue;
    const bool keeps = options.integers == integer_rule::keep;
    if (keeps && net.tensors()[t].role == role::counter) continue;
    const submodel* before = nullptr;
    for (const member<U>& m : members) {
      with_type((*m.tensors)[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (!averageable<E>) {
          if (!keeps) detail::internals::add(out, *m.sub, t);
        } else if (options.on_non_finite == non_finite::skip_element) {
          const loop_nest walk((*m.sub)[tensor_id(t)], net.tensors()[t].extents, tensor);
          walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
            for (std::int64_t i = 0; i < length; ++i) {
              const E x = tensor.data_handle()[l + i * walk.local_stride()];
              if (scalar_traits<E>::is_finite(x))
                detail::internals::add(out, t, g + i * walk.global_stride(), 1, 1);
            }
          });
        } else if (before == nullptr || !before->same_nodes(*m.sub)) {
          detail::internals::add(out, *m.sub, t);
          before = m.sub;
        }
      });
    }
  }
  return out;
}

/// average_cohort of updates with elements of type U. held may be null.
template <class T, class U, class Executor>
average_report average_updates(const model& net, std::span<const update<U>> updates,
                               const tensor_views<T>& globals, held_elements* held,
                               const average_options& options, Executor&& run_by) {
  const float_mode mode;
  check_options("average", options);
  cohort_request<U> request = request_cohort<content_ties::by_content>(
      net, updates, globals, options,
      [&](const update<U>& u, update_outcome& outcome) {
        if (!admits(u.sub, u.tensors, options, outcome)) return false;
        if (!options.sums || !(outcome.weight > 0)) return true;
        return admits("average", u.sub, find_beyond(u.sub, u.tensors, options), options, outcome);
      },
      [](const model::tensor_info& tensor) { return !tensor.is_local(); });
  held_elements held_now;  // before the globals are written: memory may run out
  if (held != nullptr) held_now = held_by_members<U>(net, request.members, options);
  average_model<T, U>(net, globals, request.members, {}, options, request.cohort_weight,
                      request.report, run_by);
  if (held != nullptr) *held = std::move(held_now);
  return std::move(request.report);
}

}  // namespace detail

/// Averages every global parameter over exactly the clients that hold it, [Rolex, Eq. 10], as
/// selective_average does, but with all updates at hand:
/// average_cohort<float>(net, updates, globals). T void: tensors of mixed types.
///
/// Shapes    Tensor t of an update is sub.extents(tensor_id(t)), global tensor t is as in the
///           model; any strides. Of a tensor that stays with the client (role::local) an update may
///           have any view, even an empty one; it is never read.
/// Post      Elements that no client holds with a positive weight keep their bits, and so do local
///           tensors.
/// Throws    error for whatever selective_average::add and finish refuse; nothing has been written
///           then. Without updates, or where all are left out, everything keeps its bits.
/// Numerics  Each element's sum and weight are doubles, added in the order of the clients' numbers
///           (origin().client) and rounded to T once. Updates with the same number are ordered by
///           round, weight, nodes and, where all of those are equal, by the bits of their elements;
///           of repeated ones under options.round the first in this order is taken. So the bits
///           depend neither on the order of arrival nor on the executor. Where intermediate results
///           would leave the range of double, wider numbers are used: the mean of finite values is
///           finite, for any weights. The mode of the processor's arithmetic (rounding, denormal
///           numbers) has no effect. With options.sums each sum is one of integers.
/// Cost      Reads each element of the updates once (twice with non_finite::refuse and skip_client,
///           and with options.sums), writes each held global element once. No memory that grows with the size
///           of the model.
template <class T, executor Executor = serial>
requires(averageable<T> || std::is_void_v<T>) average_report
    average_cohort(const model& net, std::span<const std::type_identity_t<update<T>>> updates,
                   const tensor_views<std::type_identity_t<T>>& globals,
                   const average_options& options = {}, Executor&& run_by = {}) {
  return detail::average_updates<T, T>(net, updates, globals, nullptr, options, run_by);
}

/// The same for updates with another element type than the global tensors':
/// average_cohort<float, half>(net, updates, globals). U void: clients may differ.
///
/// Throws    error as above, and for a tensor that has integers on one side only, or (except for
///           deltas) different integer types.
/// Numerics  Elements are converted to double, exactly. Results that are too large for T become
///           infinite and are counted; non_finite::refuse refuses them (at the cost of averaging
///           twice where the types or the options allow such results).
template <class T, class U, executor Executor = serial>
requires((averageable<T> ||
          std::is_void_v<T>)&&(averageable<U> ||
                               std::is_void_v<U>)&&!std::is_same_v<T, U>) average_report
    average_cohort(const model& net, std::span<const update<U>> updates,
                   const tensor_views<std::type_identity_t<T>>& globals,
                   const average_options& options = {}, Executor&& run_by = {}) {
  return detail::average_updates<T, U>(net, updates, globals, nullptr, options, run_by);
}

/// The same, and says which elements were held by a client that took part:
///
///   held_elements held;
///   average_cohort<float>(net, updates, globals, held, options);
///
/// Cost      Walks the submodels once more, and reads the updates once more with
///           non_finite::skip_element.
template <class T, executor Executor = serial>
requires(averageable<T> || std::is_void_v<T>) average_report
    average_cohort(const model& net, std::span<const std::type_identity_t<update<T>>> updates,
                   const tensor_views<std::type_identity_t<T>>& globals, held_elements& held,
                   const average_options& options = {}, Executor&& run_by = {}) {
  return detail::average_updates<T, T>(net, updates, globals, &held, options, run_by);
}
template <class T, class U, executor Executor = serial>
requires((averageable<T> ||
          std::is_void_v<T>)&&(averageable<U> ||
                               std::is_void_v<U>)&&!std::is_same_v<T, U>) average_report
    average_cohort(const model& net, std::span<const update<U>> updates,
                   const tensor_views<std::type_identity_t<T>>& globals, held_elements& held,
                   const average_options& options = {}, Executor&& run_by = {}) {
  return detail::average_updates<T, U>(net, updates, globals, &held, options, run_by);
}

}  // namespace subfed::inline v0
