// SPDX-License-Identifier: MIT
/// Which rule an operator follows, and the walk over all operators.
#pragma once

#include <subfed/graph/detail/constants.hpp>
#include <subfed/graph/detail/elementwise_rules.hpp>
#include <subfed/graph/detail/equal_parts.hpp>
#include <subfed/graph/detail/layer_rules.hpp>
#include <subfed/graph/detail/shape_rules.hpp>
#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

struct operator_rule {
  std::string_view op;
  void (*rule)(graph_walk&, const graph_node&);
};

// Operators that are not here stay whole, so that a new one needs one line, once somebody knows what it does.
inline constexpr operator_rule operator_rules[] = {
    {"Conv", convolution_rule},
    {"ConvTranspose", convolution_rule},
    {"MatMul", matmul_rule},
    {"Gemm", gemm_rule},
    {"Einsum", einsum_rule},
    {"BatchNormalization", batch_norm_rule},
    {"InstanceNormalization", instance_norm_rule},
    {"GroupNormalization", group_norm_rule},
    {"LayerNormalization", layer_norm_rule},
    {"RMSNormalization", layer_norm_rule},
    {"LSTM", recurrent_rule},
    {"GRU", recurrent_rule},
    {"RNN", recurrent_rule},
    {"MaxPool", pool_rule},
    {"AveragePool", pool_rule},
    {"LpPool", pool_rule},
    {"GlobalAveragePool", global_pool_rule},
    {"GlobalMaxPool", global_pool_rule},

    {"Add", elementwise_rule},
    {"Sub", elementwise_rule},
    {"Mul", elementwise_rule},
    {"Div", elementwise_rule},
    {"Pow", elementwise_rule},
    {"Mod", elementwise_rule},
    {"Min", elementwise_rule},
    {"Max", elementwise_rule},
    {"Sum", elementwise_rule},
    {"Mean", elementwise_rule},
    {"Where", elementwise_rule},
    {"Equal", elementwise_rule},
    {"Greater", elementwise_rule},
    {"GreaterOrEqual", elementwise_rule},
    {"Less", elementwise_rule},
    {"LessOrEqual", elementwise_rule},
    {"And", elementwise_rule},
    {"Or", elementwise_rule},
    {"Xor", elementwise_rule},
    {"PRelu", prelu_rule},

    {"Identity", identity_rule},
    {"Relu", unary_rule},
    {"LeakyRelu", unary_rule},
    {"ThresholdedRelu", unary_rule},
    {"Elu", unary_rule},
    {"Selu", unary_rule},
    {"Celu", unary_rule},
    {"Gelu", unary_rule},
    {"Mish", unary_rule},
    {"Swish", unary_rule},
    {"Sigmoid", unary_rule},
    {"HardSigmoid", unary_rule},
    {"HardSwish", unary_rule},
    {"Tanh", unary_rule},
    {"Softplus", unary_rule},
    {"Softsign", unary_rule},
    {"Erf", unary_rule},
    {"Exp", unary_rule},
    {"Log", unary_rule},
    {"Sqrt", unary_rule},
    {"Reciprocal", unary_rule},
    {"Neg", unary_rule},
    {"Abs", unary_rule},
    {"Sign", unary_rule},
    {"Floor", unary_rule},
    {"Ceil", unary_rule},
    {"Round", unary_rule},
    {"Sin", unary_rule},
    {"Cos", unary_rule},
    {"Tan", unary_rule},
    {"Asin", unary_rule},
    {"Acos", unary_rule},
    {"Atan", unary_rule},
    {"Sinh", unary_rule},
    {"Cosh", unary_rule},
    {"Asinh", unary_rule},
    {"Acosh", unary_rule},
    {"Atanh", unary_rule},
    {"Shrink", unary_rule},
    {"Not", unary_rule},
    {"IsNaN", unary_rule},
    {"IsInf", unary_rule},
    {"Clip", unary_rule},
    {"Cast", unary_rule},
    {"CastLike", unary_rule},
    {"Dropout", unary_rule},
    {"Bernoulli", unary_rule},
    {"RandomNormalLike", unary_rule},
    {"RandomUniformLike", unary_rule},

    {"Softmax", softmax_rule},
    {"LogSoftmax", softmax_rule},
    {"Hardmax", softmax_rule},
    {"CumSum", cumsum_rule},
    {"Trilu", triangle_rule},
    {"LpNormalization", normalization_rule},
    {"LRN", neighbours_rule},
    {"OneHot", one_hot_rule},
    {"ReduceMean", reduce_rule},
    {"ReduceSum", reduce_rule},
    {"ReduceMax", reduce_rule},
    {"ReduceMin", reduce_rule},
    {"ReduceProd", reduce_rule},
    {"ReduceL1", reduce_rule},
    {"ReduceL2", reduce_rule},
    {"ReduceSumSquare", reduce_rule},
    {"ReduceLogSumExp", reduce_rule},
    {"ReduceLogSum", reduce_rule},
    {"ArgMax", arg_rule},
    {"ArgMin", arg_rule},
    {"TopK", topk_rule},

    {"Reshape", reshape_rule},
    {"Flatten", flatten_rule},
    {"Transpose", transpose_rule},
    {"Squeeze", squeeze_rule},
    {"Unsqueeze", unsqueeze_rule},
    {"Concat", concat_rule},
    {"Split", split_rule},
    {"Slice", slice_rule},
    {"Gather", gather_rule},
    {"GatherElements", scatter_rule},
    {"ScatterElements", scatter_rule},
    {"ScatterND", scatter_rule},
    {"Expand", expand_rule},
    {"Tile", tile_rule},
    {"Pad", pad_rule},
    {"Resize", resize_rule},
    {"Upsample", resize_rule},
    {"DepthToSpace", depth_rule},
    {"SpaceToDepth", depth_rule},
};

