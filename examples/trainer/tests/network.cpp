// SPDX-License-Identifier: MIT
#include "network.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <subfed/adapt/torch.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/proof.hpp>
#include <vector>

#include "architecture.hpp"
#include "flat_sgd.hpp"
#include "method.hpp"
#include "results_of.hpp"

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <common/tests/message_of.hpp>

namespace {

using trainer::architecture;
using trainer::network_moments;
using trainer::norm_mode;
using trainer::pre_resnet;

at::Tensor images(std::int64_t count) { return at::randn({count, 1, 28, 28}); }

constexpr trainer::model_kind every_model[] = {
    trainer::model_kind::small, trainer::model_kind::pre_resnet18, trainer::model_kind::lenet,
    trainer::model_kind::cnn};

/// The group that each batch norm layer normalises.
std::vector<subfed::group_id> norm_groups(const architecture& net) {
  std::vector<subfed::group_id> out;
  for (std::size_t s = 0; s < net.stream.size(); ++s) {
    out.push_back(net.stream[s == 0 ? 0 : s - 1]);
    out.push_back(net.inner[s]);
  }
  out.push_back(net.stream.back());
  return out;
}

at::Tensor nodes_of(const subfed::index_set& set) {
  return at::tensor(std::vector<std::int64_t>(set.begin(), set.end()), at::kLong);
}

/// 1 for the nodes of a set, 0 for the others, for activations (N, nodes, height, width).
at::Tensor mask(const subfed::index_set& set) {
  at::Tensor out = at::zeros({set.extent()});
  out.index_fill_(0, nodes_of(set), 1);
  return out.view({1, -1, 1, 1});
}

/// The forward pass of the whole network, written out, with the activations of all nodes outside the
/// submodel set to zero.
at::Tensor masked_forward(const pre_resnet& whole, const architecture& net,
                          const subfed::submodel& part, const network_moments& moments,
                          const at::Tensor& x0) {
  std::map<std::string, at::Tensor> w;
  for (const auto& named : whole.named_parameters()) w[named.key()] = named.value().detach();
  const auto norm = [&](const at::Tensor& x, const std::string& name, std::size_t i) {
    return at::batch_norm(x, w.at(name + ".weight"), w.at(name + ".bias"), moments[i].mean,
                          moments[i].variance, false, 0, 1e-5, false);
  };
  const auto convolve = [&](const at::Tensor& x, const std::string& name, std::int64_t stride) {
    const at::Tensor& weight = w.at(name + ".weight");
    const std::int64_t padding = weight.size(2) / 2;
    return at::conv2d(x, weight, at::Tensor(), stride, padding);
  };
  const auto keep = [&](subfed::group_id g) { return mask(part[g]); };

  at::Tensor x = convolve(x0, "conv1", 4) * keep(net.stream[0]);
  for (std::size_t s = 0; s < net.stream.size(); ++s) {
    const std::string block = fmt::format("block{}.", s + 1);
    const std::int64_t stride = s == 0 ? 1 : 2;
    const at::Tensor a =
        at::relu(norm(x, block + "n1", 2 * s)) * keep(net.stream[s == 0 ? 0 : s - 1]);
    const at::Tensor h = convolve(a, block + "conv1", stride) * keep(net.inner[s]);
    const at::Tensor b = at::relu(norm(h, block + "n2", 2 * s + 1)) * keep(net.inner[s]);
    const at::Tensor skip = s == 0 ? x : convolve(a, block + "shortcut", stride);
    x = (convolve(b, block + "conv2", 1) + skip) * keep(net.stream[s]);
  }
  x = at::relu(norm(x, "n4", 2 * net.stream.size())) * keep(net.stream.back());
  return at::linear(x.mean({2, 3}), w.at("linear.weight"), w.at("linear.bias"));
}

struct whole_network {
  architecture net = trainer::describe(trainer::full_size());
  pre_resnet module{trainer::full_size()};
  network_moments moments;

