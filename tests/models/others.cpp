// SPDX-License-Identifier: MIT
/// Networks that are not in examples/models, described with the library as it is: true sub-networks.
/// And the proof that the test finds a wrong description.
#include "true_subnetwork.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nn = torch::nn;

namespace {

/// A small U-Net: group norm, depthwise and transposed convolution, identity residual,
/// concatenation, and a head after a channels-last flatten. Images (N, 3, 8, 8).
struct u_net {
  subfed::model net;
  subfed::group_id norm_groups = net.group("norm groups", 4);  // 4 channels each
  subfed::group_id down = net.group("down", 8);
  subfed::group_id up = net.group("up", 6);
  subfed::group_id fused = net.group("fused", 5);

  u_net() {
    using subfed::bias;
    const subfed::dimension top = norm_groups.block(4);
    conv2d(net, "stem", {3, top, 3, 3});
    group_norm(net, "norm", {top, 4});
    conv2d(net, "grouped", {top, top, 3, 3, bias::added, 4});
    conv2d(net, "down", {top, down, 2, 2, bias::none});
    conv2d(net, "depthwise", {down, down, 3, 3, bias::none, 8});
    const auto raised = conv_transpose2d(net, "up", {down, up, 2, 2});
    const auto both = conv2d(net, "fuse", {subfed::concat({up, top}), fused, 3, 3});
    check_reads(net, both.weight, {*raised.bias, net.find_tensor("stem.weight")});
    linear(net, "head", {subfed::flatten(fused, 64, subfed::flatten_order::channels_last), 7});
  }

  struct module : nn::Module {
    module(const u_net& described, const subfed::submodel& part) {
      const auto groups = part.extent(described.norm_groups);
      const auto low = part.extent(described.down);
      const auto high = part.extent(described.up);
      const auto last = part.extent(described.fused);
      const auto top = 4 * groups;
      stem = register_module("stem", nn::Conv2d(nn::Conv2dOptions(3, top, 3).padding(1)));
      norm = register_module("norm", nn::GroupNorm(groups, top));
      grouped = register_module(
          "grouped", nn::Conv2d(nn::Conv2dOptions(top, top, 3).padding(1).groups(groups)));
      down =
          register_module("down", nn::Conv2d(nn::Conv2dOptions(top, low, 2).stride(2).bias(false)));
      depthwise = register_module(
          "depthwise",
          nn::Conv2d(nn::Conv2dOptions(low, low, 3).padding(1).groups(low).bias(false)));
      up = register_module("up",
                           nn::ConvTranspose2d(nn::ConvTranspose2dOptions(low, high, 2).stride(2)));
      fuse = register_module("fuse", nn::Conv2d(nn::Conv2dOptions(high + top, last, 3).padding(1)));
      head = register_module("head", nn::Linear(64 * last, 7));
    }
    at::Tensor forward(const at::Tensor& images) {
      at::Tensor x = norm(stem(images));
      x = x + torch::relu(grouped(x));
      const at::Tensor raised = up(torch::relu(depthwise(down(x))));
      const at::Tensor y = torch::relu(fuse(torch::cat({raised, x}, 1)));
      return head(y.permute({0, 2, 3, 1}).flatten(1));
    }
    nn::Conv2d stem{nullptr}, grouped{nullptr}, down{nullptr}, depthwise{nullptr}, fuse{nullptr};
    nn::GroupNorm norm{nullptr};
    nn::ConvTranspose2d up{nullptr};
    nn::Linear head{nullptr};
  };
};

/// A text model: tied embedding, bidirectional GRU, torch's own attention cut in whole heads, then
/// grouped queries in one fused tensor.
struct text_model {
  subfed::model net;
  subfed::group_id heads = net.group("heads", 4);  // 4 elements each: the width
  subfed::group_id forward = net.group("forward", 6);
  subfed::group_id reverse = net.group("reverse", 5);
  subfed::group_id shared = net.group("shared", 2);  // key-value heads of 3, 2 queries each

