// SPDX-License-Identifier: MIT
/// What layers with weights say about axes: products, convolutions, norms, recurrent layers, pooling.
#pragma once

#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

inline void matmul_rule(graph_walk& w, const graph_node& n) {
  if (!w.has(n, 1)) return w.opaque(n, "it has not two inputs");
  traced_value a = w.in(n, 0), b = w.in(n, 1);
  if (a.rank() == 0 || b.rank() == 0) return w.opaque(n, "an input has no axis");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) {
    a.extents.insert(a.extents.begin(), 1);
    a.axes.insert(a.axes.begin(), value_axis{{}});
  }
  if (column) {
    b.extents.push_back(1);
    b.axes.push_back(value_axis{{}});
  }
  const std::size_t inner = b.rank() - 2;
  if (a.extents.back() != b.extents[inner]) return w.opaque(n, "the shapes do not fit");
  std::vector<value_axis> out;
  if (!w.broadcast({&a, &b}, out, 2)) return w.opaque(n, "the shapes do not broadcast");
  w.space.unify(a.axes.back(), b.axes[inner]);
  if (!row) w.written(n.inputs[0], a.rank() - 2);
  if (!column) w.written(n.inputs[1], b.rank() - 1);
  if (!row) out.push_back(a.axes[a.rank() - 2]);
  if (!column) out.push_back(b.axes.back());
  w.set(n, 0, std::move(out));
}

inline void gemm_rule(graph_walk& w, const graph_node& n) {
  if (!w.has(n, 1)) return w.opaque(n, "it has not two inputs");
  traced_value& a = w.in(n, 0);
  traced_value& b = w.in(n, 1);
  if (a.rank() != 2 || b.rank() != 2) return w.opaque(n, "its inputs are not matrices");
  const bool turned_a = n.integer("transA", 0) != 0, turned_b = n.integer("transB", 0) != 0;
  const std::size_t in_a = turned_a ? 0 : 1, in_b = turned_b ? 1 : 0;
  if (a.extents[in_a] != b.extents[in_b]) return w.opaque(n, "the shapes do not fit");
  w.space.unify(a.axes[in_a], b.axes[in_b]);
  w.written(n.inputs[0], 1 - in_a);
  w.written(n.inputs[1], 1 - in_b);
  std::vector<value_axis> out = {a.axes[1 - in_a], b.axes[1 - in_b]};
  if (w.has(n, 2)) {
    traced_value product;
    product.extents = {a.extents[1 - in_a], b.extents[1 - in_b]};
    product.axes = out;
    if (!w.broadcast({&product, &w.in(n, 2)}, out) || out.size() != 2) {
      return w.opaque(n, "the shapes do not broadcast");
    }
  }
  w.set(n, 0, std::move(out));
}

/// The sizes of windows that move over positions.
struct window_sizes {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  std::string padding;
  bool is_rounded_up = false;

  /// False where the attributes do not fit.
  bool read(const graph_node& n, std::vector<std::int64_t> of_kernel) {
    kernel = std::move(of_kernel);
    const std::size_t rank = kernel.size();
    const auto all = [&](const char* name, std::size_t count, std::int64_t otherwise) {
      const graph_attribute* a = n.find(name);
      return a == nullptr ? std::vector<std::int64_t>(count, otherwise) : a->integers;
    };
    strides = all("strides", rank, 1);
    dilations = all("dilations", rank, 1);
    pads = all("pads", 2 * rank, 0);
    if (const graph_attribute* a = n.find("auto_pad")) padding = a->text;
    is_rounded_up = n.integer("ceil_mode", 0) != 0;
    const auto within = [](std::int64_t least) {
      return [least](std::int64_t e) { return e >= least && e < (std::int64_t{1} << 30); };
    };
    return strides.size() == rank && dilations.size() == rank && pads.size() == 2 * rank &&
           std::all_of(kernel.begin(), kernel.end(), within(1)) &&
           std::all_of(strides.begin(), strides.end(), within(1)) &&
           std::all_of(dilations.begin(), dilations.end(), within(1)) &&
           std::all_of(pads.begin(), pads.end(), within(-(std::int64_t{1} << 30)));
  }
  /// Positions after a convolution or pooling; at most 0 where there are none.
  std::int64_t after(std::int64_t positions, std::size_t r) const {
    const std::int64_t reach = dilations[r] * (kernel[r] - 1) + 1;
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      return (positions + strides[r] - 1) / strides[r];
    }
    const std::int64_t begin = pads[r], padded = positions + begin + pads[kernel.size() + r];
    if (padded < reach) return 0;
    std::int64_t out = (padded - reach) / strides[r] + 1;
    if (is_rounded_up && (padded - reach) % strides[r] != 0) {
      // A window that begins in the padding at the end does not count.
      if (out * strides[r] < positions + begin) ++out;
    }
    return out;
  }
};