  whole_network() {
    torch::manual_seed(1);
    trainer::start(module, 1);
    const torch::NoGradGuard no_grad;
    // Away from the first values of batch norm, under which channels are alike.
    for (const auto& named : module.named_parameters()) {
      if (named.value().dim() == 1) named.value().add_(at::randn_like(named.value()) * 0.3);
    }
    module.forward(images(64), {norm_mode::measure, &moments, 1});
  }
};

subfed::submodel drawn(const architecture& net, const char* name, const subfed::draw_key& key) {
  const trainer::options settings;
  const auto method = trainer::find_method(name).make(settings, net);
  return subfed::draw(
      net.net, [&](const subfed::draw_request& where) { return method->nodes(where); }, key);
}

}  // namespace

DOCTEST_TEST_CASE("module and description agree on names, order and shapes") {
  for (const auto model : every_model) {
    for (const subfed::capacity share : {1.0, 0.5, 0.3, 0.0625}) {
      const auto channels = trainer::narrowed(trainer::full_size(model), share);
      const architecture net = trainer::describe(channels);
      DOCTEST_CHECK_NOTHROW(trainer::check_match(*trainer::make_network(channels, net.norm), net));
      DOCTEST_CHECK(net.channels(subfed::submodel::full(net.net)) == channels);
    }
  }
  auto wider = trainer::full_size();
  wider.inner[1] += 1;
  DOCTEST_CHECK(
      message_of([&] {
        trainer::check_match(pre_resnet(wider), trainer::describe(trainer::full_size()));
      }) ==
      "Tensor 9 of the network is block2.conv1.weight (65, 32, 3, 3), but its description "
      "says block2.conv1.weight (64, 32, 3, 3).");
}

DOCTEST_TEST_CASE(
    "without batch norm convolutions have biases, and clients' networks are parts too") {
  const auto none = trainer::norm_kind::none;
  for (const subfed::capacity share : {1.0, 0.5, 0.0625}) {
    const auto channels = trainer::narrowed(trainer::full_size(), share);
    DOCTEST_CHECK_NOTHROW(trainer::check_match(pre_resnet(channels, none),
                                               trainer::describe(channels, {.norm = none})));
  }
  const torch::NoGradGuard no_grad;
  const architecture net = trainer::describe(trainer::full_size(), {.norm = none});
  DOCTEST_CHECK(net.net.size() == trainer::describe(trainer::full_size()).net.size() -
                                      2 * (32 + 32 + 32 + 64 + 64) + 32 + 2 * 32 + 3 * 64);
  pre_resnet whole(trainer::full_size(), none);
  trainer::start(whole, 1);
  torch::manual_seed(1);
  for (const auto& named : whole.named_parameters()) {
    if (named.value().dim() == 1) named.value().add_(at::randn_like(named.value()) * 0.3);
  }
  const subfed::submodel part = drawn(net, "federated-dropout", {.seed = 4, .capacity = 0.5});
  pre_resnet own(net.channels(part), none);
  const auto globals = whole.tensors();
  subfed::slice<float>(globals, part, own.tensors());
  // What is not held is 0 in a copy of the whole: its channels are then 0 everywhere.
  pre_resnet masked(trainer::full_size(), none);
  for (const at::Tensor& t : masked.tensors()) t.zero_();
  subfed::scatter<float>(own.tensors(), part, masked.tensors());
  const at::Tensor x = images(5);
  DOCTEST_CHECK(at::allclose(own.forward(x, {}), masked.forward(x, {}), 1e-4, 1e-5));
  // Nothing hides a factor on activations.
  DOCTEST_CHECK(!at::allclose(own.forward(x, {trainer::norm_mode::batch, nullptr, 2}),
                              own.forward(x, {}), 1e-2, 1e-2));
}

