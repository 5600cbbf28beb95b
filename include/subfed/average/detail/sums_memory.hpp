// SPDX-License-Identifier: MIT
/// The memory of a streaming average's sums, taken before the first of them changes: where it is not to be
/// had, everything is as it was.
#pragma once

#include <subfed/average/detail/admission.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace subfed::inline v0::detail {

inline bool is_held(const update_outcome& outcome) { return outcome && outcome.weight > 0; }

/// Whether a tensor's elements can be averaged: not integers.
template <class U>
bool has_averageable_type(const tensor_view<const U>& tensor) {
  return with_type(tensor, []<class E>(const tensor_view<const E>&) { return averageable<E>; });
}

/// Bytes of weights for every parameter that has none yet.
inline std::int64_t bytes_of_weights(const model& net, const std::vector<tensor_sums>& state) {
  std::int64_t elements = 0;
  for (std::size_t t = 0; t < state.size(); ++t) {
    if (!state[t].weights.empty() || net.tensors()[t].is_local()) continue;
    elements += static_cast<std::int64_t>(memory_size<double>(net.tensors()[t].extents));
  }
  return 8 * elements;
}

/// Whether the nodes of holders take more than so many bytes once the updates are among them.
template <class U>
bool takes_more_than(std::int64_t limit, const holder_list& holders,
                     const std::vector<admitted_update<U>>& updates) {
  std::int64_t most = holders.bytes();
  for (const admitted_update<U>& a : updates) most += holder_list::bytes_of(*a.update->sub);
  if (most <= limit) return false;  // nothing has to be looked up
  std::int64_t bytes = holders.bytes();
  for (const admitted_update<U>& a : updates) {
    if (is_held(a.outcome)) bytes += holders.more_bytes(*a.update->sub);
  }
  return bytes > limit;
}

/// For updates to be added. dense: with weights for every element.
template <class U>
void reserve_sums(const model& net, const average_options& options, bool dense,
                  const std::vector<admitted_update<U>>& updates, std::vector<tensor_sums>& state) {
  const bool fixed = options.sums.has_value();
  for (const admitted_update<U>& a : updates) {
    if (!is_held(a.outcome)) continue;
    for (std::size_t t = 0; t < state.size(); ++t) {
      const auto& info = net.tensors()[t];
      if (info.is_local()) continue;
      tensor_sums& own = state[t];
      const bool is_float = has_averageable_type((*a.update->tensors)[t]);
      if (is_float && info.role != role::counter) {
        own.reserve_sums(info.extents, fixed, dense || a.skipped[t] > 0);
      } else if (options.integers != integer_rule::keep) {
        is_float ? own.counters.elements().reserve(info.extents)
                 : own.integers.elements().reserve(info.extents);
      }
    }
  }
  if (!dense) return;
  for (std::size_t t = 0; t < state.size(); ++t) {
    if (state[t].has_sums()) state[t].reserve_sums(net.tensors()[t].extents, fixed, dense);
  }
}

/// The same for the sums of another average.
inline void reserve_sums(const model& net, const average_options& options, bool dense,
                         const std::vector<tensor_sums>& others, std::vector<tensor_sums>& state) {
  for (std::size_t t = 0; t < state.size(); ++t) {
    const std::vector<std::int64_t>& extents = net.tensors()[t].extents;
    tensor_sums& own = state[t];
    const tensor_sums& more = others[t];
    if (own.has_sums() || more.has_sums()) {
      own.reserve_sums(extents, options.sums.has_value(), dense || !more.weights.empty());
    }
    if (!more.integers.elements().empty()) own.integers.elements().reserve(extents);
    if (!more.counters.elements().empty()) own.counters.elements().reserve(extents);
  }
}

}  // namespace subfed::inline v0::detail
