// SPDX-License-Identifier: MIT
/// What verbs check of a tensor: its shape, and that no two elements overlap, within it or between
/// tensors.
#pragma once

#include <subfed/detail/view_overlap.hpp>
#include <subfed/error.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace subfed::inline v0::detail {

/// Throws unless a view has the shape that its role requires: "subfed: slice: the global tensor
/// 'fc1.weight' has shape (64, 20), expected (64, 21)".
inline void check_shape(const char* verb, const char* role, const std::string& name,
                        std::span<const std::int64_t> found, std::span<const std::int64_t> expected,
                        std::optional<std::uint64_t> client = {}) {
  if (std::equal(found.begin(), found.end(), expected.begin(), expected.end())) return;
  fail(std::string("subfed: ") + verb + ": the " + role + " tensor" +
           (name.empty() ? "" : " '" + name + "'") + " has shape " + shape_text(found) +
           ", expected " + shape_text(expected),
       {.client = client, .tensor = name});
}

template <class T>
void check_unique(const char* verb, const char* role, const std::string& name,
                  const tensor_view<T>& view) {
  if (view.is_unique()) return;
  fail(std::string("subfed: ") + verb + ": the " + role + " tensor" +
           (name.empty() ? "" : " '" + name + "'") + " of shape " + shape_text(view.extents()) +
           " and strides " + shape_text(view.strides()) +
           " is written to, but has several indices for one element",
       {.tensor = name});
}

template <class T, class U>
void check_apart(const char* verb, const std::string& name, const tensor_view<T>& a,
                 const tensor_view<U>& b) {
  if (!overlap_in_memory(a, b)) return;
  fail(std::string("subfed: ") + verb + ": the global and the local tensor" +
           (name.empty() ? "" : " '" + name + "'") + " overlap in memory",
       {.tensor = name});
}

}  // namespace subfed::inline v0::detail