DOCTEST_TEST_CASE("an untied skip draws its two ends apart, in a whole model that is the same") {
  const architecture tied = trainer::describe(trainer::full_size());
  const architecture untied =
      trainer::describe(trainer::full_size(), {.skips = trainer::skips::untied});
  DOCTEST_CHECK_NOTHROW(trainer::check_match(pre_resnet(trainer::full_size()), untied));
  DOCTEST_CHECK(untied.net.size() == tied.net.size());
  const auto result = untied.net.find_group("result1");
  const auto uses = [&](const char* name, std::size_t d) {
    return untied.net[untied.net.find_tensor(name)].dimensions[d].parts()[0].group;
  };
  DOCTEST_CHECK(uses("conv1.weight", 0) == untied.stream[0].number());
  DOCTEST_CHECK(uses("block1.conv1.weight", 1) == untied.stream[0].number());
  DOCTEST_CHECK(uses("block1.conv2.weight", 0) == result.number());
  DOCTEST_CHECK(uses("block2.conv1.weight", 1) == result.number());
  DOCTEST_CHECK(uses("block2.shortcut.weight", 1) == result.number());
  const subfed::draw_key key{.seed = 4, .round = 2, .client = 3, .capacity = 0.25};
  const subfed::submodel random = drawn(untied, "federated-dropout", key);
  DOCTEST_CHECK(!(random[untied.stream[0]] == random[result]));
  DOCTEST_CHECK(random.extent(untied.stream[0]) == random.extent(result));
  DOCTEST_CHECK(random[untied.stream[0]] == drawn(tied, "federated-dropout", key)[tied.stream[0]]);
  const subfed::submodel rolled = drawn(untied, "fedrolex", key);
  DOCTEST_CHECK(rolled[untied.stream[0]] == rolled[result]);
}

DOCTEST_TEST_CASE(
    "the networks of the papers have the papers' sizes, and a width multiplies them") {
  using trainer::model_kind;
  const auto size = [](const trainer::channel_counts& channels) {
    return trainer::describe(channels).net.size();
  };
  // 10 classes; [Rolex, Table 7] has three colours where there is one here.
  const auto of_rolex = trainer::full_size(model_kind::pre_resnet18);
  DOCTEST_CHECK(size(of_rolex) == 11172170 - 2 * 64 * 9);
  DOCTEST_CHECK(size(trainer::narrowed(of_rolex, 0.0625)) == 44510 - 2 * 4 * 9);
  DOCTEST_CHECK(size(trainer::full_size(model_kind::lenet)) == 225738);
  DOCTEST_CHECK(size(trainer::full_size()) == 77674);
  // S, M and L of [Cheng]: 8, 32 and 64 filters, and 16, 64 and 128 hidden nodes.
  const auto of_cheng = [&](std::int64_t filters, std::int64_t hidden) {
    return filters * 26 + filters * (25 * filters + 1) + hidden * (49 * filters + 1) +
           10 * (hidden + 1);
  };
  DOCTEST_CHECK(size(trainer::full_size(model_kind::cnn)) == of_cheng(8, 16));
  DOCTEST_CHECK(size(trainer::full_size(model_kind::cnn, 4)) == of_cheng(32, 64));
  DOCTEST_CHECK(size(trainer::full_size(model_kind::cnn, 8)) == of_cheng(64, 128));
  for (const auto model : every_model) {
    const auto one = trainer::full_size(model), four = trainer::full_size(model, 4);
    DOCTEST_CHECK(trainer::narrowed(four, 0.25) == one);
    DOCTEST_CHECK(trainer::widened(one, 4) == four);
    DOCTEST_CHECK(four.classes == 10);
  }
}

