// SPDX-License-Identifier: MIT
#include "network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <subfed/philox.hpp>

#include "failure.hpp"
#include "text_networks.hpp"
#include "times.hpp"

namespace trainer {
namespace {

constexpr double norm_epsilon = 1e-5;

}  // namespace

struct layer : torch::nn::Module {
  explicit layer(at::IntArrayRef shape) { weight = register_parameter("weight", at::empty(shape)); }
  layer(at::IntArrayRef shape, std::int64_t biases) : layer(shape) {
    bias = register_parameter("bias", at::empty({biases}));
  }

  /// Padded so that the result is as large as x, but for the stride.
  at::Tensor convolve(const at::Tensor& x, std::int64_t stride, const forward_pass& pass) const {
    return convolve(x, stride, weight.size(2) / 2, pass);
  }
  at::Tensor convolve(const at::Tensor& x, std::int64_t stride, std::int64_t padding,
                      const forward_pass& pass) const {
    return times(at::conv2d(x, weight, bias, stride, padding), pass.scale);
  }

  /// Layer number `index` of the batch norm layers.
  at::Tensor normalise(const at::Tensor& x, std::size_t index, const forward_pass& pass) const {
    constexpr bool use_cudnn = true;
    if (pass.mode == norm_mode::batch) {
      return at::batch_norm(x, weight, bias, {}, {}, true, 0, norm_epsilon, use_cudnn);
    }
    moments& seen = pass.moments->at(index);
    if (pass.mode == norm_mode::given) {
      return at::batch_norm(x, weight, bias, seen.mean, seen.variance, false, 0, norm_epsilon,
                            use_cudnn);
    }
    if (pass.mode == norm_mode::track) {
      return at::batch_norm(x, weight, bias, seen.mean, seen.variance, true, 0.1, norm_epsilon,
                            use_cudnn);
    }
    // Momentum 1 replaces the running moments by this batch's.
    seen = {at::zeros_like(weight), at::zeros_like(weight)};
    return at::batch_norm(x, weight, bias, seen.mean, seen.variance, true, 1, norm_epsilon,
                          use_cudnn);
  }

  at::Tensor weight, bias;
};

namespace {

at::Tensor scaled(const at::Tensor& x, const at::Tensor& factors) {
  return factors.defined() ? x * factors : x;
}
std::shared_ptr<layer> norm_layer(std::int64_t channels) {
  return std::make_shared<layer>(at::IntArrayRef{channels}, channels);
}
std::shared_ptr<layer> convolution(std::int64_t out, std::int64_t in, std::int64_t side,
                                   norm_kind kind) {
  // An IntArrayRef of a braced list would outlive its list.
  const std::array<std::int64_t, 4> shape{out, in, side, side};
  return kind == norm_kind::batch ? std::make_shared<layer>(shape)
                                  : std::make_shared<layer>(shape, out);
}
std::shared_ptr<layer> linear_layer(std::int64_t in, std::int64_t out) {
  const std::array<std::int64_t, 2> shape{out, in};
  return std::make_shared<layer>(shape, out);
}
/// What a norm layer makes of x; x where there is none.
at::Tensor normed(const std::shared_ptr<layer>& norm, const at::Tensor& x, std::size_t index,
                  const forward_pass& pass) {
  return norm ? norm->normalise(x, index, pass) : x;
}
/// What a convolution's relu lets through, with the factors of the hidden group `number`.
at::Tensor let_through(const at::Tensor& x, std::size_t number, const forward_pass& pass) {
  const at::Tensor y = at::relu(x);
  return pass.factors == nullptr ? y : y * pass.factors->inner.at(number);
}
/// A hidden layer, whose group has the number `number`, and the output layer.
at::Tensor two_layers(const at::Tensor& x, const layer& hidden, const layer& output,
                      std::size_t number, const forward_pass& pass) {
  at::Tensor h = at::relu(times(at::linear(x, hidden.weight, hidden.bias), pass.scale));
  if (pass.factors != nullptr) h = h * pass.factors->inner.at(number).flatten();
  return at::linear(h, output.weight, output.bias);
}

}  // namespace

struct pre_resnet::block : torch::nn::Module {
  /// With a shortcut where `projected`; then the resolution is halved.
  enum class skip { identity, projected };

