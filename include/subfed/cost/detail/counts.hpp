// SPDX-License-Identifier: MIT
/// Counts of costs, checked, and the elements that a client holds.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>
#include <string>

namespace subfed::inline v0::detail {

inline std::int64_t cost_product(std::int64_t a, std::int64_t b) {
  if (!multiply(a, b)) fail("subfed: cost: a count grows beyond 2^63 - 1");
  return a;
}
inline std::int64_t cost_sum(std::int64_t a, std::int64_t b) {
  if (!add(a, b)) fail("subfed: cost: a count grows beyond 2^63 - 1");
  return a;
}
/// n, the value of an option.
inline std::int64_t not_negative(const char* what, std::int64_t n) {
  if (n < 0) {
    fail(std::string("subfed: cost: ") + what + " is " + std::to_string(n) +
         ", expected a number that is not negative");
  }
  return n;
}

/// Elements of a dimension that the client holds.
inline std::int64_t held(const submodel& part, const dimension& d) {
  std::int64_t n = 0;
  for (const dimension::part& p : d.parts()) {
    const std::int64_t nodes =
        p.group == dimension::no_group ? p.whole : part.extent(group_id(p.group));
    n = cost_sum(n, cost_product(cost_product(nodes, p.repeat), p.block));
  }
  return n;
}

inline std::int64_t elements_of_part(const submodel& part, tensor_id tensor) {
  std::int64_t n = 1;
  for (const std::int64_t e : part.extents(tensor)) n *= e;
  return n;
}

}  // namespace subfed::inline v0::detail