/// Values that are filled from a shape.
inline void filled_rule(graph_walk& w, const graph_node& n) {
  const auto to = w.integers(n, "shape", 0);
  if (!to) return w.opaque(n, "its shape is not a constant");
  std::vector<value_axis> axes;
  for (const std::int64_t e : *to) {
    if (e < 0) return w.opaque(n, "the shape does not fit");
    axes.push_back(w.space.fresh(e));
  }
  w.set(n, 0, std::move(axes));
}

inline void set_constant(graph_walk& w, const graph_node& n, const traced_value& constant) {
  std::vector<value_axis> axes;
  std::size_t why = axis_space::none;
  if (!constant.is_uniform) {
    why = w.space.reason("it meets constants that differ from node to node");
  }
  for (const std::int64_t e : constant.extents) {
    axes.push_back(constant.is_uniform ? w.space.fresh(e) : w.space.fresh_whole(e, why));
  }
  w.set(n, 0, std::move(axes));
}

/// Whether the operator's output has one value everywhere when its input has.
inline bool keeps_uniform(const std::string& op) {
  constexpr std::string_view all[] = {"Expand",   "Slice",     "Reshape", "Transpose",
                                      "Squeeze",  "Unsqueeze", "Cast",    "Tile",
                                      "Identity", "Flatten",   "Split",   "Neg"};
  return std::find(std::begin(all), std::end(all), op) != std::end(all);
}

inline void apply_rule(graph_walk& w, const graph_node& n) {
  bool is_uniform = n.op == "ConstantOfShape";
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!w.has(n, i) || !w.in(n, i).is_uniform) continue;
    // Two that read the same zeros have nothing in common.
    traced_value& zeros = w.in(n, i);
    for (std::size_t r = 0; r < zeros.rank(); ++r) zeros.axes[r] = w.space.fresh(zeros.extents[r]);
    is_uniform = is_uniform || (i == 0 && keeps_uniform(n.op));
  }
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!w.has(n, i)) continue;
    if (traced_parameter* p = w.parameter(n.inputs[i])) p->is_used = true;
  }
  traced_value constant;
  const bool is_constant = evaluate_constant(w, n, constant);
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!w.has(n, i) || w.in(n, i).is_known) continue;
    if (!is_constant) return w.after_opaque(n);
  }
  void (*rule)(graph_walk&, const graph_node&) = nullptr;
  for (const operator_rule& r : operator_rules) {
    if (r.op == n.op) rule = r.rule;
  }
  if (n.op == "ConstantOfShape" || n.op == "RandomNormal" || n.op == "RandomUniform") {
    rule = filled_rule;
  }
  const bool by_rule =
      rule != nullptr &&
      (n.op == "Identity" || n.op == "Squeeze" || n.op == "Unsqueeze" || n.op == "Reshape" ||
       n.op == "Flatten" || n.op == "Expand" || n.op == "Transpose" || n.op == "Slice");
  if (is_constant && !by_rule) {
    set_constant(w, n, constant);
  } else if (n.op == "Range") {
    return w.opaque(n, "its bounds are not constants");
  } else if (rule == nullptr) {
    return w.opaque(n, "this operator is not known");
  } else if (n.inputs.empty() ? rule != filled_rule : !w.has(n, 0)) {
    return w.opaque(n, "it has no input");
  } else if (n.outputs.empty() || n.outputs[0] == network_graph::no_value) {
    return w.opaque(n, "it has no output");
  } else {
    rule(w, n);
  }
  for (const std::size_t o : n.outputs) {
    if (o != network_graph::no_value && w.values[o].is_known) w.values[o].is_uniform = is_uniform;
  }
  if (!is_constant) return;
  traced_value& made = w.values[n.outputs[0]];
  std::int64_t count = 1;
  for (const std::int64_t e : made.extents) count *= e;
  if (!made.is_known || count != static_cast<std::int64_t>(constant.elements.size())) return;
  made.elements = std::move(constant.elements);
  made.is_integer = constant.is_integer;
  made.is_constant = true;
  made.is_uniform = constant.is_uniform;
}

/// Follows all operators and makes the network's outputs whole.
inline void walk_through(graph_walk& w) {
  for (const graph_node& n : w.graph.nodes) apply_rule(w, n);
  for (const std::size_t o : w.graph.outputs) {
    const std::size_t why =
        w.space.reason("it reaches the output '" + w.graph.values[o].name + "'");
    for (const value_axis& a : w.values[o].axes) w.space.make_whole(a, why);
  }
  cut_parts_alike(w);
}

}  // namespace subfed::inline v0::detail
