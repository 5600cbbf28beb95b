// SPDX-License-Identifier: MIT
#include "network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <subfed/philox.hpp>

#include "failure.hpp"

namespace trainer {
namespace {

constexpr double norm_epsilon = 1e-5;

}  // namespace

/// A weight and perhaps a bias under the names that PyTorch gives them. torch::nn's own layers would
/// do, but each would draw first values that are overwritten at once.
struct pre_resnet::layer : torch::nn::Module {
  explicit layer(at::IntArrayRef shape) { weight = register_parameter("weight", at::empty(shape)); }
  layer(at::IntArrayRef shape, std::int64_t biases) : layer(shape) {
    bias = register_parameter("bias", at::empty({biases}));
  }

  at::Tensor convolve(const at::Tensor& x, std::int64_t stride, const forward_pass& pass) const {
    const std::int64_t padding = weight.size(2) / 2;
    const at::Tensor y = at::conv2d(x, weight, bias, stride, padding);
    return pass.scale == 1 ? y : y * pass.scale;
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
    // Momentum 1 replaces the running moments by this batch's.
    seen = {at::zeros_like(weight), at::zeros_like(weight)};
    return at::batch_norm(x, weight, bias, seen.mean, seen.variance, true, 1, norm_epsilon,
                          use_cudnn);
  }

  at::Tensor weight, bias;
};

struct pre_resnet::block : torch::nn::Module {
  block(std::int64_t in, std::int64_t inner, std::int64_t out, std::int64_t stride_, norm_kind kind)
      : stride(stride_) {
    if (kind == norm_kind::batch) n1 = register_module("n1", norm(in));
    conv1 = register_module("conv1", convolution(inner, in, 3, kind));
    if (kind == norm_kind::batch) n2 = register_module("n2", norm(inner));
    conv2 = register_module("conv2", convolution(out, inner, 3, kind));
  }

  static at::Tensor scaled(const at::Tensor& x, const at::Tensor& factors) {
    return factors.defined() ? x * factors : x;
  }
  static std::shared_ptr<layer> norm(std::int64_t channels) {
    return std::make_shared<layer>(at::IntArrayRef{channels}, channels);
  }
  static std::shared_ptr<layer> convolution(std::int64_t out, std::int64_t in, std::int64_t side,
                                            norm_kind kind) {
    // An IntArrayRef of a braced list would outlive its list.
    const std::array<std::int64_t, 4> shape{out, in, side, side};
    return kind == norm_kind::batch ? std::make_shared<layer>(shape)
                                    : std::make_shared<layer>(shape, out);
  }
  /// What a norm layer makes of x; x where there is none.
  static at::Tensor normed(const std::shared_ptr<layer>& norm, const at::Tensor& x,
                           std::size_t index, const forward_pass& pass) {
    return norm ? norm->normalise(x, index, pass) : x;
  }

  /// Block number `s`, whose first norm has the number 2 s.
  at::Tensor forward(const at::Tensor& x, std::size_t s, const forward_pass& pass) const {
    const std::size_t first_norm = 2 * s;
    at::Tensor before, within;
    if (pass.factors != nullptr) {
      before = pass.factors->stream.at(s == 0 ? 0 : s - 1);
      within = pass.factors->inner.at(s);
    }
    const at::Tensor a = scaled(at::relu(normed(n1, x, first_norm, pass)), before);
    const at::Tensor h = conv1->convolve(a, stride, pass);
    const at::Tensor b = scaled(at::relu(normed(n2, h, first_norm + 1, pass)), within);
    const at::Tensor skip = shortcut ? shortcut->convolve(a, stride, pass) : x;
    return conv2->convolve(b, 1, pass) + skip;
  }

  std::shared_ptr<layer> n1, conv1, n2, conv2, shortcut;
  std::int64_t stride;
};

pre_resnet::pre_resnet(const channel_counts& channels, norm_kind norm) : norm_(norm) {
  stem_ = register_module("conv1", block::convolution(channels.stream.at(0), 1, 5, norm));
  for (std::size_t s = 0; s < channels.stream.size(); ++s) {
    const std::int64_t in = channels.stream[s == 0 ? 0 : s - 1];
    const std::int64_t stride = s == 0 ? 1 : 2;
    auto stage =
        std::make_shared<block>(in, channels.inner.at(s), channels.stream[s], stride, norm);
    if (s != 0) {
      stage->shortcut =
          stage->register_module("shortcut", block::convolution(channels.stream[s], in, 1, norm));
    }
    blocks_.push_back(register_module(fmt::format("block{}", s + 1), stage));
  }
  const std::int64_t last = channels.stream.back();
  if (norm == norm_kind::batch) last_norm_ = register_module("n4", block::norm(last));
  linear_ = register_module(
      "linear", std::make_shared<layer>(at::IntArrayRef{channels.classes, last}, channels.classes));
}

at::Tensor pre_resnet::forward(const at::Tensor& images, const forward_pass& pass) const {
  const std::size_t norms = norm_ == norm_kind::batch ? 2 * blocks_.size() + 1 : 0;
  if (pass.mode == norm_mode::measure) pass.moments->resize(norms);

  at::Tensor x = stem_->convolve(images, 4, pass);
  for (std::size_t b = 0; b < blocks_.size(); ++b) x = blocks_[b]->forward(x, b, pass);
  x = at::relu(block::normed(last_norm_, x, norms - 1, pass));
  if (pass.factors != nullptr) x = x * pass.factors->stream.back();
  return at::linear(x.mean({2, 3}), linear_->weight, linear_->bias);
}

std::vector<at::Tensor> pre_resnet::tensors() const {
  std::vector<at::Tensor> out;
  for (const at::Tensor& parameter : parameters()) out.push_back(parameter.detach());
  return out;
}

std::int64_t pre_resnet::classes() const { return linear_->bias.size(0); }

std::vector<at::Tensor> pre_resnet::gradients() const {
  std::vector<at::Tensor> out;
  for (at::Tensor parameter : parameters()) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter.detach());
    out.push_back(parameter.grad());
  }
  return out;
}

void start(pre_resnet& network, std::uint64_t seed, double variance) {
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

void check_match(const pre_resnet& network, const architecture& described) {
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