  block(std::int64_t in, std::int64_t inner, std::int64_t out, skip kind, norm_kind norm)
      : stride(kind == skip::projected ? 2 : 1) {
    if (norm == norm_kind::batch) n1 = register_module("n1", norm_layer(in));
    conv1 = register_module("conv1", convolution(inner, in, 3, norm));
    if (norm == norm_kind::batch) n2 = register_module("n2", norm_layer(inner));
    conv2 = register_module("conv2", convolution(out, inner, 3, norm));
    if (kind == skip::projected) {
      shortcut = register_module("shortcut", convolution(out, in, 1, norm));
    }
  }

  /// Block number `s`, whose first norm has the number 2 s. Its input has the channels of the stream
  /// number `from`.
  at::Tensor forward(const at::Tensor& x, std::size_t s, std::size_t from,
                     const forward_pass& pass) const {
    const std::size_t first_norm = 2 * s;
    at::Tensor before, within;
    if (pass.factors != nullptr) {
      before = pass.factors->stream.at(from);
      within = pass.factors->inner.at(s);
    }
    const at::Tensor a = scaled(at::relu(normed(n1, x, first_norm, pass)), before);
    const at::Tensor h = conv1->convolve(a, stride, pass);
    const at::Tensor b = scaled(at::relu(normed(n2, h, first_norm + 1, pass)), within);
    const at::Tensor around = shortcut ? shortcut->convolve(a, stride, pass) : x;
    return conv2->convolve(b, 1, pass) + around;
  }

  std::shared_ptr<layer> n1, conv1, n2, conv2, shortcut;
  std::int64_t stride;
};

pre_resnet::pre_resnet(const channel_counts& channels, norm_kind norm)
    : stem_stride_(channels.model == model_kind::small ? 4 : 1),
      blocks_each_(channels.inner.size() / channels.stream.size()) {
  const bool is_small = channels.model == model_kind::small;
  stem_ = register_module("conv1", convolution(channels.stream.at(0), 1, is_small ? 5 : 3, norm));
  for (std::size_t s = 0; s < channels.stream.size(); ++s) {
    const auto stage = std::make_shared<torch::nn::Module>();
    for (std::size_t b = 0; b < blocks_each_; ++b) {
      const bool is_first = s != 0 && b == 0;
      blocks_.push_back(std::make_shared<block>(
          channels.stream[is_first ? s - 1 : s], channels.inner.at(s * blocks_each_ + b),
          channels.stream[s], is_first ? block::skip::projected : block::skip::identity, norm));
      if (is_small) {
        register_module(fmt::format("block{}", s + 1), blocks_.back());
      } else {
        stage->register_module(fmt::format("{}", b), blocks_.back());
      }
    }
    if (!is_small) register_module(fmt::format("layer{}", s + 1), stage);
  }
  const std::int64_t last = channels.stream.back();
  if (norm == norm_kind::batch) last_norm_ = register_module("n4", norm_layer(last));
  linear_ = register_module("linear", linear_layer(last, channels.classes));
}

at::Tensor pre_resnet::forward(const at::Tensor& images, const forward_pass& pass) const {
  const std::size_t norms = has_batch_norm() ? 2 * blocks_.size() + 1 : 0;
  if (pass.mode == norm_mode::measure) pass.moments->resize(norms);

  at::Tensor x = stem_->convolve(images, stem_stride_, pass);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const std::size_t stage = b / blocks_each_;
    x = blocks_[b]->forward(x, b, blocks_[b]->shortcut ? stage - 1 : stage, pass);
  }
  x = at::relu(normed(last_norm_, x, norms - 1, pass));
  if (pass.factors != nullptr) x = x * pass.factors->stream.back();
  return at::linear(x.mean({2, 3}), linear_->weight, linear_->bias);
}

std::int64_t pre_resnet::classes() const { return linear_->bias.size(0); }

