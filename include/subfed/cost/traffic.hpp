// SPDX-License-Identifier: MIT
/// Bytes that a client receives and sends in a round.
#pragma once

#include <subfed/cost/detail/counts.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace subfed::inline v0 {

/// Whether the lists of nodes that a client holds travel: not at all, since server and client
/// derive the same ones; with the tensors to the client; or both ways.
enum class index_lists { derived, sent_down, sent_both_ways };

struct traffic_options {
  index_lists lists = index_lists::derived;
  std::int64_t element_bytes = 4;
  /// Bytes of an element of each tensor, for models of mixed types; empty: element_bytes for all.
  std::span<const std::int64_t> tensor_element_bytes = {};
  std::int64_t index_bytes = 4;
  /// Bytes of a message besides its tensors, each way: update_framing() for those of messages/.
  std::int64_t framing_bytes = 0;
};

struct traffic_bytes {
  std::int64_t down;  ///< from the server to the client
  std::int64_t up;

  friend bool operator==(const traffic_bytes&, const traffic_bytes&) = default;
};

/// Bytes of one client in one round: all its tensors except local ones in each direction; where
/// lists are sent, also an integer for each held node of each group that a scheme cuts. Framing is
/// counted as given; compression and the initial values of local tensors are not.
///
/// Throws  error when tensor_element_bytes is not as long as the model, or for a negative size.
inline traffic_bytes traffic(const submodel& part, const traffic_options& options = {}) {
  const model& net = part.parent();
  const auto sizes = options.tensor_element_bytes;
  if (!sizes.empty() && sizes.size() != net.tensors().size()) {
    detail::fail("subfed: cost: element sizes of " + std::to_string(sizes.size()) +
                 " tensors are given for a model of " + std::to_string(net.tensors().size()));
  }
  std::int64_t tensors = detail::not_negative("the size of the framing", options.framing_bytes);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    if (net.tensors()[t].is_local()) continue;
    const std::int64_t each = detail::not_negative(
        "the size of an element", sizes.empty() ? options.element_bytes : sizes[t]);
    tensors = detail::cost_sum(
        tensors, detail::cost_product(detail::elements_of_part(part, tensor_id(t)), each));
  }
  std::int64_t lists = 0;
  detail::not_negative("the size of an index", options.index_bytes);
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    if (net.groups()[g].cut == cut::never) continue;
    lists = detail::cost_sum(lists,
                             detail::cost_product(part.extent(group_id(g)), options.index_bytes));
  }
  return {
      options.lists == index_lists::derived ? tensors : detail::cost_sum(tensors, lists),
      options.lists == index_lists::sent_both_ways ? detail::cost_sum(tensors, lists) : tensors};
}

}  // namespace subfed::inline v0