/// Axes of positions: whole before, and whole and new after.
inline bool moved_window(graph_walk& w, const traced_value& x, const window_sizes& sizes,
                         std::vector<value_axis>& out) {
  for (std::size_t r = 0; r < sizes.kernel.size(); ++r) {
    w.space.make_whole(x.axes[r + 2], w.image);
    if (x.extents[r + 2] > (std::int64_t{1} << 30)) return false;
    const std::int64_t extent = sizes.after(x.extents[r + 2], r);
    if (extent < 1) return false;
    out.push_back(w.space.fresh_whole(extent, w.image));
  }
  return true;
}

/// x (N, groups in, ..), weight (groups out, in, ..) or, where it is transposed, (groups in, out, ..).
struct convolved_channels {
  value_axis in;   // of the input, all groups
  value_axis out;  // of the output, all groups
};
inline bool join_channels(graph_walk& w, const graph_node& n, convolved_channels& made) {
  const traced_value& x = w.in(n, 0);
  const traced_value& weight = w.in(n, 1);
  const bool transposed = n.op == "ConvTranspose";
  const std::int64_t groups = n.integer("group", 1);
  const std::int64_t channels = x.extents[1];
  const std::int64_t all = weight.extents[0], each = weight.extents[1];
  if (groups < 1 || channels % groups != 0 || all % groups != 0) return false;
  if (transposed ? all != channels : each != channels / groups) return false;
  w.written(n.inputs[1], transposed ? 1 : 0);
  if (groups == 1) {
    w.space.unify(x.axes[1], weight.axes[transposed ? 0 : 1]);
    made = {x.axes[1], weight.axes[transposed ? 1 : 0]};
    return true;
  }
  const value_axis group = w.space.fresh(groups);
  const value_axis first = w.space.fresh(all / groups);
  const value_axis all_first = w.space.product(group, first);
  w.space.unify(weight.axes[0], all_first);
  if (transposed) {
    w.space.unify(x.axes[1], all_first);
    made = {x.axes[1], w.space.product(group, weight.axes[1])};
  } else {
    w.space.unify(x.axes[1], w.space.product(group, weight.axes[1]));
    made = {x.axes[1], weight.axes[0]};
  }
  return true;
}

inline void convolution_rule(graph_walk& w, const graph_node& n) {
  if (!w.has(n, 1)) return w.opaque(n, "it has no weight");
  traced_value& x = w.in(n, 0);
  traced_value& weight = w.in(n, 1);
  const std::size_t rank = x.rank();
  if (rank < 3 || weight.rank() != rank) return w.opaque(n, "the shapes do not fit");
  window_sizes sizes;
  if (!sizes.read(n, {weight.extents.begin() + 2, weight.extents.end()})) {
    return w.opaque(n, "its attributes do not fit");
  }
  std::vector<value_axis> positions;
  if (n.op == "Conv") {
    if (!moved_window(w, x, sizes, positions)) return w.opaque(n, "no position is left");
  } else {
    const graph_attribute* given = n.find("output_shape");
    const graph_attribute* more = n.find("output_padding");
    for (std::size_t r = 0; r + 2 < rank; ++r) {
      w.space.make_whole(x.axes[r + 2], w.image);
      std::int64_t extent = 0;
      if (given != nullptr && given->integers.size() + 2 >= rank) {
        extent = given->integers[given->integers.size() - (rank - 2) + r];
      } else if (x.extents[r + 2] < (std::int64_t{1} << 30)) {
        const std::int64_t reach = sizes.dilations[r] * (sizes.kernel[r] - 1) + 1;
        extent = sizes.strides[r] * (x.extents[r + 2] - 1) + reach - sizes.pads[r] -
                 sizes.pads[rank - 2 + r];
        if (sizes.padding.starts_with("SAME")) extent = sizes.strides[r] * x.extents[r + 2];
        if (more != nullptr && r < more->integers.size()) {
          // Less than a stride.
          extent += (std::min)((std::max)(more->integers[r], std::int64_t{0}), sizes.strides[r]);
        }
      }
      if (extent < 1) return w.opaque(n, "no position is left");
      positions.push_back(w.space.fresh_whole(extent, w.image));
    }
  }
  for (std::size_t r = 2; r < rank; ++r) w.space.make_whole(weight.axes[r], w.image);
  convolved_channels channels;
  if (!join_channels(w, n, channels)) return w.opaque(n, "its channels do not fit its groups");
  if (w.has(n, 2)) {
    const traced_value& bias = w.in(n, 2);
    if (bias.rank() != 1 || bias.extents[0] != w.space.extent(channels.out)) {
      return w.opaque(n, "its bias does not fit");
    }
    w.space.unify(bias.axes[0], channels.out);
  }
  std::vector<value_axis> out = {x.axes[0], channels.out};
  out.insert(out.end(), positions.begin(), positions.end());
  w.set(n, 0, std::move(out));
}