  text_model() {
    const subfed::dimension width = heads.block(4);
    const auto table = embedding(net, "embedding", {50, width});
    const auto states = gru(net, "gru", {.in = width, .hidden = {forward}, .reverse = {reverse}});
    const auto back = linear(net, "back", {states.out, width});
    multihead_attention(net, "attention", {.width = width, .inner = width, .heads = 4});
    const auto grouped = fused_attention(
        net, "grouped",
        {.in = width, .out = width, .heads = subfed::whole_heads(net, shared, 3, 2)});
    residual_add(net, {back.weight, grouped.output.weight});
    linear_tied(net, "decoder", {.weight = table, .in = width, .out = 50});
  }

  struct grouped_attention : nn::Module {
    grouped_attention(std::int64_t width, std::int64_t heads_) : heads(heads_) {
      qkv = register_module("qkv", nn::Linear(width, heads * 12));
      proj = register_module("proj", nn::Linear(heads * 6, width));
    }
    at::Tensor forward(const at::Tensor& x) {
      const auto parts = qkv(x).split_with_sizes({heads * 6, heads * 3, heads * 3}, -1);
      const auto n = x.size(0), steps = x.size(1);
      const at::Tensor q = parts[0].view({n, steps, heads, 2, 3}).permute({0, 2, 3, 1, 4});
      const at::Tensor k = parts[1].view({n, steps, heads, 1, 3}).permute({0, 2, 3, 1, 4});
      const at::Tensor v = parts[2].view({n, steps, heads, 1, 3}).permute({0, 2, 3, 1, 4});
      const at::Tensor shares = torch::matmul(q, k.transpose(-2, -1)).softmax(-1);
      return proj(torch::matmul(shares, v).permute({0, 3, 1, 2, 4}).flatten(2));
    }
    std::int64_t heads;
    nn::Linear qkv{nullptr}, proj{nullptr};
  };
  struct bias_only : nn::Module {
    explicit bias_only(std::int64_t n) { bias = register_parameter("bias", torch::zeros({n})); }
    at::Tensor bias;
  };

  struct module : nn::Module {
    module(const text_model& described, const subfed::submodel& part) {
      const auto heads = part.extent(described.heads);
      const auto width = 4 * heads;
      const auto there = part.extent(described.forward);
      const auto back_ = part.extent(described.reverse);
      embedding = register_module("embedding", nn::Embedding(50, width));
      // torch::nn::GRU has one width for both directions; here a client may hold two.
      gates = register_module("gru", std::make_shared<directions>(width, there, back_));
      back = register_module("back", nn::Linear(there + back_, width));
      attention = register_module("attention", nn::MultiheadAttention(width, heads));
      grouped = register_module(
          "grouped", std::make_shared<grouped_attention>(width, part.extent(described.shared)));
      decoder = register_module("decoder", std::make_shared<bias_only>(50));
    }
    at::Tensor run(const at::Tensor& text) {
      at::Tensor x = embedding(text);
      x = x + back(gates->run(x));
      const at::Tensor t = x.transpose(0, 1);
      x = x + std::get<0>(attention(t, t, t)).transpose(0, 1);
      x = x + grouped->forward(x);
      return torch::matmul(x, embedding->weight.t()) + decoder->bias;
    }

    struct directions : nn::Module {
      directions(std::int64_t in, std::int64_t there, std::int64_t back) {
        for (const auto& [suffix, hidden] : {std::pair("_l0", there), {"_l0_reverse", back}}) {
          const std::string end = suffix;
          auto& w = weights.emplace_back();
          w.push_back(register_parameter("weight_ih" + end, torch::zeros({3 * hidden, in})));
          w.push_back(register_parameter("weight_hh" + end, torch::zeros({3 * hidden, hidden})));
          w.push_back(register_parameter("bias_ih" + end, torch::zeros({3 * hidden})));
          w.push_back(register_parameter("bias_hh" + end, torch::zeros({3 * hidden})));
        }
      }
      at::Tensor run(const at::Tensor& x) {
        const auto one = [&](const at::Tensor& in, const std::vector<at::Tensor>& w) {
          const at::Tensor start = torch::zeros({1, in.size(0), w[1].size(1)});
          return std::get<0>(at::gru(in, start, w, true, 1, 0, false, false, true));
        };
        const at::Tensor there = one(x, weights[0]);
        const at::Tensor back = one(x.flip({1}), weights[1]).flip({1});
        return torch::cat({there, back}, 2);
      }
      std::vector<std::vector<at::Tensor>> weights;
    };

