// SPDX-License-Identifier: MIT
/// Who the clients are: which labels and samples each one has, how much of the model it can hold, and
/// which of them take part in a round. All of it follows from the seed.
#pragma once

#include <cstdint>
#include <span>
#include <subfed/capacity.hpp>
#include <vector>

namespace trainer {

struct client {
  std::uint64_t number = 0;
  subfed::capacity capacity = 1.0;
  std::vector<std::int64_t> labels;   // ascending
  std::vector<std::int64_t> samples;  // positions in the training set
};

struct partition_plan {
  std::uint64_t seed = 0;
  std::int64_t clients = 100;
  std::int64_t labels_each = 2;
  std::int64_t samples_each = 600;           // at most, shared evenly by a client's labels
  std::vector<subfed::capacity> capacities;  // client c gets number c mod their count
};

/// Deals a training set out: every client has labels_each different labels, every label has the same
/// number of clients (or one more), and no sample goes to two clients.
///
/// Throws  failure when the plan asks for more labels than there are, or leaves a client without
///         samples.
std::vector<client> partition(std::span<const std::uint8_t> labels, const partition_plan& plan);

/// The clients that take part in a round, ascending: `participation` of all, drawn without
/// replacement.
std::vector<std::uint64_t> draw_cohort(std::uint64_t seed, std::uint64_t round,
                                       std::int64_t clients, double participation);

/// How many clients take part: participation * clients, rounded.
///
/// Throws  failure when that is none.
std::int64_t cohort_size(std::int64_t clients, double participation);

}  // namespace trainer