le_net::le_net(const channel_counts& channels) {
  const auto& c = channels.inner;
  conv1_ = register_module("conv1", convolution(c.at(0), 1, 5, norm_kind::none));
  conv2_ = register_module("conv2", convolution(c.at(1), c[0], 5, norm_kind::none));
  conv3_ = register_module("conv3", convolution(c.at(2), c[1], 3, norm_kind::none));
  fc1_ = register_module("fc1", linear_layer(4 * c[2], c.at(3)));
  fc2_ = register_module("fc2", linear_layer(c[3], channels.classes));
}

at::Tensor le_net::forward(const at::Tensor& images, const forward_pass& pass) const {
  at::Tensor x = at::max_pool2d(let_through(conv1_->convolve(images, 1, pass), 0, pass), 2);
  x = at::max_pool2d(let_through(conv2_->convolve(x, 1, pass), 1, pass), 2);
  x = at::avg_pool2d(let_through(conv3_->convolve(x, 1, 0, pass), 2, pass), 2, 2);
  return two_layers(x.flatten(1), *fc1_, *fc2_, 3, pass);
}

std::int64_t le_net::classes() const { return fc2_->bias.size(0); }

two_convolutions::two_convolutions(const channel_counts& channels) {
  const auto& c = channels.inner;
  conv1_ = register_module("conv1", convolution(c.at(0), 1, 5, norm_kind::none));
  conv2_ = register_module("conv2", convolution(c.at(1), c[0], 5, norm_kind::none));
  fc1_ = register_module("fc1", linear_layer(7 * 7 * c[1], c.at(2)));
  fc2_ = register_module("fc2", linear_layer(c[2], channels.classes));
}

at::Tensor two_convolutions::forward(const at::Tensor& images, const forward_pass& pass) const {
  at::Tensor x = at::max_pool2d(let_through(conv1_->convolve(images, 1, pass), 0, pass), 2);
  x = at::max_pool2d(let_through(conv2_->convolve(x, 1, pass), 1, pass), 2);
  return two_layers(x.flatten(1), *fc1_, *fc2_, 2, pass);
}

std::int64_t two_convolutions::classes() const { return fc2_->bias.size(0); }

std::shared_ptr<network> make_network(const channel_counts& channels, norm_kind norm) {
  if (channels.model == model_kind::lenet) return std::make_shared<le_net>(channels);
  if (channels.model == model_kind::cnn) return std::make_shared<two_convolutions>(channels);
  if (data_of(channels.model) == data_kind::text) return make_text_network(channels);
  return std::make_shared<pre_resnet>(channels, norm);
}

std::vector<at::Tensor> network::tensors() const {
  std::vector<at::Tensor> out;
  for (const at::Tensor& parameter : parameters()) out.push_back(parameter.detach());
  return out;
}

std::vector<at::Tensor> network::gradients() const {
  std::vector<at::Tensor> out;
  for (at::Tensor parameter : parameters()) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter.detach());
    out.push_back(parameter.grad());
  }
  return out;
}

void start(network& network, std::uint64_t seed, double variance) {
  for (const auto& named : network.named_parameters()) {
    at::Tensor values = named.value().detach();
    if (values.dim() == 1) {
      values.fill_(named.key().ends_with("weight") ? 1 : 0);
      continue;
    }
    const auto inputs = static_cast<double>(values.numel() / values.size(0));
    const double bound = std::sqrt(3 * variance / inputs);  // variance bound^2 / 3
    subfed::random_stream stream(seed, 0, 0, "first values of " + named.key());
    auto* out = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      out[i] = static_cast<float>(bound * (2 * stream.next_unit() - 1));
    }
  }
}

void check_match(const network& network, const architecture& described) {
  const auto ours = described.net.tensors();
  const auto theirs = network.named_parameters();
  if (theirs.size() != ours.size()) {
    throw failure(fmt::format("The network has {} tensors, but its description {}.", theirs.size(),
                              ours.size()));
  }
  for (std::size_t t = 0; t < ours.size(); ++t) {
    const auto& name = theirs[t].key();
    const at::IntArrayRef shape = theirs[t].value().sizes();
    if (name == ours[t].name && shape == at::IntArrayRef(ours[t].extents)) continue;
    throw failure(
        fmt::format("Tensor {} of the network is {} ({}), but its description says {} ({}).", t,
                    name, fmt::join(shape, ", "), ours[t].name, fmt::join(ours[t].extents, ", ")));
  }
}

}  // namespace trainer
