// SPDX-License-Identifier: MIT
/// Batch, layer and group normalisation.
#pragma once

#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Whether a normalisation has a weight and a bias.
enum class affine { none, learned };
/// Which buffers a batch norm has: none; running mean and variance; with_counter also
/// num_batches_tracked, which completes PyTorch's state dict.
enum class running_statistics { none, kept, with_counter };

struct batch_norm_layer {
  dimension channels;
  subfed::affine affine = subfed::affine::learned;
  subfed::running_statistics statistics = subfed::running_statistics::none;
};
struct layer_norm_layer {
  std::vector<dimension> shape;  ///< the last dimensions of the input, over which it normalises
  subfed::affine affine = subfed::affine::learned;
  subfed::bias bias = subfed::bias::added;
};
/// Channels are a.repeat(groups), cut inside the groups, or g.block(n) with a group g of `groups`
/// nodes, cut in whole groups.
struct group_norm_layer {
  dimension channels;
  std::int64_t groups;
  subfed::affine affine = subfed::affine::learned;
};

struct batch_norm_tensors {
  std::optional<tensor_id> weight;
  std::optional<tensor_id> bias;
  std::optional<tensor_id> running_mean;
  std::optional<tensor_id> running_var;
  std::optional<tensor_id> num_batches_tracked;
};
struct norm_tensors {
  std::optional<tensor_id> weight;
  std::optional<tensor_id> bias;
};

/// name.weight, name.bias, name.running_mean, name.running_var, each (channels), and
/// name.num_batches_tracked, a 64-bit integer of rank 0: averages keep integers unless options say
/// otherwise. The means and variances are statistics, the number is a counter (see role).
inline batch_norm_tensors batch_norm(model& net, const std::string& name,
                                     const batch_norm_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    batch_norm_tensors made;
    if (layer.affine == affine::learned) {
      made.weight = described.tensor(name + ".weight", {layer.channels});
      made.bias = described.tensor(name + ".bias", {layer.channels});
    }
    if (layer.statistics != running_statistics::none) {
      made.running_mean =
          described.tensor(name + ".running_mean", {layer.channels}, role::statistic);
      made.running_var = described.tensor(name + ".running_var", {layer.channels}, role::statistic);
    }
    if (layer.statistics == running_statistics::with_counter) {
      made.num_batches_tracked = described.tensor(name + ".num_batches_tracked", {}, role::counter);
    }
    return made;
  });
}

/// name.weight, name.bias, each (shape): layer_norm(net, "norm", {.shape = {width}}). PyTorch 1.13
/// always has both; later versions can omit the bias.
///
/// A client normalises over the nodes that it holds: in terms of the global model, it normalises
/// over the kept nodes, not over all nodes with the others at zero.
inline norm_tensors layer_norm(model& net, const std::string& name, const layer_norm_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    norm_tensors made;
    if (layer.affine == affine::learned) {
      made.weight = described.tensor(name + ".weight", layer.shape);
      if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", layer.shape);
    }
    return made;
  });
}

/// name.weight, name.bias, each (channels). Where the groups are cut inside, a client normalises
/// over the nodes that it holds, as in layer_norm.
///
/// Throws  error that names both tensors when groups do not divide the channels, or when clients
///         could cut the groups differently.
inline norm_tensors group_norm(model& net, const std::string& name, const group_norm_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    detail::checked_equal_part(net, "'" + name + ".weight' and '" + name + ".bias'", layer.channels,
                               layer.groups, "groups");
    norm_tensors made;
    if (layer.affine == affine::learned) {
      made.weight = described.tensor(name + ".weight", {layer.channels});
      made.bias = described.tensor(name + ".bias", {layer.channels});
    }
    return made;
  });
}

}  // namespace subfed::inline v0
