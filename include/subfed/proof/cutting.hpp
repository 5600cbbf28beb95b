// SPDX-License-Identifier: MIT
/// Whether a sub-network computes what the whole one does with the dropped nodes at zero.
#pragma once

#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/proof/forward.hpp>
#include <subfed/proof/permuted.hpp>
#include <subfed/proof/random_values.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/tensors.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

/// How far the outputs of the sub-network are from those of the whole network in which every element
/// that the client does not hold is zero, as a share of the largest output. The forward function takes the
/// client's tensors too, and reads the widths from their extents.
///
/// It is rounding where cutting is masking. It is not where a layer computes something over all nodes
/// of a group: layer norm, group norm cut inside its groups, a softmax or a mean over the group, a scale that
/// is made from the width anew. That is no fault of the description; whoever reasons about sub-networks as
/// masks is to know it.
///
/// Throws  error when the outputs of the masked network are empty, zero or not finite, or those of the
///         sub-network are not as many.
template <std::floating_point T, class Forward>
requires forward_function<std::remove_reference_t<Forward>, T>
double cut_difference(const submodel& sub,
                      const tensor_views<std::type_identity_t<const T>>& globals,
                      Forward&& forward) {
  tensors<T> locals(sub);
  slice<T>(globals, sub, locals);
  tensors<T> masked(sub.parent());
  scatter<T>(locals, sub, masked);
  const submodel full = submodel::full(sub.parent());
  const std::vector<double> expected = detail::outputs_of<T>(forward, full, masked);
  const double scale = detail::checked_scale("cut_difference", expected);
  const std::vector<double> found = detail::outputs_of<T>(forward, sub, locals);
  return detail::largest_difference("cut_difference", expected, found) / scale;
}

struct group_difference {
  group_id group;
  double difference;
};

/// The same for each group that a scheme may cut, by itself: half of its nodes are kept, chosen at random.
/// Groups of fewer than two nodes are left out.
///
/// Throws  as cut_difference.
template <std::floating_point T, class Forward>
requires forward_function<std::remove_reference_t<Forward>, T> std::vector<group_difference>
cut_differences(const model& net, Forward&& forward, std::uint64_t seed = 1) {
  const tensors<T> values = random_values<T>(net, seed);
  std::vector<group_difference> out;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const auto& info = net.groups()[g];
    if (info.cut == cut::never || info.extent < 2) continue;
    const index_set order = shuffled(info.extent, info.name, seed);
    std::vector<std::int64_t> kept(order.begin(), order.end());
    kept.resize(kept.size() / 2);
    const submodel sub = submodel::full(net).with(group_id(g), index_set(info.extent, kept));
    out.push_back({group_id(g), cut_difference<T>(sub, values, forward)});
  }
  return out;
}

}  // namespace subfed::inline v0