    nn::Embedding embedding{nullptr};
    std::shared_ptr<directions> gates;
    nn::Linear back{nullptr};
    nn::MultiheadAttention attention{nullptr};
    std::shared_ptr<grouped_attention> grouped;
    std::shared_ptr<bias_only> decoder;
  };
};

/// x + second(relu(first(x))) after a stem, with an identity skip that is tied, or wrongly not.
struct residual {
  subfed::model net;
  subfed::group_id stream = net.group("stream", 8);
  subfed::group_id inner = net.group("inner", 8);
  subfed::group_id out;

  enum class skip { tied, untied };

  explicit residual(skip kind) : out(kind == skip::tied ? stream : net.group("another", 8)) {
    linear(net, "stem", {4, stream});
    linear(net, "first", {stream, inner});
    linear(net, "second", {inner, out});
    linear(net, "head", {out, 3});
  }

  struct module : nn::Module {
    module(const residual& described, const subfed::submodel& part) {
      const auto x = part.extent(described.stream), y = part.extent(described.inner);
      stem = register_module("stem", nn::Linear(4, x));
      first = register_module("first", nn::Linear(x, y));
      second = register_module("second", nn::Linear(y, part.extent(described.out)));
      head = register_module("head", nn::Linear(part.extent(described.out), 3));
    }
    at::Tensor forward(const at::Tensor& in) {
      const at::Tensor x = stem(in);
      return head(x + second(torch::relu(first(x))));
    }
    nn::Linear stem{nullptr}, first{nullptr}, second{nullptr}, head{nullptr};
  };

  /// Largest difference between a client's network and the masked global one.
  double difference(const subfed::submodel& part) const {
    torch::NoGradGuard no_gradients;
    torch::manual_seed(2);
    const at::Tensor in = torch::randn({3, 4});
    const auto global = std::make_shared<module>(*this, subfed::submodel::full(net));
    const auto masked = std::make_shared<module>(*this, subfed::submodel::full(net));
    const auto client = std::make_shared<module>(*this, part);
    support::fill(*global);
    for (const at::Tensor& t : support::tensors_of(*masked)) t.zero_();
    const auto local = support::tensors_of(*client);
    subfed::slice<void>(support::tensors_of(*global), part, local);
    const auto zeroed = support::tensors_of(*masked);
    subfed::scatter<void>(local, part, zeroed);
    return (client->forward(in) - masked->forward(in)).abs().max().item<double>();
  }
};

}  // namespace

DOCTEST_TEST_CASE("a U-Net of grouped, depthwise and transposed convolutions: a true sub-network") {
  const u_net described;
  const at::Tensor images = torch::randn({2, 3, 8, 8});
  support::check_true_subnetwork(
      described.net,
      [&](const auto& part) { return std::make_shared<u_net::module>(described, part); },
      [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE(
    "a text model with GRU, two attentions and a tied embedding: a true sub-network") {
  const text_model described;
  const at::Tensor text = torch::randint(50, {2, 6});
  support::check_true_subnetwork(
      described.net,
      [&](const auto& part) { return std::make_shared<text_model::module>(described, part); },
      [&](auto& network) { return network.run(text); });
}

DOCTEST_TEST_CASE("the test sees a residual add that is not tied") {
  const residual tied(residual::skip::tied);
  const residual untied(residual::skip::untied);
  const subfed::draw_key key{.seed = 1, .capacity = 0.5};
  DOCTEST_CHECK(tied.difference(subfed::draw(tied.net, subfed::random_subset(), key)) < 1e-5);
  DOCTEST_CHECK(untied.difference(subfed::draw(untied.net, subfed::random_subset(), key)) > 1e-2);
}