DOCTEST_TEST_CASE(
    "every network is proven: its description, and that clients' networks are parts") {
  for (const auto model : every_model) {
    for (const auto norm : {trainer::norm_kind::batch, trainer::norm_kind::none}) {
      if (norm == trainer::norm_kind::none && model != trainer::model_kind::small) continue;
      auto channels = trainer::full_size(model);
      for (auto* counts : {&channels.stream, &channels.inner}) {
        for (std::size_t i = 0; i < counts->size(); ++i) {
          (*counts)[i] = 4 + 2 * static_cast<std::int64_t>(i);  // small, and no two alike
        }
      }
      const architecture net = trainer::describe(channels, {.norm = norm});
      torch::manual_seed(2);
      const at::Tensor x = at::randn({3, 1, 28, 28}, at::kDouble);
      const auto forward = [&](const subfed::submodel& part,
                               const subfed::tensor_views<const double>& values) {
        return results_of(net, part, values, x);
      };
      DOCTEST_INFO("model " << static_cast<int>(model) << ", norm " << static_cast<int>(norm));
      const auto proof = subfed::prove_description<double>(
          net.net, [&](const subfed::tensor_views<const double>& values) {
            return forward(subfed::submodel::full(net.net), values);
          });
      DOCTEST_INFO(describe(proof));
      DOCTEST_CHECK(proof.verdict() == subfed::verdict::right);
      for (const auto& cut : subfed::cut_differences<double>(net.net, forward)) {
        DOCTEST_INFO(net.net[cut.group].name);
        DOCTEST_CHECK(cut.difference < 1e-9);
      }
    }
  }
}

namespace {

/// Which group's factors a weight of LeNet or of the CNN is multiplied by, and how many of its columns
/// are of one channel.
struct reader {
  const char* weight;
  std::size_t group;
  std::int64_t columns;
};

void check_factors(trainer::model_kind model, const std::vector<reader>& readers) {
  const torch::NoGradGuard no_grad;
  const auto channels = trainer::full_size(model);
  const auto plain = trainer::make_network(channels, trainer::norm_kind::none);
  const auto other = trainer::make_network(channels, trainer::norm_kind::none);
  trainer::start(*plain, 1);
  torch::manual_seed(3);
  const auto from = plain->tensors(), to = other->tensors();
  for (const at::Tensor& t : from) {
    if (t.dim() == 1) t.add_(at::randn_like(t) * 0.3);
  }
  for (std::size_t t = 0; t < to.size(); ++t) to[t].copy_(from[t]);
  trainer::channel_factors factors;
  for (const std::int64_t n : channels.inner) factors.inner.push_back(at::rand({n, 1, 1}) + 0.5);
  for (const auto& named : other->named_parameters()) {
    at::Tensor w = named.value().detach();
    for (const reader& r : readers) {
      if (named.key() != r.weight) continue;
      const at::Tensor each = factors.inner[r.group];
      w *= w.dim() == 4 ? each : each.flatten().repeat_interleave(r.columns);
    }
  }
  const at::Tensor x = images(5);
  DOCTEST_CHECK(at::allclose(plain->forward(x, {trainer::norm_mode::batch, nullptr, 1, &factors}),
                             other->forward(x, {}), 1e-4, 1e-4));
  // The scaler of hidden layers, without biases, is one number.
  for (const at::Tensor& t : from) {
    if (t.dim() == 1) t.zero_();
  }
  const double of_all = std::pow(2, static_cast<double>(channels.inner.size()));
  DOCTEST_CHECK(at::allclose(plain->forward(x, {trainer::norm_mode::batch, nullptr, 2}),
                             of_all * plain->forward(x, {}), 1e-4, 1e-4));
}

}  // namespace

DOCTEST_TEST_CASE("factors of channels without norms are those of the weights that read them") {
  check_factors(
      trainer::model_kind::lenet,
      {{"conv2.weight", 0, 1}, {"conv3.weight", 1, 1}, {"fc1.weight", 2, 4}, {"fc2.weight", 3, 1}});
  check_factors(trainer::model_kind::cnn,
                {{"conv2.weight", 0, 1}, {"fc1.weight", 1, 49}, {"fc2.weight", 2, 1}});
}

