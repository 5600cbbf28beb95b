// SPDX-License-Identifier: MIT
/// The networks of examples/models: description and torch module have the same tensors, and every
/// client's network is a true sub-network.
#include "true_subnetwork.hpp"

#include <models/char_lstm_module.hpp>
#include <models/lenet_module.hpp>
#include <models/pre_resnet18_module.hpp>
#include <models/resnet50_module.hpp>
#include <models/transformer_module.hpp>
#include <models/vgg9_module.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using subfed::submodel;

namespace {

/// Makes modules of one description.
template <class Module, class Described>
auto maker(const Described& described) {
  return [&described](const submodel& part) { return std::make_shared<Module>(described, part); };
}

/// A layer norm of the transformer normalises over the nodes that the client holds.
void mask_norms(models::transformer_module& network, const models::transformer& described,
                const submodel& part) {
  for (const auto& each : network.named_modules("", false)) {
    auto* norm = each.value()->as<models::layer_norm_module>();
    if (norm == nullptr) continue;
    const bool decoder = each.key() == "decoder_norm";
    norm->kept = support::kept_nodes(part, decoder ? described.decoder : described.width);
  }
}

}  // namespace

DOCTEST_TEST_CASE("PreResNet18: every client's network is a true sub-network") {
  const auto described = models::describe_pre_resnet18({.widths = {16, 32, 64, 128}});
  const at::Tensor images = torch::randn({2, 3, 32, 32});
  support::check_true_subnetwork(described.net, maker<models::pre_resnet18_module>(described),
                                 [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE("LeNet of Fashion-MNIST: every client's network is a true sub-network") {
  const auto described = models::describe_lenet(models::lenet_options::fashion_mnist());
  const at::Tensor images = torch::randn({2, 1, 28, 28});
  support::check_true_subnetwork(described.net, maker<models::lenet_module>(described),
                                 [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE("LeNet of SVHN: every client's network is a true sub-network") {
  const auto described = models::describe_lenet(models::lenet_options::svhn());
  const at::Tensor images = torch::randn({2, 3, 32, 32});
  support::check_true_subnetwork(described.net, maker<models::lenet_module>(described),
                                 [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE("VGG-9: every client's network is a true sub-network") {
  const auto described = models::describe_vgg9();
  const at::Tensor images = torch::randn({1, 3, 32, 32});
  support::check_true_subnetwork(described.net, maker<models::vgg9_module>(described),
                                 [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE("character LSTM: every client's network is a true sub-network") {
  const auto described = models::describe_char_lstm();
  const at::Tensor text = torch::randint(80, {2, 12});
  support::check_true_subnetwork(described.net, maker<models::char_lstm_module>(described),
                                 [&](auto& network) { return network.forward(text); });
}

DOCTEST_TEST_CASE(
    "Transformer cut inside its heads: every client's network is a true sub-network") {
  const auto described = models::describe_transformer({.vocabulary = 500});
  const at::Tensor text = torch::randint(500, {2, 9});
  support::check_true_subnetwork(
      described.net, maker<models::transformer_module>(described),
      [&](auto& network) { return network.forward(text); },
      [&](auto& network, const auto& part) { mask_norms(network, described, part); });
}

DOCTEST_TEST_CASE("Transformer cut in whole heads: every client's network is a true sub-network") {
  const auto described =
      models::describe_transformer({.vocabulary = 500, .cut = models::head_cut::whole});
  const at::Tensor text = torch::randint(500, {2, 9});
  support::check_true_subnetwork(
      described.net, maker<models::transformer_module>(described),
      [&](auto& network) { return network.forward(text); },
      [&](auto& network, const auto& part) { mask_norms(network, described, part); });
}

DOCTEST_TEST_CASE("PreResNet18 and the Transformer at full size have the tensors described") {
  const auto resnet = models::describe_pre_resnet18();
  const auto images = maker<models::pre_resnet18_module>(resnet)(submodel::full(resnet.net));
  DOCTEST_CHECK_NOTHROW(subfed::check_shapes(resnet.net, support::shapes_of(*images)));
  const auto transformer = models::describe_transformer();
  const auto text = maker<models::transformer_module>(transformer)(submodel::full(transformer.net));
  DOCTEST_CHECK_NOTHROW(subfed::check_shapes(transformer.net, support::shapes_of(*text)));
}

DOCTEST_TEST_CASE("bottleneck ResNet with running statistics: a true sub-network") {
  const auto described =
      models::describe_resnet50({.blocks = {2, 1, 1, 2}, .width = 16, .classes = 10});
  const at::Tensor images = torch::randn({2, 3, 32, 32});
  support::check_true_subnetwork(described.net, maker<models::resnet50_module>(described),
                                 [&](auto& network) { return network.forward(images); });
}

DOCTEST_TEST_CASE("ResNet-50 is described, cut and averaged; counters keep type and value") {
  torch::NoGradGuard no_gradients;
  const auto described = models::describe_resnet50();
  const auto global = maker<models::resnet50_module>(described)(submodel::full(described.net));
  const auto shapes = support::shapes_of(*global);
  DOCTEST_CHECK(shapes.size() == 320);
  subfed::check_shapes(described.net, shapes);
  support::fill(*global);
  const auto all = support::tensors_of(*global);
  std::vector<at::Tensor> before;
  for (const at::Tensor& t : all) before.push_back(t.clone());

  // Two clients train by adding 1 and 3 to all that they hold and counting 100 steps.
  subfed::selective_average<void> mean(described.net);
  std::vector<submodel> parts;
  std::vector<std::shared_ptr<models::resnet50_module>> clients;
  for (const std::uint64_t client : {0u, 1u}) {
    parts.push_back(subfed::draw(described.net, subfed::random_subset(),
                                 {.seed = 3, .client = client, .capacity = 0.25}));
    clients.push_back(std::make_shared<models::resnet50_module>(described, parts.back()));
    const auto local = support::tensors_of(*clients.back());
    subfed::slice<void>(all, parts.back(), local);
    for (const at::Tensor& t : local) {
      if (t.scalar_type() == torch::kLong) DOCTEST_CHECK(t.item<std::int64_t>() == 7);
      t.add_(t.scalar_type() == torch::kLong ? 100 : client == 0 ? 1 : 3);
    }
    mean.add(parts.back(), local);
  }
  mean.finish(all);

  for (std::size_t t = 0; t < all.size(); ++t) {
    DOCTEST_INFO(shapes[t].name);
    if (all[t].scalar_type() == torch::kLong) {
      DOCTEST_CHECK(all[t].dim() == 0);
      DOCTEST_CHECK(all[t].item<std::int64_t>() == 7);
      continue;
    }
    // Per element: kept, + 1, + 3, or + 2 where both hold it.
    at::Tensor sum = torch::zeros_like(before[t]);
    at::Tensor holders = torch::zeros_like(before[t]);
    for (std::size_t c = 0; c < 2; ++c) {
      const subfed::tensor_id id(t);
      const at::Tensor ones = torch::ones(at::IntArrayRef(parts[c].extents(id)));
      const at::Tensor grown = ones * (c == 0 ? 1 : 3);
      subfed::scatter_add<float>(ones, parts[c][id], holders);
      subfed::scatter_add<float>(grown, parts[c][id], sum);
    }
    const at::Tensor expected = before[t] + sum / holders.clamp_min(1);
    DOCTEST_CHECK((all[t] - expected).abs().max().item<double>() < 1e-5);
    DOCTEST_CHECK(all[t].masked_select(holders == 0).equal(before[t].masked_select(holders == 0)));
  }
}
