// SPDX-License-Identifier: MIT
/// What is trained, and by whom: all that server and clients know before a round.
#pragma once

#include <subfed/average.hpp>
#include <subfed/layers.hpp>
#include <subfed/secure.hpp>
#include <subfed/subfed.hpp>
#include <subfed/tensors.hpp>

#include <cstdint>
#include <vector>

namespace secure_aggregation {

/// A classifier of 784 inputs, two hidden layers and 10 classes, cut by a rolling window; 24 clients, of
/// which two hold all of it. What only those two hold is never summed.
struct task {
  static constexpr std::uint64_t clients = 24;
  static constexpr std::int64_t threshold = 13;  ///< more than half of them
  static constexpr std::int64_t expected_dropouts = 2;

  explicit task(std::int64_t width);

  subfed::model net;
  subfed::group_id classes{0};
  subfed::secure_options options;

  static subfed::capacity capacity_of(std::uint64_t client);
  static double weight_of(std::uint64_t client) { return 1 + static_cast<double>(client % 3); }

  /// What a client holds in a round.
  subfed::submodel draw(std::uint64_t round, std::uint64_t client, subfed::capacity share) const;
  /// Which classes a client has data of. No one else knows.
  subfed::index_set labels_of(std::uint64_t client) const;
  /// What a client has trained: numbers, in the place of training.
  subfed::tensors<float> trained(const subfed::submodel& sub) const;
  /// The server's tensors before the round.
  subfed::tensors<float> globals() const;
};

}  // namespace secure_aggregation