inline void pool_rule(graph_walk& w, const graph_node& n) {
  traced_value& x = w.in(n, 0);
  const graph_attribute* kernel = n.find("kernel_shape");
  window_sizes sizes;
  if (kernel == nullptr || x.rank() != kernel->integers.size() + 2 ||
      !sizes.read(n, kernel->integers)) {
    return w.opaque(n, "its attributes do not fit");
  }
  std::vector<value_axis> out = {x.axes[0], x.axes[1]};
  if (!moved_window(w, x, sizes, out)) return w.opaque(n, "no position is left");
  if (n.outputs.size() > 1 && n.outputs[1] != network_graph::no_value) {
    // Indices of the largest count all elements of the input, those of other channels too.
    const std::size_t why = w.space.reason("its nodes are numbered by " + w.text(n));
    for (const value_axis& a : out) w.space.make_whole(a, why);
  }
  w.set(n, 0, out);
  w.set(n, 1, out);
}
inline void global_pool_rule(graph_walk& w, const graph_node& n) {
  std::vector<value_axis> axes = w.in(n, 0).axes;
  if (axes.size() < 2) return w.opaque(n, "its input has no positions");
  for (std::size_t r = 2; r < axes.size(); ++r) {
    w.note(axes[r], w.text(n));
    axes[r] = {{}};
  }
  w.set(n, 0, std::move(axes));
}

/// Joins an axis with a tensor of one dimension.
inline bool join_row(graph_walk& w, const graph_node& n, const value_axis& a, std::size_t input) {
  if (!w.has(n, input)) return true;
  const traced_value& v = w.in(n, input);
  if (v.rank() != 1 || v.extents[0] != w.space.extent(a)) return false;
  w.space.unify(v.axes[0], a);
  return true;
}
inline void batch_norm_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  if (axes.size() < 2) return w.opaque(n, "its input has no channels");
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!join_row(w, n, axes[1], i)) return w.opaque(n, "its parameters do not fit its channels");
    if (i < 3 || !w.has(n, i)) continue;
    if (traced_parameter* p = w.parameter(n.inputs[i])) p->is_statistic = true;
  }
  w.set(n, 0, axes);
  for (std::size_t o = 1; o < n.outputs.size(); ++o) w.set(n, o, {axes[1]});
}
inline void instance_norm_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  if (axes.size() < 2) return w.opaque(n, "its input has no channels");
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!join_row(w, n, axes[1], i)) return w.opaque(n, "its parameters do not fit its channels");
  }
  for (std::size_t r = 2; r < axes.size(); ++r) w.note(axes[r], w.text(n));
  w.set(n, 0, axes);
}
inline void group_norm_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  const std::int64_t groups = n.integer("num_groups", 0);
  if (axes.size() < 2 || groups < 1 || w.in(n, 0).extents[1] % groups != 0) {
    return w.opaque(n, "its channels do not fit its groups");
  }
  const value_axis group = w.space.fresh(groups);
  const value_axis inside = w.space.fresh(w.in(n, 0).extents[1] / groups);
  w.space.unify(axes[1], w.space.product(group, inside));
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!join_row(w, n, w.graph.opset < 21 ? group : axes[1], i)) {
      return w.opaque(n, "its parameters do not fit its channels");
    }
  }
  w.note(inside, w.text(n));
  w.set(n, 0, axes);
}
inline void layer_norm_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  const std::size_t first = graph_walk::axis_of(n.integer("axis", -1), axes.size());
  if (first == axes.size()) return w.opaque(n, "it has no such axis");
  for (std::size_t r = first; r < axes.size(); ++r) w.note(axes[r], w.text(n));
  std::vector<value_axis> joined;
  std::vector<traced_value*> inputs;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (w.has(n, i)) inputs.push_back(&w.in(n, i));
  }
  if (!w.broadcast(inputs, joined) || joined.size() != axes.size()) {
    return w.opaque(n, "its parameters do not fit");
  }
  w.set(n, 0, axes);
  std::vector<value_axis> statistics = axes;
  for (std::size_t r = first; r < axes.size(); ++r) statistics[r] = {{}};
  w.set(n, 1, statistics);
  w.set(n, 2, statistics);
}

