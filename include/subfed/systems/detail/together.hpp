// SPDX-License-Identifier: MIT
/// Walking several tensors of one shape together, and which elements of a model clients hold.
#pragma once

#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0::detail {

/// Calls f(offsets) for every element of views of one shape, in row-major order; offsets[v] is
/// where view v has it. Pre: the shapes are equal.
template <class F, class First, class... Rest>
void for_each_together(F&& f, const tensor_view<First>& first, const tensor_view<Rest>&... rest) {
  constexpr std::size_t views = 1 + sizeof...(Rest);
  if (first.size() == 0) return;
  const std::array<const std::int64_t*, views> strides{first.strides().data(),
                                                       rest.strides().data()...};
  const int rank = first.rank();
  const int last = rank - 1;
  const std::int64_t row = rank == 0 ? 1 : first.extent(last);
  std::array<std::int64_t, views> start{};
  std::int64_t index[max_rank]{};
  while (true) {
    std::array<std::int64_t, views> at = start;
    for (std::int64_t i = 0; i < row; ++i) {
      f(at);
      for (std::size_t v = 0; rank != 0 && v < views; ++v) at[v] += strides[v][last];
    }
    int r = last - 1;
    for (; r >= 0; --r) {
      const bool further = index[r] + 1 < first.extent(r);
      for (std::size_t v = 0; v < views; ++v) {
        start[v] += strides[v][r] * (further ? 1 : -index[r]);
      }
      index[r] = further ? index[r] + 1 : 0;
      if (further) break;
    }
    if (r < 0) return;
  }
}

/// Throws unless there is a tensor for each of the model's, of its global shape.
template <class T>
void check_all_globals(const char* verb, const char* role, const model& net,
                       const tensor_views<T>& tensors) {
  check_count(verb, role, net, tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto& info = net.tensors()[t];
    check_shape(verb, role, info.name, tensors[t].extents(), info.extents);
  }
}

/// Throws unless a list has a tensor for each of the model's, and each parameter has the shape that
/// `expected` has it in. The others are not looked at.
template <class T, class U>
void check_same_parameters(const char* verb, const char* role, const model& net,
                           const tensor_views<T>& expected, const tensor_views<U>& found) {
  check_count(verb, role, net, found.size());
  for (std::size_t t = 0; t < found.size(); ++t) {
    const auto& info = net.tensors()[t];
    if (!info.is_parameter()) continue;
    const std::vector<std::int64_t> extents(expected[t].extents().begin(),
                                            expected[t].extents().end());
    check_shape(verb, role, info.name, found[t].extents(), extents);
  }
}

/// Throws unless both lists have as many tensors, of the same shapes.
template <class T, class U>
void check_same_shapes(const char* verb, const char* role, const tensor_views<T>& expected,
                       const tensor_views<U>& found) {
  if (found.size() != expected.size()) {
    fail(std::string("subfed: ") + verb + ": " + std::to_string(found.size()) + " " + role +
         " tensors are given, expected " + std::to_string(expected.size()));
  }
  for (std::size_t t = 0; t < found.size(); ++t) {
    const std::vector<std::int64_t> extents(expected[t].extents().begin(),
                                            expected[t].extents().end());
    check_shape(verb, role, "number " + std::to_string(t), found[t].extents(), extents);
  }
}

/// Calls f(offset in the row-major global tensor, offset in the row-major local one) for every
/// element of tensor number t that takes part.
template <class F>
void for_each_held(const submodel& sub, std::size_t t, F&& f) {
  static constexpr char no_data = 0;  // the walk looks at the strides alone
  const selection chosen = sub[tensor_id(t)];
  const tensor_view<const char> local(&no_data, chosen.local_extents());
  const paired_walk walk(chosen, sub.parent().tensors()[t].extents, local);
  walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      f(g + i * walk.global_stride(), l + i * walk.local_stride());
    }
  });
}

/// One flag for each element of tensor number t, row-major: whether a submodel holds it.
inline std::vector<unsigned char> held_by_any(const model& net, std::span<const submodel> subs,
                                              std::size_t t) {
  std::vector<unsigned char> held(memory_size<unsigned char>(net.tensors()[t].extents), 0);
  for (std::size_t s = 0; s < subs.size(); ++s) {
    bool known = false;
    for (std::size_t before = 0; before < s && !known; ++before) {
      known = subs[before].same_nodes(subs[s]);
    }
    if (known) continue;
    for_each_held(subs[s], t,
                  [&](std::int64_t g, std::int64_t) { held[static_cast<std::size_t>(g)] = 1; });
  }
  return held;
}

/// Throws unless all submodels are of the model.
inline void check_parents(const char* verb, const model& net, std::span<const submodel> subs) {
  for (const submodel& sub : subs) {
    if (sub.parent() == net) continue;
    fail(std::string("subfed: ") + verb + ": the submodel of client " +
         std::to_string(sub.origin().client) + " is of another model");
  }
}

}  // namespace subfed::inline v0::detail
