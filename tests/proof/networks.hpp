// SPDX-License-Identifier: MIT
/// Small networks as plain loops over the views of their tensors, each with its right description. They
/// read widths from the views, so that they compute sub-networks too.
#pragma once

#include <subfed/layers.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace proof_networks {

using numbers = std::vector<double>;
using views = subfed::tensor_views<const double>;
using view = subfed::tensor_view<const double>;
using forward_type = std::function<numbers(const subfed::submodel&, const views&)>;

struct network {
  std::string name;
  subfed::model net;
  forward_type forward;
  std::vector<subfed::tensor_id> without_effect = {};
};

/// Finds a view by its tensor's name.
struct named_views {
  const subfed::model& net;
  const views& all;

  const view* find(const std::string& name) const {
    for (std::size_t t = 0; t < net.tensors().size(); ++t) {
      if (net.tensors()[t].name == name) return &all[t];
    }
    return nullptr;
  }
  const view& operator()(const std::string& name) const { return *find(name); }
};

inline numbers random_numbers(std::uint64_t seed, std::size_t count) {
  support::seeded random(seed);
  numbers out(count);
  for (double& x : out) x = 2 * random.unit() - 1;
  return out;
}
inline void relu(numbers& x) {
  for (double& v : x) v = (std::max)(v, 0.0);
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline void append(numbers& to, const numbers& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// W x + b.
inline numbers linear(const named_views& v, const std::string& name, const numbers& x) {
  const view& w = v(name + ".weight");
  const view* bias = v.find(name + ".bias");
  const std::int64_t inputs = w.extent(1);
  numbers out;
  for (std::int64_t o = 0; o < w.extent(0); ++o) {
    double sum = bias != nullptr ? (*bias)(o) : 0;
    const double* row = w.data_handle() + o * inputs;  // row-major
    for (std::int64_t i = 0; i < inputs; ++i) sum += row[i] * x[static_cast<std::size_t>(i)];
    out.push_back(sum);
  }
  return out;
}

constexpr std::int64_t side = 3;
constexpr std::int64_t pixels = side * side;

/// 3 x 3, padding 1, on channels of side x side; in `groups` groups.
inline numbers conv(const named_views& v, const std::string& name, const numbers& x,
                    std::int64_t groups = 1) {
  const view& w = v(name + ".weight");
  const std::int64_t out_each = w.extent(0) / groups;
  numbers out(static_cast<std::size_t>(w.extent(0) * pixels));
  for (std::int64_t o = 0; o < w.extent(0); ++o) {
    for (std::int64_t at = 0; at < pixels; ++at) {
      double sum = 0;
      for (std::int64_t c = 0; c < w.extent(1); ++c) {
        const std::int64_t channel = o / out_each * w.extent(1) + c;
        const double* kernel = w.data_handle() + (o * w.extent(1) + c) * 9;  // row-major
        for (std::int64_t k = 0; k < 9; ++k) {
          const std::int64_t row = at / side + k / 3 - 1;
          const std::int64_t column = at % side + k % 3 - 1;
          if (row < 0 || column < 0 || row >= side || column >= side) continue;
          sum += kernel[k] * x[static_cast<std::size_t>(channel * pixels + row * side + column)];
        }
      }
      out[static_cast<std::size_t>(o * pixels + at)] = sum;
    }
  }
  return out;
}
inline numbers batch_norm(const named_views& v, const std::string& name, numbers x) {
  const view& mean = v(name + ".running_mean");
  const view& variance = v(name + ".running_var");
  const view& weight = v(name + ".weight");
  const view& bias = v(name + ".bias");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = static_cast<std::int64_t>(i) / pixels;
    x[i] = (x[i] - mean(c)) / std::sqrt(variance(c) + 1e-5) * weight(c) + bias(c);
  }
  return x;
}
/// Over `groups` equal parts of x, whose elements are channels of `inner` numbers.
inline numbers group_norm(const named_views& v, const std::string& name, numbers x,
                          std::size_t groups, std::size_t inner) {
  const std::size_t each = x.size() / groups;
  const view& weight = v(name + ".weight");
  const view& bias = v(name + ".bias");
  for (std::size_t g = 0; g < groups; ++g) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < each; ++i) mean += x[g * each + i] / static_cast<double>(each);
    for (std::size_t i = 0; i < each; ++i) {
      square += (x[g * each + i] - mean) * (x[g * each + i] - mean) / static_cast<double>(each);
    }
    for (std::size_t i = 0; i < each; ++i) {
      const auto c = static_cast<std::int64_t>((g * each + i) / inner);
      double& y = x[g * each + i];
      y = (y - mean) / std::sqrt(square + 1e-5) * weight(c) + bias(c);
    }
  }
  return x;
}

/// Runs `one` on some inputs of `count` numbers each.
template <class One>
numbers on_inputs(std::size_t count, One&& one) {
  numbers out;
  for (std::uint64_t sample = 0; sample < 2; ++sample) {
    append(out, one(random_numbers(100 + sample, count)));
  }
  return out;
}