DOCTEST_TEST_CASE("a client's network computes what the masked whole network computes") {
  const whole_network whole;
  const torch::NoGradGuard no_grad;
  const at::Tensor x = images(8);
  for (const char* name : {"fedrolex", "heterofl", "federated-dropout"}) {
    for (const double share : {1.0, 0.5, 0.3, 0.25, 0.125, 0.0625}) {
      for (const std::uint64_t round : {0u, 1u, 50u, 63u}) {  // windows that wrap, too
        const subfed::submodel part =
            drawn(whole.net, name, {.seed = 5, .round = round, .client = 3, .capacity = share});
        pre_resnet client(whole.net.channels(part));
        subfed::slice<float>(whole.module.tensors(), part, client.tensors());
        network_moments moments;
        const auto groups = norm_groups(whole.net);
        for (std::size_t i = 0; i < groups.size(); ++i) {
          const at::Tensor nodes = nodes_of(part[groups[i]]);
          moments.push_back({whole.moments[i].mean.index_select(0, nodes),
                             whole.moments[i].variance.index_select(0, nodes)});
        }
        const at::Tensor ours = client.forward(x, {norm_mode::given, &moments, 1});
        const at::Tensor expected = masked_forward(whole.module, whole.net, part, whole.moments, x);
        DOCTEST_INFO(name << ", capacity " << share << ", round " << round);
        DOCTEST_CHECK(at::allclose(ours, expected, 1e-4, 1e-5));
      }
    }
  }
}

DOCTEST_TEST_CASE("with everything held, masking changes nothing") {
  whole_network whole;
  const torch::NoGradGuard no_grad;
  const at::Tensor x = images(8);
  const auto full = subfed::submodel::full(whole.net.net);
  const at::Tensor expected = whole.module.forward(x, {norm_mode::given, &whole.moments, 1});
  DOCTEST_CHECK(at::allclose(masked_forward(whole.module, whole.net, full, whole.moments, x),
                             expected, 1e-4, 1e-5));
  const subfed::submodel half = drawn(whole.net, "heterofl", {.capacity = 0.5});
  DOCTEST_CHECK(!at::allclose(masked_forward(whole.module, whole.net, half, whole.moments, x),
                              expected, 1e-2, 1e-2));
}

DOCTEST_TEST_CASE("the scaler leaves what batch norm normalises as it was") {
  // Every convolution's result meets a batch norm before the next weight, so in training a common
  // factor only moves the epsilon.
  const whole_network whole;
  const torch::NoGradGuard no_grad;
  const at::Tensor x = images(32);
  DOCTEST_CHECK(at::allclose(whole.module.forward(x, {norm_mode::batch, nullptr, 1}),
                             whole.module.forward(x, {norm_mode::batch, nullptr, 4}), 1e-2, 1e-2));
}

DOCTEST_TEST_CASE("first values follow from the seed and are bounded") {
  pre_resnet a(trainer::full_size()), b(trainer::full_size()), other(trainer::full_size());
  trainer::start(a, 1);
  trainer::start(b, 1);
  trainer::start(other, 2);
  const auto of_a = a.tensors(), of_b = b.tensors(), of_other = other.tensors();
  for (std::size_t t = 0; t < of_a.size(); ++t) {
    DOCTEST_CHECK(of_a[t].equal(of_b[t]));
    if (of_a[t].dim() > 1) DOCTEST_CHECK(!of_a[t].equal(of_other[t]));
  }
  const at::Tensor stem = of_a[0];  // 25 inputs
  DOCTEST_CHECK(stem.abs().max().item<double>() <= std::sqrt(6.0 / 25));
  DOCTEST_CHECK(stem.std().item<double>() == doctest::Approx(std::sqrt(2.0 / 25)).epsilon(0.1));
}