/// "gru" of "/encoder/gru/GRU", as exporters name operators; else the operator.
inline std::string layer_name(const graph_node& n) {
  const std::size_t end = n.name.rfind('/');
  if (end == std::string::npos || end == 0) return n.op;
  const std::size_t begin = n.name.rfind('/', end - 1);
  return n.name.substr(begin == std::string::npos ? 0 : begin + 1, end - begin - 1);
}

/// Weights (directions, gates hidden, in), of the state (directions, gates hidden, state), biases.
inline void recurrent_rule(graph_walk& w, const graph_node& n) {
  const std::int64_t gates = n.op == "LSTM" ? 4 : n.op == "GRU" ? 3 : 1;
  if (n.inputs.size() < 3 || !w.has(n, 1) || !w.has(n, 2) || n.integer("layout", 0) != 0) {
    return w.opaque(n, "it has no weights, or another layout");
  }
  const traced_value &x = w.in(n, 0), &weight = w.in(n, 1), &state = w.in(n, 2);
  const bool fits = x.rank() == 3 && weight.rank() == 3 && state.rank() == 3 &&
                    weight.extents[1] % gates == 0 && weight.extents[0] == state.extents[0] &&
                    weight.extents[1] == state.extents[1] && x.extents[2] == weight.extents[2] &&
                    state.extents[2] == weight.extents[1] / gates;
  if (!fits) return w.opaque(n, "the shapes do not fit");
  axis_space& s = w.space;
  const std::size_t gate = s.reason("it is of gates", whole_kind::positions);
  const value_axis directions = weight.axes[0];
  s.make_whole(directions, gate);
  s.unify(directions, state.axes[0]);
  const value_axis hidden = state.axes[2];
  w.labels.push_back(layer_name(n));
  s.name(hidden, w.labels.size() - 1);
  const value_axis rows = s.product(s.fresh_whole(gates, gate), hidden);
  s.unify(weight.axes[1], rows);
  s.unify(state.axes[1], rows);
  s.unify(x.axes[2], weight.axes[2]);
  s.make_whole(x.axes[0], w.image);
  if (w.has(n, 3)) {
    const traced_value& bias = w.in(n, 3);
    if (bias.rank() != 2 || bias.extents[0] != weight.extents[0] ||
        bias.extents[1] != 2 * weight.extents[1]) {
      return w.opaque(n, "its bias does not fit");
    }
    s.unify(bias.axes[0], directions);
    s.unify(bias.axes[1], s.product(s.fresh_whole(2 * gates, gate), hidden));
  }
  if (w.has(n, 4)) {
    const traced_value& lengths = w.in(n, 4);
    if (lengths.rank() != 1 || lengths.extents[0] != x.extents[1]) {
      return w.opaque(n, "its lengths do not fit");
    }
    s.unify(lengths.axes[0], x.axes[1]);
  }
  for (std::size_t i = 5; i < (std::min)(n.inputs.size(), std::size_t{7}); ++i) {
    if (!w.has(n, i)) continue;
    const traced_value& first = w.in(n, i);
    if (first.rank() != 3 || first.extents[0] != weight.extents[0] ||
        first.extents[1] != x.extents[1] || first.extents[2] != state.extents[2]) {
      return w.opaque(n, "its first state does not fit");
    }
    s.unify(first.axes[0], directions);
    s.unify(first.axes[1], x.axes[1]);
    s.unify(first.axes[2], hidden);
  }
  if (w.has(n, 7)) {
    const traced_value& peeps = w.in(n, 7);
    if (peeps.rank() != 2 || peeps.extents[0] != weight.extents[0] ||
        peeps.extents[1] != 3 * state.extents[2]) {
      return w.opaque(n, "its peepholes do not fit");
    }
    s.unify(peeps.axes[0], directions);
    s.unify(peeps.axes[1], s.product(s.fresh_whole(3, gate), hidden));
  }
  w.set(n, 0, {x.axes[0], directions, x.axes[1], hidden});
  for (std::size_t o = 1; o < n.outputs.size(); ++o) w.set(n, o, {directions, x.axes[1], hidden});
}

}  // namespace subfed::inline v0::detail