inline network mlp() {
  subfed::model net;
  const auto h1 = net.group("h1", 5);
  const auto h2 = net.group("h2", 5);
  subfed::linear(net, "fc1", {.in = 4, .out = h1});
  subfed::linear(net, "fc2", {.in = h1, .out = h2});
  subfed::linear(net, "fc3", {.in = h2, .out = 3});
  return {"mlp", net, [net](const subfed::submodel&, const views& all) {
            const named_views v{net, all};
            return on_inputs(4, [&](const numbers& x) {
              numbers h = linear(v, "fc1", x);
              relu(h);
              h = linear(v, "fc2", h);
              relu(h);
              return linear(v, "fc3", h);
            });
          }};
}

/// conv, norm, a residual block of two, flatten, linear; all widths equal.
inline network residual() {
  using subfed::bias;
  subfed::model net;
  const auto a = net.group("a", 4);
  const auto b = net.group("b", 4);
  const auto classes = net.group("classes", 3, subfed::cut::never);
  const auto norm = [&net](const char* name, subfed::group_id g) {
    subfed::batch_norm(net, name,
                       {g, subfed::affine::learned, subfed::running_statistics::with_counter});
  };
  subfed::conv2d(net, "conv1", {2, a, 3, 3, bias::none});
  norm("bn1", a);
  subfed::conv2d(net, "conv2", {a, b, 3, 3, bias::none});
  norm("bn2", b);
  subfed::conv2d(net, "conv3", {b, a, 3, 3, bias::none});
  norm("bn3", a);
  subfed::linear(net, "fc", {.in = subfed::flatten(a, pixels), .out = classes});
  return {"residual", net, [net](const subfed::submodel&, const views& all) {
            const named_views v{net, all};
            return on_inputs(2 * pixels, [&](const numbers& x) {
              numbers stream = batch_norm(v, "bn1", conv(v, "conv1", x));
              relu(stream);
              numbers inner = batch_norm(v, "bn2", conv(v, "conv2", stream));
              relu(inner);
              inner = batch_norm(v, "bn3", conv(v, "conv3", inner));
              for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += inner[i];
              relu(stream);
              return linear(v, "fc", stream);
            });
          }};
}

/// Two branches concatenated, a grouped convolution cut inside, a depthwise one, a group norm of whole
/// groups.
inline network branches() {
  using subfed::bias;
  subfed::model net;
  const auto a = net.group("a", 3);
  const auto b = net.group("b", 3);
  const auto inner = net.group("inner", 2);
  const auto norms = net.group("norms", 3);
  subfed::conv2d(net, "left", {2, a, 3, 3, bias::none});
  subfed::conv2d(net, "right", {2, b, 3, 3, bias::none});
  subfed::conv2d(net, "fuse", {subfed::concat({a, b}), inner.repeat(2), 3, 3, bias::none});
  subfed::conv2d(net, "grouped", {inner.repeat(2), inner.repeat(2), 3, 3, bias::none, 2});
  subfed::conv2d(net, "widen", {inner.repeat(2), norms.block(2), 3, 3, bias::none});
  subfed::group_norm(net, "norm", {norms.block(2), 3});
  subfed::linear(net, "head", {.in = norms.block(2).block(pixels), .out = 3});
  return {"branches", net, [net](const subfed::submodel&, const views& all) {
            const named_views v{net, all};
            const auto groups = static_cast<std::size_t>(v("norm.weight").extent(0) / 2);
            return on_inputs(2 * pixels, [&](const numbers& x) {
              numbers both = conv(v, "left", x);
              append(both, conv(v, "right", x));
              relu(both);
              numbers h = conv(v, "fuse", both);
              relu(h);
              h = conv(v, "grouped", h, 2);
              relu(h);
              h = group_norm(v, "norm", conv(v, "widen", h), groups, pixels);
              relu(h);
              return linear(v, "head", h);
            });
          }};
}

/// One layer of self-attention over five tokens: embedding, fused rows of q, k, v, projection, layer
/// norm; heads cut inside or as a whole. `rotary`: q and k are turned, pairs are (i, i + width / 2).
enum class heads_are { inside, whole, rotary };