DOCTEST_TEST_CASE("a factor of a channel is one of the weights that read it") {
  const whole_network whole;
  const torch::NoGradGuard no_grad;
  const at::Tensor x = images(8);
  const auto factors_of = [&](subfed::group_id g) {
    return at::rand({whole.net.net[g].extent, 1, 1}) + 0.5;
  };
  trainer::channel_factors factors;
  for (const auto g : whole.net.stream) factors.stream.push_back(factors_of(g));
  for (const auto g : whole.net.inner) factors.inner.push_back(factors_of(g));

  pre_resnet other(trainer::full_size());
  network_moments moments;
  for (const auto& m : whole.moments) moments.push_back({m.mean.clone(), m.variance.clone()});
  const auto from = whole.module.tensors(), to = other.tensors();
  for (std::size_t t = 0; t < to.size(); ++t) to[t].copy_(from[t]);
  for (const auto& named : other.named_parameters()) {
    at::Tensor w = named.value().detach();
    if (named.key() == "block1.conv1.weight") w *= factors.stream[0];
    if (named.key() == "block1.conv2.weight") w *= factors.inner[0];
    if (named.key() == "block2.conv1.weight") w *= factors.stream[0];
    if (named.key() == "block2.shortcut.weight") w *= factors.stream[0];
    if (named.key() == "block2.conv2.weight") w *= factors.inner[1];
    if (named.key() == "linear.weight") w *= factors.stream[1].view({-1});
  }
  // The moments of what the blocks pass on change with the weights: measured anew on both sides.
  network_moments ours, theirs;
  whole.module.forward(x, {norm_mode::measure, &ours, 1, &factors});
  other.forward(x, {norm_mode::measure, &theirs, 1});
  const at::Tensor with_factors = whole.module.forward(x, {norm_mode::given, &ours, 1, &factors});
  DOCTEST_CHECK(
      at::allclose(with_factors, other.forward(x, {norm_mode::given, &theirs, 1}), 1e-4, 1e-4));
  DOCTEST_CHECK(!at::allclose(with_factors, whole.module.forward(x, {norm_mode::given, &ours, 1}),
                              1e-2, 1e-2));
}

DOCTEST_TEST_CASE("SGD on all parameters at once has the bits of LibTorch's") {
  torch::manual_seed(4);
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 5e-4}) {
      pre_resnet ours(trainer::full_size()), theirs(trainer::full_size());
      trainer::start(ours, 1);
      trainer::start(theirs, 1);
      const auto before = ours.tensors();
      trainer::flat_sgd flat(ours, {0.05, momentum, decay});
      torch::optim::SGD plain(
          theirs.parameters(),
          torch::optim::SGDOptions(0.05).momentum(momentum).weight_decay(decay));
      for (int step = 0; step < 3; ++step) {
        const at::Tensor x = images(7);
        flat.zero_gradients();
        for (const at::Tensor& gradient : theirs.gradients()) gradient.zero_();
        ours.forward(x, {}).square().sum().backward();
        theirs.forward(x, {}).square().sum().backward();
        flat.step();
        plain.step();
      }
      const auto a = ours.tensors(), b = theirs.tensors();
      for (std::size_t t = 0; t < a.size(); ++t) {
        DOCTEST_CHECK(a[t].equal(b[t]));
        DOCTEST_CHECK(!a[t].equal(before[t]));
        DOCTEST_CHECK(a[t].is_contiguous());
      }
    }
  }
}

DOCTEST_TEST_CASE("first values have the variance that is asked for") {
  pre_resnet plain(trainer::full_size()), narrow(trainer::full_size());
  trainer::start(plain, 1);
  trainer::start(narrow, 1, 0.5);
  const auto a = plain.tensors(), b = narrow.tensors();
  for (std::size_t t = 0; t < a.size(); ++t) {
    if (a[t].dim() > 1) DOCTEST_CHECK(at::allclose(a[t], 2 * b[t], 1e-6));
  }
}

DOCTEST_TEST_CASE("the operations of an image are counted layer by layer") {
  const architecture net = trainer::describe(trainer::full_size());
  // conv1, block1 (7 x 7), block2 (4 x 4, from 32 to 64 channels), linear.
  const std::int64_t expected =
      49 * 25 * 32 + 2 * 49 * 9 * 32 * 32 + 16 * (9 * 32 * 64 + 9 * 64 * 64 + 32 * 64) + 64 * 10;
  DOCTEST_CHECK(net.work.count(subfed::submodel::full(net.net)) == expected);
}
