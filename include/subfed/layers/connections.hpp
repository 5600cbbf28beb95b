// SPDX-License-Identifier: MIT
/// Connections between layers: flatten, residual additions, and checks that one reads what another
/// writes.
#pragma once

#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// What is flattened: (channels, height, width) or (height, width, channels).
enum class flatten_order { channels_first, channels_last };

/// Channels at each of `positions` places, as a linear layer after a flatten reads them.
inline dimension flatten(const dimension& channels, std::int64_t positions,
                         flatten_order order = flatten_order::channels_first) {
  return order == flatten_order::channels_first ? channels.block(positions)
                                                : channels.repeat(positions);
}

namespace detail {

inline const dimension& written_by(const model& net, tensor_id tensor) {
  const auto& info = net[tensor];
  if (info.dimensions.empty()) {
    fail("subfed: layers: '" + info.name + "' has the rank 0, so it writes no dimension");
  }
  return info.dimensions[0];
}
inline std::string sized(const model& net, const dimension& d) {
  return std::to_string(net.extent(d)) + " elements (" + dimension_text(net, d) + ")";
}

}  // namespace detail

/// The dimension that layers write when their outputs are added: the first dimension of each tensor
/// given (for a transposed convolution pass the bias). An identity skip needs no tensor of its own:
/// its block writes the group that it reads. A projected one writes the group that its block
/// writes.
///
///   const dimension out = residual_add(net, {conv2.weight, shortcut.weight});
///
/// Throws  error that names both tensors when they write different dimensions, so that a client
///         would add unrelated nodes.
inline dimension residual_add(const model& net, std::initializer_list<tensor_id> tensors) {
  if (tensors.size() == 0) detail::fail("subfed: layers: a residual addition of no tensors");
  const tensor_id first = *tensors.begin();
  const dimension& out = detail::written_by(net, first);
  for (const tensor_id t : tensors) {
    const dimension& other = detail::written_by(net, t);
    if (other == out) continue;
    detail::fail("subfed: layers: '" + net[first].name + "' writes " + detail::sized(net, out) +
                 ", but '" + net[t].name + "', which is added to it, " + detail::sized(net, other));
  }
  return out;
}

/// Throws  error that names both tensors unless `reader`, in its second dimension, reads what
///         `writers` write in their first, one after the other, as it is or flattened.
inline void check_reads(const model& net, tensor_id reader,
                        std::initializer_list<tensor_id> writers) {
  const auto& info = net[reader];
  if (info.dimensions.size() < 2) {
    detail::fail("subfed: layers: '" + info.name +
                 "' has no second dimension, so it reads nothing");
  }
  const dimension& in = info.dimensions[1];
  std::vector<dimension> written;
  std::string names;
  for (const tensor_id t : writers) {
    written.push_back(detail::written_by(net, t));
    names += (names.empty() ? "'" : " and '") + net[t].name + "'";
  }
  const dimension out = concat(written);
  const std::int64_t have = net.extent(out);
  const std::int64_t want = net.extent(in);
  if (in == out) return;
  if (have > 0 && want % have == 0 && want > have) {
    if (in == out.block(want / have)) return;
    // Copies of several parts are listed one by one.
    const auto copies = static_cast<std::uint64_t>(want / have);
    const bool as_many =
        out.parts().size() == 1 || in.parts().size() / copies == out.parts().size();
    if (as_many && in == out.repeat(want / have)) return;
  }
  detail::fail("subfed: layers: '" + info.name + "' reads " + detail::sized(net, in) + ", but " +
               names + (writers.size() == 1 ? " writes " : " write ") + detail::sized(net, out));
}

}  // namespace subfed::inline v0
