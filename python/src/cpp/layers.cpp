// SPDX-License-Identifier: MIT
/// Layers of PyTorch under their names, as methods of Model: arguments are called as torch.nn has
/// them.
#include <subfed/layers.hpp>

#include "common.hpp"

#include <optional>

namespace subfed_python {

namespace {

using subfed::dimension;
using subfed::model;
using subfed::tensor_id;

subfed::bias to_bias(bool has) { return has ? subfed::bias::added : subfed::bias::none; }
subfed::affine to_affine(bool has) { return has ? subfed::affine::learned : subfed::affine::none; }

/// NamedTuples for what a layer has described; made once, in Python.
py::object& layer_type() {
  static PyObject* const made =
      py::object(
          py::module_::import("collections")
              .attr("namedtuple")("Layer", py::make_tuple("weight", "bias"), "module"_a = "subfed"))
          .release()
          .ptr();
  static py::object out = py::reinterpret_borrow<py::object>(made);
  return out;
}
py::object layer(const std::optional<tensor_id>& weight, const std::optional<tensor_id>& bias) {
  return layer_type()(weight, bias);
}
py::object layer(const subfed::weight_and_bias& made) { return layer(made.weight, made.bias); }

/// A kernel's extents: one number for all dimensions, or one each.
std::vector<std::int64_t> kernel_of(const py::object& size, std::size_t rank) {
  if (PyIndex_Check(size.ptr()) != 0) {
    return std::vector<std::int64_t>(rank, to_i64("kernel size", size));
  }
  auto out = size.cast<std::vector<std::int64_t>>();
  if (out.size() != rank) {
    subfed::detail::fail("subfed: layers: a kernel of " + std::to_string(out.size()) +
                         " extents, expected " + std::to_string(rank));
  }
  return out;
}

using convolution = subfed::weight_and_bias (*)(model&, const std::string&, const dimension&,
                                                const dimension&, const std::vector<std::int64_t>&,
                                                subfed::bias, std::int64_t);

template <class Class>
void add_convolution(Class& c, const char* name, std::size_t rank, const char* text,
                     convolution describe) {
  c.def(
      name,
      [rank, describe](model& net, const std::string& layer_name, const py::object& in,
                       const py::object& out, const py::object& kernel, std::int64_t groups,
                       bool bias) {
        return layer(describe(net, layer_name, to_dimension(net, in), to_dimension(net, out),
                              kernel_of(kernel, rank), to_bias(bias), groups));
      },
      "name"_a, "in_channels"_a, "out_channels"_a, "kernel_size"_a, "groups"_a = 1, "bias"_a = true,
      text);
}

using recurrent = subfed::recurrent_tensors (*)(model&, const std::string&,
                                                const subfed::recurrent_layer&);

template <class Class>
void add_recurrent(Class& c, const char* name, const char* text, recurrent describe) {
  c.def(
      name,
      [describe](model& net, const std::string& layer_name, const py::object& in,
                 const py::object& hidden, const py::object& reverse, bool bias) {
        return describe(net, layer_name,
                        {to_dimension(net, in), to_dimensions(net, hidden),
                         to_dimensions(net, reverse), to_bias(bias)})
            .out;
      },
      "name"_a, "input_size"_a, "hidden"_a, "reverse"_a = py::tuple(), "bias"_a = true, text);
}

}  // namespace

void bind_layers(py::module_& m) {
  m.attr("Layer") = layer_type();
  auto c = py::reinterpret_borrow<py::class_<model>>(m.attr("Model"));

  c.def(
      "linear",
      [](model& net, const std::string& name, const py::object& in, const py::object& out,
         bool bias) {
        return layer(subfed::linear(
            net, name, {to_dimension(net, in), to_dimension(net, out), to_bias(bias)}));
      },
      "name"_a, "in_features"_a, "out_features"_a, "bias"_a = true,
      "name.weight (out, in), name.bias (out).");
  c.def(
      "linear_tied",
      [](model& net, const std::string& name, const py::object& weight, const py::object& in,
         const py::object& out, bool bias) {
        return layer(subfed::linear_tied(net, name,
                                         {to_tensor(net, weight), to_dimension(net, in),
                                          to_dimension(net, out), to_bias(bias)}));
      },
      "name"_a, "weight"_a, "in_features"_a, "out_features"_a, "bias"_a = true,
      "A layer whose weight is a tensor that the model has already: name.bias (out) alone.");

  add_convolution(c, "conv1d", 1, "name.weight (out, in / groups, k), name.bias (out).",
                  [](model& net, const std::string& name, const dimension& in, const dimension& out,
                     const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
                    return subfed::conv1d(net, name, {in, out, k[0], bias, groups});
                  });
  add_convolution(c, "conv2d", 2, "name.weight (out, in / groups, kh, kw), name.bias (out).",
                  [](model& net, const std::string& name, const dimension& in, const dimension& out,
                     const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
                    return subfed::conv2d(net, name, {in, out, k[0], k[1], bias, groups});
                  });
  add_convolution(c, "conv3d", 3, "name.weight (out, in / groups, kd, kh, kw), name.bias (out).",
                  [](model& net, const std::string& name, const dimension& in, const dimension& out,
                     const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
                    return subfed::conv3d(net, name, {in, out, k[0], k[1], k[2], bias, groups});
                  });
  add_convolution(c, "conv_transpose1d", 1, "name.weight (in, out / groups, k), name.bias (out).",
                  [](model& net, const std::string& name, const dimension& in, const dimension& out,
                     const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
                    return subfed::conv_transpose1d(net, name, {in, out, k[0], bias, groups});
                  });
  add_convolution(c, "conv_transpose2d", 2,
                  "name.weight (in, out / groups, kh, kw), name.bias (out).",
                  [](model& net, const std::string& name, const dimension& in, const dimension& out,
                     const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
                    return subfed::conv_transpose2d(net, name, {in, out, k[0], k[1], bias, groups});
                  });
  add_convolution(
      c, "conv_transpose3d", 3, "name.weight (in, out / groups, kd, kh, kw), name.bias (out).",
      [](model& net, const std::string& name, const dimension& in, const dimension& out,
         const std::vector<std::int64_t>& k, subfed::bias bias, std::int64_t groups) {
        return subfed::conv_transpose3d(net, name, {in, out, k[0], k[1], k[2], bias, groups});
      });

  c.def(
      "batch_norm",
      [](model& net, const std::string& name, const py::object& channels, bool affine,
         bool track_running_stats, bool counter) {
        using subfed::running_statistics;
        const auto made = subfed::batch_norm(net, name,
                                             {to_dimension(net, channels), to_affine(affine),
                                              !track_running_stats ? running_statistics::none
                                              : counter ? running_statistics::with_counter
                                                        : running_statistics::kept});
        return layer(made.weight, made.bias);
      },
      "name"_a, "num_features"_a, "affine"_a = true, "track_running_stats"_a = true,
      "num_batches_tracked"_a = true,
      "name.weight, name.bias, and with track_running_stats name.running_mean and "
      "name.running_var (statistics), each (num_features), and name.num_batches_tracked, a "
      "counter of rank 0. With all of them as torch.nn.BatchNorm's state_dict has them.");
  c.def(
      "layer_norm",
      [](model& net, const std::string& name, const py::object& shape, bool affine, bool bias) {
        std::vector<dimension> dimensions;
        if (py::isinstance<py::list>(shape) || py::isinstance<py::tuple>(shape)) {
          dimensions = to_dimensions(net, shape);
        } else {
          dimensions = {to_dimension(net, shape)};
        }
        const auto made =
            subfed::layer_norm(net, name, {dimensions, to_affine(affine), to_bias(bias)});
        return layer(made.weight, made.bias);
      },
      "name"_a, "normalized_shape"_a, "elementwise_affine"_a = true, "bias"_a = true,
      "name.weight, name.bias, each (normalized_shape).");
  c.def(
      "group_norm",
      [](model& net, const std::string& name, std::int64_t groups, const py::object& channels,
         bool affine) {
        const auto made =
            subfed::group_norm(net, name, {to_dimension(net, channels), groups, to_affine(affine)});
        return layer(made.weight, made.bias);
      },
      "name"_a, "num_groups"_a, "num_channels"_a, "affine"_a = true,
      "name.weight, name.bias, each (num_channels).");
  c.def(
      "embedding",
      [](model& net, const std::string& name, const py::object& count, const py::object& width) {
        return subfed::embedding(net, name, {to_dimension(net, count), to_dimension(net, width)});
      },
      "name"_a, "num_embeddings"_a, "embedding_dim"_a,
      "name.weight (num_embeddings, embedding_dim).");
  add_recurrent(c, "lstm",
                "torch.nn.LSTM: weight_ih_l0 (4 hidden, in), weight_hh_l0, bias_ih_l0, bias_hh_l0, "
                ".. `hidden` and `reverse` have a dimension for each layer. Gives what the last "
                "layer writes.",
                [](model& net, const std::string& name, const subfed::recurrent_layer& l) {
                  return subfed::lstm(net, name, l);
                });
  add_recurrent(c, "gru", "torch.nn.GRU; see lstm.",
                [](model& net, const std::string& name, const subfed::recurrent_layer& l) {
                  return subfed::gru(net, name, l);
                });
  add_recurrent(c, "rnn", "torch.nn.RNN; see lstm.",
                [](model& net, const std::string& name, const subfed::recurrent_layer& l) {
                  return subfed::rnn(net, name, l);
                });
  c.def(
      "multihead_attention",
      [](model& net, const std::string& name, const py::object& width, const py::object& inner,
         std::int64_t heads, bool bias, const py::object& key_width,
         const py::object& value_width) {
        subfed::multihead_attention_layer l{
            to_dimension(net, width), to_dimension(net, inner), heads, to_bias(bias), {}, {}};
        if (!key_width.is_none()) l.key_width = to_dimension(net, key_width);
        if (!value_width.is_none()) l.value_width = to_dimension(net, value_width);
        return layer(subfed::multihead_attention(net, name, l).out_proj);
      },
      "name"_a, "embed_dim"_a, "inner"_a, "num_heads"_a, "bias"_a = true, "kdim"_a = py::none(),
      "vdim"_a = py::none(),
      "torch.nn.MultiheadAttention: name.in_proj_weight (3 inner, embed_dim), name.in_proj_bias, "
      "name.out_proj. To cut inside the heads give node.repeat(num_heads) for both.");

  c.def(
      "attention",
      [](model& net, const std::string& name, const py::object& in, const py::object& out,
         const py::object& node, std::int64_t heads, std::optional<std::int64_t> key_value_heads,
         bool bias, const py::object& context) {
        subfed::attention_layer l{
            to_dimension(net, in), to_dimension(net, out),
            subfed::inside_heads(to_dimension(net, node), heads, key_value_heads.value_or(heads)),
            to_bias(bias)};
        if (!context.is_none()) l.context = to_dimension(net, context);
        subfed::attention(net, name, l);
      },
      "name"_a, "in_features"_a, "out_features"_a, "node"_a, "num_heads"_a,
      "num_key_value_heads"_a = py::none(), "bias"_a = true, "context"_a = py::none(),
      "name.q_proj, name.k_proj, name.v_proj, name.o_proj, cut inside the heads: `node` is a "
      "group of as many nodes as a head is wide.");
  c.def(
      "residual_add",
      [](const model& net, const py::args& tensors) {
        if (tensors.empty()) return subfed::residual_add(net, {});
        const tensor_id first = to_tensor(net, tensors[0]);
        dimension out = subfed::residual_add(net, {first});
        for (const py::handle& t : tensors)
          out = subfed::residual_add(net, {first, to_tensor(net, t)});
        return out;
      },
      "What layers that are added write; refuses tensors that write different dimensions.");
  m.def(
      "flatten",
      [](const py::object& channels, std::int64_t positions, const std::string& order) {
        using subfed::flatten_order;
        const model none;
        const dimension d = py::isinstance<subfed::group_id>(channels)
                                ? dimension(channels.cast<subfed::group_id>())
                                : to_dimension(none, channels);
        return subfed::flatten(
            d, positions,
            one_of<flatten_order>("the order", order,
                                  {{"channels_first", flatten_order::channels_first},
                                   {"channels_last", flatten_order::channels_last}}));
      },
      "channels"_a, "positions"_a, "order"_a = "channels_first",
      "Channels at `positions` places, as a linear layer after a flatten reads them.");
}

}  // namespace subfed_python
