// SPDX-License-Identifier: MIT
/// The descriptions of examples/models are proven by putting their nodes in another order.
#include "true_subnetwork.hpp"

#include <models/char_lstm_module.hpp>
#include <models/lenet_module.hpp>
#include <models/pre_resnet18_module.hpp>
#include <models/resnet50_module.hpp>
#include <models/transformer_module.hpp>
#include <models/vgg9_module.hpp>
#include <subfed/proof.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace {

/// Runs a module on the values that it is given.
template <class Module, class Run>
auto forward_of(const subfed::model& net, Module& network, Run& run) {
  return [&](const subfed::tensor_views<const double>& all) {
    const torch::NoGradGuard no_gradients;
    const auto own = subfed::by_name(net, network.named_parameters(), network.named_buffers());
    for (std::size_t t = 0; t < own.size(); ++t) {
      if (own[t].scalar_type() != torch::kDouble) continue;  // counters
      own[t].copy_(torch::from_blob(const_cast<double*>(all[t].data_handle()), own[t].sizes(),
                                    torch::kDouble));
    }
    const at::Tensor out = run(network).contiguous();
    return std::vector<double>(out.data_ptr<double>(), out.data_ptr<double>() + out.numel());
  };
}

template <class Module, class Described, class Run>
subfed::description_proof proof_of(const Described& described, Run run) {
  torch::manual_seed(1);
  const auto network = std::make_shared<Module>(described, subfed::submodel::full(described.net));
  network->to(torch::kDouble);
  network->eval();
  return subfed::prove_description<double>(described.net, forward_of(described.net, *network, run));
}

/// Right, but for tensors of one ending, which have no effect.
void check_proof(const subfed::description_proof& proof, const std::string& without_effect = "") {
  DOCTEST_INFO(describe(proof));
  DOCTEST_CHECK(proof.verdict() != subfed::verdict::wrong);
  DOCTEST_CHECK(proof.rounding < 1e-11);
  for (const subfed::binding& use : proof.not_shown) {
    const std::string& name = proof.net[use.tensor].name;
    DOCTEST_INFO(name);
    DOCTEST_CHECK((!without_effect.empty() && name.ends_with(without_effect)));
  }
  DOCTEST_CHECK(proof.not_permuted.empty());
}

}  // namespace

DOCTEST_TEST_CASE("PreResNet18 is proven") {
  const auto described = models::describe_pre_resnet18({.widths = {4, 6, 8, 10}});
  const at::Tensor images = torch::randn({2, 3, 16, 16}, torch::kDouble);
  check_proof(proof_of<models::pre_resnet18_module>(
      described, [&](auto& network) { return network.forward(images); }));
}

DOCTEST_TEST_CASE("ResNets of bottlenecks are proven, running statistics too") {
  const auto described = models::describe_resnet50({.blocks = {1, 2}, .width = 4, .classes = 5});
  const at::Tensor images = torch::randn({2, 3, 32, 32}, torch::kDouble);
  check_proof(proof_of<models::resnet50_module>(
      described, [&](auto& network) { return network.forward(images); }));
}

DOCTEST_TEST_CASE("LeNet and VGG-9 are proven") {
  const auto lenet = models::describe_lenet(models::lenet_options::fashion_mnist());
  const at::Tensor images = torch::randn({1, 1, 28, 28}, torch::kDouble);
  check_proof(proof_of<models::lenet_module>(
      lenet, [&](auto& network) { return network.forward(images); }));
  const auto vgg9 = models::describe_vgg9();
  const at::Tensor coloured = torch::randn({1, 3, 32, 32}, torch::kDouble);
  check_proof(proof_of<models::vgg9_module>(
      vgg9, [&](auto& network) { return network.forward(coloured); }));
}

DOCTEST_TEST_CASE("the character LSTM is proven") {
  const auto described = models::describe_char_lstm();
  const at::Tensor text = torch::randint(80, {2, 6});
  check_proof(proof_of<models::char_lstm_module>(
      described, [&](auto& network) { return network.forward(text); }));
}

DOCTEST_TEST_CASE(
    "the Transformer is proven for both cuts of its heads; biases of keys do nothing") {
  for (const auto cut : {models::head_cut::inside, models::head_cut::whole}) {
    const auto described = models::describe_transformer({.vocabulary = 20,
                                                         .positions = 8,
                                                         .width = 12,
                                                         .heads = 3,
                                                         .head_width = 4,
                                                         .hidden = 10,
                                                         .layers = 2,
                                                         .cut = cut});
    const at::Tensor text = torch::randint(20, {2, 6});
    check_proof(proof_of<models::transformer_module>(
                    described, [&](auto& network) { return network.forward(text); }),
                "k_proj.bias");
  }
}
