// SPDX-License-Identifier: MIT
/// Registers the tensors of standard layers under the names and shapes that PyTorch gives them.
#pragma once

#include <subfed/model.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace subfed::inline v0 {

/// Whether a layer has a tensor of that kind.
enum class bias { none, added };
enum class affine { none, learned };
enum class running_statistics { none, kept };

struct linear_layer {
  dimension in;
  dimension out;
  subfed::bias bias = subfed::bias::added;
};
struct conv2d_layer {
  dimension in;
  dimension out;
  std::int64_t kernel_height;
  std::int64_t kernel_width;
  subfed::bias bias = subfed::bias::added;
};
struct batch_norm_layer {
  dimension channels;
  subfed::affine affine = subfed::affine::learned;
  subfed::running_statistics statistics = subfed::running_statistics::none;
};

struct weight_and_bias {
  tensor_id weight;
  std::optional<tensor_id> bias;
};
struct batch_norm_tensors {
  std::optional<tensor_id> weight;
  std::optional<tensor_id> bias;
  std::optional<tensor_id> running_mean;
  std::optional<tensor_id> running_var;
};

/// name.weight (out, in), name.bias (out).
///
///   linear(net, "fc1", {.in = 784, .out = hidden});
inline weight_and_bias linear(model& net, const std::string& name, const linear_layer& layer) {
  model described = net;  // a name that is taken leaves net as it was
  weight_and_bias made{described.tensor(name + ".weight", {layer.out, layer.in}), {}};
  if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", {layer.out});
  net = std::move(described);
  return made;
}

/// name.weight (out, in, kernel_height, kernel_width), name.bias (out). An ordinary convolution:
/// every output channel reads all input channels.
inline weight_and_bias conv2d(model& net, const std::string& name, const conv2d_layer& layer) {
  model described = net;
  weight_and_bias made{described.tensor(name + ".weight", {layer.out, layer.in, layer.kernel_height,
                                                           layer.kernel_width}),
                       {}};
  if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", {layer.out});
  net = std::move(described);
  return made;
}

/// name.weight, name.bias, name.running_mean, name.running_var, each (channels). PyTorch's
/// num_batches_tracked is an integer that is not averaged and is no tensor of the model.
inline batch_norm_tensors batch_norm(model& net, const std::string& name,
                                     const batch_norm_layer& layer) {
  model described = net;
  batch_norm_tensors made;
  if (layer.affine == affine::learned) {
    made.weight = described.tensor(name + ".weight", {layer.channels});
    made.bias = described.tensor(name + ".bias", {layer.channels});
  }
  if (layer.statistics == running_statistics::kept) {
    made.running_mean = described.tensor(name + ".running_mean", {layer.channels});
    made.running_var = described.tensor(name + ".running_var", {layer.channels});
  }
  net = std::move(described);
  return made;
}

}  // namespace subfed::inline v0
