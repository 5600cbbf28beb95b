// SPDX-License-Identifier: MIT
/// Convolutions over one, two and three dimensions: ordinary, grouped, depthwise, transposed.
#pragma once

#include <subfed/layers/detail/equal_parts.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// A convolution. `groups` is given, never guessed from shapes. With more than one, the channels
/// must be described so that every client's convolution has equal groups:
///
/// - Cut inside the groups, the same channels of each: in = a.repeat(groups), out =
///   b.repeat(groups). The client's convolution has as many groups.
/// - Cut whole groups: in = g.block(m), out = g.block(n) with a group g of `groups` nodes. A
///   depthwise convolution is in = out = g. The client's convolution has as many groups as it holds
///   nodes of g.
struct conv1d_layer {
  dimension in;
  dimension out;
  std::int64_t kernel_size;
  subfed::bias bias = subfed::bias::added;
  std::int64_t groups = 1;
};
/// See conv1d_layer.
struct conv2d_layer {
  dimension in;
  dimension out;
  std::int64_t kernel_height;
  std::int64_t kernel_width;
  subfed::bias bias = subfed::bias::added;
  std::int64_t groups = 1;
};
/// See conv1d_layer.
struct conv3d_layer {
  dimension in;
  dimension out;
  std::int64_t kernel_depth;
  std::int64_t kernel_height;
  std::int64_t kernel_width;
  subfed::bias bias = subfed::bias::added;
  std::int64_t groups = 1;
};

namespace detail {

enum class weight_order { out_in, in_out };

template <class Layer>
weight_and_bias convolution(model& net, const std::string& name, const Layer& layer,
                            weight_order order, std::initializer_list<std::int64_t> kernel) {
  return describe_all_or_nothing(net, [&](model& described) {
    std::string tensors = "'" + name + ".weight'";
    if (layer.bias == bias::added) tensors += " and '" + name + ".bias'";
    const std::string parts = "groups";
    const auto in =
        checked_equal_part(net, "the input of " + tensors, layer.in, layer.groups, parts);
    const auto out = checked_equal_part(net, tensors, layer.out, layer.groups, parts);
    if (in.parts_are != out.parts_are) {
      fail("subfed: layers: a client could hold other groups of the input (" +
           dimension_text(net, layer.in) + ") than of the output (" +
           dimension_text(net, layer.out) + ") of " + tensors + " with " +
           std::to_string(layer.groups) + " groups; bind both to one group of nodes");
    }
    std::vector<dimension> dimensions;
    if (order == weight_order::out_in) {
      dimensions = {layer.out, in.one};
    } else {
      dimensions = {layer.in, out.one};
    }
    dimensions.insert(dimensions.end(), kernel.begin(), kernel.end());
    weight_and_bias made{described.tensor(name + ".weight", dimensions), {}};
    if (layer.bias == bias::added) made.bias = described.tensor(name + ".bias", {layer.out});
    return made;
  });
}

}  // namespace detail

/// name.weight (out, in / groups, kernel_size), name.bias (out).
///
/// Throws  error that names the tensors when groups do not divide the channels, or when clients
///         could cut the groups differently.
inline weight_and_bias conv1d(model& net, const std::string& name, const conv1d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::out_in, {layer.kernel_size});
}

/// name.weight (out, in / groups, kernel_height, kernel_width), name.bias (out).
///
///   conv2d(net, "conv1", {3, stem, 3, 3, bias::none});
///   conv2d(net, "depthwise", {.in = c, .out = c, .kernel_height = 3, .kernel_width = 3,
///                             .groups = 64});
///
/// Throws  as conv1d.
inline weight_and_bias conv2d(model& net, const std::string& name, const conv2d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::out_in,
                             {layer.kernel_height, layer.kernel_width});
}

/// name.weight (out, in / groups, kernel_depth, kernel_height, kernel_width), name.bias (out).
///
/// Throws  as conv1d.
inline weight_and_bias conv3d(model& net, const std::string& name, const conv3d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::out_in,
                             {layer.kernel_depth, layer.kernel_height, layer.kernel_width});
}

/// name.weight (in, out / groups, kernel_size), name.bias (out).
///
/// Throws  as conv1d.
inline weight_and_bias conv_transpose1d(model& net, const std::string& name,
                                        const conv1d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::in_out, {layer.kernel_size});
}

/// name.weight (in, out / groups, kernel_height, kernel_width), name.bias (out).
///
/// Throws  as conv1d.
inline weight_and_bias conv_transpose2d(model& net, const std::string& name,
                                        const conv2d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::in_out,
                             {layer.kernel_height, layer.kernel_width});
}

/// name.weight (in, out / groups, kernel_depth, kernel_height, kernel_width), name.bias (out).
///
/// Throws  as conv1d.
inline weight_and_bias conv_transpose3d(model& net, const std::string& name,
                                        const conv3d_layer& layer) {
  return detail::convolution(net, name, layer, detail::weight_order::in_out,
                             {layer.kernel_depth, layer.kernel_height, layer.kernel_width});
}

}  // namespace subfed::inline v0
