// SPDX-License-Identifier: MIT
/// Values for all tensors of a model that hide nothing, as those of a fresh network do.
#pragma once

#include <subfed/model.hpp>
#include <subfed/philox.hpp>
#include <subfed/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace subfed::inline v0 {

/// Values with which each node differs from the others: a fresh network has batch norms of ones and
/// zeros, or a last scale of zero, and computes the same with many a wrong description.
///
///   parameters and local tensors   weights uniform in [-a, a], a^2 = 3 / (elements of a row); of rank 0
///                                  and 1: 0.5 .. 1.5 with a random sign
///   statistics                     0.5 .. 2, so that variances are positive
///   counters                       1
///
/// Numerics  A pure function of the model and the seed, but for the rounding of sqrt.
template <std::floating_point T>
tensors<T> random_values(const model& net, std::uint64_t seed) {
  tensors<T> out(net);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    const tensor_view<T>& view = out[tensor_id(t)];
    random_stream stream(seed, 0, 0, name_hash(info.name) ^ name_hash("subfed random_values"));
    const std::int64_t rows =
        info.extents.empty() ? 1 : (std::max)(info.extents[0], std::int64_t{1});
    const std::int64_t row = (std::max)(view.size() / rows, std::int64_t{1});
    const double reach = std::sqrt(3.0 / static_cast<double>(row));
    for (std::int64_t i = 0; i < view.size(); ++i) {
      const double unit = stream.next_unit();
      double value = (2 * unit - 1) * reach;
      if (info.role == role::counter) {
        value = 1;
      } else if (info.role == role::statistic) {
        value = 0.5 + 1.5 * unit;
      } else if (info.extents.size() < 2) {
        value = unit < 0.5 ? 0.5 + 2 * unit : 0.5 - 2 * unit;
      }
      view.data_handle()[i] = static_cast<T>(value);
    }
  }
  return out;
}

}  // namespace subfed::inline v0
