// SPDX-License-Identifier: MIT
/// Fully connected layers, including those that share another layer's weight.
#pragma once

#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/model.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Whether a layer has a bias.
enum class bias { none, added };

/// How a weight lies: (out, in) as in torch.nn.Linear, or (in, out) as in GPT-2's Conv1D.
enum class linear_weight { out_in, in_out };

struct linear_layer {
  dimension in;
  dimension out;
  subfed::bias bias = subfed::bias::added;
  linear_weight weight = linear_weight::out_in;
};
struct tied_linear_layer {
  tensor_id weight;  ///< the shared weight, for instance of an embedding
  dimension in;
  dimension out;
  subfed::bias bias = subfed::bias::added;
};

struct weight_and_bias {
  tensor_id weight;
  std::optional<tensor_id> bias;
};

/// name.weight (out, in), or (in, out) where the layer says so, name.bias (out). Of (in, out) give
/// residual_add the bias.
///
///   linear(net, "fc1", {.in = 784, .out = hidden});
///   linear(net, "h.0.mlp.c_fc", {.in = width, .out = hidden, .weight = linear_weight::in_out});
inline weight_and_bias linear(model& net, const std::string& name, const linear_layer& layer) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    std::vector<dimension> dimensions = {layer.out, layer.in};
    if (layer.weight == linear_weight::in_out) std::swap(dimensions[0], dimensions[1]);
    weight_and_bias made{described.tensor(name + ".weight", dimensions), {}};
    if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", {layer.out});
    return made;
  });
}

/// A layer whose weight is a tensor that the model already has: only name.bias (out) is described.
/// PyTorch shares the parameter, so it is trained, sent and averaged once. (Its state dict lists it
/// under both names; named_parameters() under the first.)
///
///   const auto words = embedding(net, "embedding", {.count = 10000, .width = width});
///   linear_tied(net, "decoder", {.weight = words, .in = width, .out = 10000});
///
/// Throws  error that names both weights when the shared one is not (out, in).
inline weight_and_bias linear_tied(model& net, const std::string& name,
                                   const tied_linear_layer& layer) {
  const auto& shared = net[layer.weight];
  if (shared.dimensions != std::vector<dimension>{layer.out, layer.in}) {
    detail::fail("subfed: layers: '" + name + ".weight' " +
                 detail::shape_text(std::vector{net.extent(layer.out), net.extent(layer.in)}) +
                 " = " + detail::dimensions_text(net, std::vector{layer.out, layer.in}) +
                 " cannot be the tensor '" + shared.name + "' " +
                 detail::shape_text(shared.extents) + " = " +
                 detail::dimensions_text(net, shared.dimensions));
  }
  return detail::describe_all_or_nothing(net, [&](model& described) {
    weight_and_bias made{layer.weight, {}};
    if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", {layer.out});
    return made;
  });
}

}  // namespace subfed::inline v0
