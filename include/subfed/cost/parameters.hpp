// SPDX-License-Identifier: MIT
/// How many parameters a client holds.
#pragma once

#include <subfed/cost/detail/counts.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0 {

/// Parameters that a client holds: elements of the tensors given, so that buffers (running
/// statistics, step counters) can be left out. submodel::size() counts all tensors.
inline std::int64_t parameters(const submodel& part, std::span<const tensor_id> which) {
  std::int64_t n = 0;
  for (const tensor_id t : which) n = detail::cost_sum(n, detail::elements_of_part(part, t));
  return n;
}

/// Elements that a client holds of all tensors of one role: parameters(part) is what it trains and
/// sends, parameters(part, role::local) what it keeps.
inline std::int64_t parameters(const submodel& part, role which = role::parameter) {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < part.parent().tensors().size(); ++t) {
    if (part.parent().tensors()[t].role != which) continue;
    n = detail::cost_sum(n, detail::elements_of_part(part, tensor_id(t)));
  }
  return n;
}

}  // namespace subfed::inline v0