inline network attention(heads_are kind) {
  subfed::model net;
  const std::int64_t heads = kind == heads_are::whole ? 3 : 2;
  const auto d = net.group("d", 5);
  const auto g = net.group("heads", kind == heads_are::whole ? heads : 3);
  subfed::embedding(net, "words", {.count = 7, .width = d});
  const std::int64_t width = kind == heads_are::whole ? 2 : kind == heads_are::rotary ? 6 : 3;
  const subfed::attention_heads cut = kind == heads_are::whole ? subfed::whole_heads(net, g, width)
                                      : kind == heads_are::rotary
                                          ? subfed::inside_heads(g.repeat(2), heads)
                                          : subfed::inside_heads(g, heads);
  const auto made = subfed::fused_attention(net, "attn", {.in = d, .out = d, .heads = cut});
  subfed::layer_norm(net, "norm", {.shape = {d}});
  subfed::linear(net, "head", {.in = d, .out = 3});
  static_cast<void>(made);
  const auto forward = [net, kind, heads, g](const subfed::submodel& sub, const views& all) {
    const named_views v{net, all};
    const view& words = v("words.weight");
    const auto inner = static_cast<std::size_t>(v("attn.proj.weight").extent(1));
    const auto whole = static_cast<std::int64_t>(inner) / 2;
    const auto count = static_cast<std::size_t>(kind == heads_are::whole ? whole : heads);
    const std::size_t w = inner / count;
    std::vector<numbers> x, qkv;
    for (const std::int64_t word : {3, 0, 6, 2, 5}) {
      numbers row;
      for (std::int64_t i = 0; i < words.extent(1); ++i) row.push_back(words(word, i));
      x.push_back(row);
      qkv.push_back(linear(v, "attn.qkv", row));
    }
    if (kind == heads_are::rotary) {
      for (std::size_t t = 0; t < qkv.size(); ++t) {
        for (std::size_t h = 0; h < 2 * count; ++h) {  // queries and keys
          for (std::size_t i = 0; i < w / 2; ++i) {
            const auto pair = static_cast<double>(sub[g][static_cast<std::int64_t>(i)]);
            const double angle = static_cast<double>(t) * (1 + pair) / 2;
            double& one = qkv[t][h * w + i];
            double& two = qkv[t][h * w + i + w / 2];
            const double turned = one * std::cos(angle) - two * std::sin(angle);
            two = one * std::sin(angle) + two * std::cos(angle);
            one = turned;
          }
        }
      }
    }
    numbers out;
    for (std::size_t t = 0; t < x.size(); ++t) {
      numbers mixed(inner);
      for (std::size_t h = 0; h < count; ++h) {
        numbers weight;
        double sum = 0;
        for (const numbers& other : qkv) {
          double score = 0;
          for (std::size_t i = 0; i < w; ++i) score += qkv[t][h * w + i] * other[inner + h * w + i];
          weight.push_back(std::exp(score / 2));
          sum += weight.back();
        }
        for (std::size_t s = 0; s < qkv.size(); ++s) {
          for (std::size_t i = 0; i < w; ++i) {
            mixed[h * w + i] += weight[s] / sum * qkv[s][2 * inner + h * w + i];
          }
        }
      }
      numbers y = linear(v, "attn.proj", mixed);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[t][i];
      append(out, linear(v, "head", group_norm(v, "norm", y, 1, 1)));
    }
    return out;
  };
  const char* names[] = {"attention inside heads", "attention in whole heads", "rotary attention"};
  return {names[static_cast<std::size_t>(kind)], net, forward};
}

/// An LSTM over four steps and a decoder after the last.
inline network lstm() {
  subfed::model net;
  const auto width = net.group("width", 4);
  const auto hidden = net.group("hidden", 4);
  subfed::embedding(net, "words", {.count = 6, .width = width});
  subfed::lstm(net, "lstm", {.in = width, .hidden = {hidden}});
  subfed::linear(net, "decoder", {.in = hidden, .out = 3});
  return {"lstm", net, [net](const subfed::submodel&, const views& all) {
            const named_views v{net, all};
            const view& words = v("words.weight");
            const view& from_input = v("lstm.weight_ih_l0");
            const view& from_state = v("lstm.weight_hh_l0");
            const view& input_bias = v("lstm.bias_ih_l0");
            const view& state_bias = v("lstm.bias_hh_l0");
            const std::int64_t n = from_state.extent(1);
            numbers h(static_cast<std::size_t>(n)), c(static_cast<std::size_t>(n));
            for (const std::int64_t word : {2, 5, 0, 4}) {
              numbers gate;
              for (std::int64_t r = 0; r < 4 * n; ++r) {
                double sum = input_bias(r) + state_bias(r);
                for (std::int64_t i = 0; i < words.extent(1); ++i) {
                  sum += from_input(r, i) * words(word, i);
                }
                for (std::int64_t i = 0; i < n; ++i) {
                  sum += from_state(r, i) * h[static_cast<std::size_t>(i)];
                }
                gate.push_back(sum);
              }
              const auto k = static_cast<std::size_t>(n);
              for (std::size_t i = 0; i < k; ++i) {
                c[i] = sigmoid(gate[k + i]) * c[i] + sigmoid(gate[i]) * std::tanh(gate[2 * k + i]);
                h[i] = sigmoid(gate[3 * k + i]) * std::tanh(c[i]);
              }
            }
            return linear(v, "decoder", h);
          }};
}

inline std::vector<network> all() {
  return {mlp(),
          residual(),
          branches(),
          attention(heads_are::inside),
          attention(heads_are::whole),
          attention(heads_are::rotary),
          lstm()};
}

}  // namespace proof_networks
