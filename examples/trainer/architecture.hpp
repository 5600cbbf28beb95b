// SPDX-License-Identifier: MIT
/// The network as data: its groups of channels, its tensors, and which dimension of which tensor
/// belongs to which group. network.hpp has the same network as a torch module.
#pragma once

#include <cstdint>
#include <subfed/cost.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <vector>

#include "options.hpp"

namespace trainer {

/// How many channels each group has; of the whole network or of a client's part.
struct channel_counts {
  std::vector<std::int64_t>
      stream;  // one per stage: the channels that its residual adds tie together
  std::vector<std::int64_t> inner;  // one per block: between its two convolutions; of a network
      // without residual adds: one per hidden layer; of a Transformer:
      // of a head and hidden by layers, then those of the decoder
  std::int64_t classes = 0;
  model_kind model = model_kind::small;

  friend bool operator==(const channel_counts&, const channel_counts&) = default;
};

/// The network that a device of capacity 1 can train: small has two stages of 32 and 64 channels,
/// times the width; cnn is [Cheng]'s S, with the widths 4 and 8 its M and L. `vocabulary`: the classes of the Transformer.
channel_counts full_size(model_kind model = model_kind::small, std::int64_t width = 1,
                         std::int64_t vocabulary = 1000);

/// The same network with a share of the channels; the classes stay.
channel_counts narrowed(const channel_counts& whole, subfed::capacity share);

/// The same network with `factor` >= 1 times the channels, rounded down.
channel_counts widened(const channel_counts& whole, double factor);

/// A network described once, with the handles that its users ask for.
struct architecture {
  subfed::model net;
  std::vector<subfed::group_id> stream;
  std::vector<subfed::group_id> inner;
  subfed::group_id last;  // of the hidden groups: the one that the output layer reads
  subfed::group_id classes;
  subfed::workload work;  // of one image of 28 x 28 pixels, or one sequence of a text
  model_kind model = model_kind::small;
  norm_kind norm = norm_kind::batch;

  /// Channels of a client's part.
  channel_counts channels(const subfed::submodel& part) const;
};

/// Whether the channels of a stage's input and of its result are one group, as an identity skip
/// asks for that adds them; or two, which released code for [Rolex] draws apart.
enum class skips { tied, untied };

/// Both are for the small network.
struct network_variant {
  norm_kind norm = norm_kind::batch;
  trainer::skips skips = trainer::skips::tied;
};

architecture describe(const channel_counts& whole, const network_variant& variant = {});

}  // namespace trainer
