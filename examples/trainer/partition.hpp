// SPDX-License-Identifier: MIT
/// Which labels and samples each client has. All of it follows from the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trainer {

struct client {
  std::uint64_t number = 0;
  std::vector<std::int64_t> labels;      // ascending; none where it lacks no class
  std::vector<std::int64_t> samples;     // positions in the training set
  std::vector<std::int64_t> tests = {};  // in the test set, its own; none: those of its labels
};

struct partition_plan {
  std::uint64_t seed = 0;
  std::int64_t clients = 100;
  std::int64_t labels_each = 2;
  std::optional<double> dirichlet = {};  // alpha; instead of labels_each
  bool by_class = false;                 // by Dirichlet each label is split over the clients
  std::int64_t samples_each = 600;       // at most; on average where labels are split
};

/// Distributes a training set; no sample goes to two clients.
///
/// By labels: every client has labels_each different labels, every label has the same number of
/// clients (or one more), and samples_each are shared evenly by a client's labels.
/// By Dirichlet: every client has proportions of labels drawn from Dir(alpha, .. alpha), and draws
/// its samples by them from what is left; where a label is used up its share goes to the others.
///
/// By class: each label is split over the clients by proportions drawn from Dir(alpha, .. alpha),
/// so that they have different numbers of samples [FedDrop, 4]. Of each label as many samples are
/// dealt out, samples_each per client in total; a client that gets none is given one of the client
/// that has most.
///
/// Throws  failure when the plan asks for more labels than there are, for an alpha that is not
///         positive, or leaves a client without samples.
std::vector<client> partition(std::span<const std::uint8_t> labels, const partition_plan& plan);

}  // namespace trainer
