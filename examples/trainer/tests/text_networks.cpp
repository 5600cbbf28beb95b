// SPDX-License-Identifier: MIT
/// Networks for texts: parts of the whole, before and after a step.
#include "text_networks.hpp"

#include <string>
#include <subfed/adapt/torch.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/proof.hpp>
#include <vector>

#include <models/char_lstm_module.hpp>
#include <models/transformer_module.hpp>

#include "architecture.hpp"
#include "evaluation.hpp"
#include "flat_sgd.hpp"
#include "method.hpp"
#include "pool.hpp"
#include "results_of.hpp"
#include "server.hpp"
#include "torch_runtime.hpp"

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

namespace {

using trainer::model_kind;

constexpr std::int64_t few_words = 50;

trainer::channel_counts channels_of(model_kind model) {
  return trainer::full_size(model, 1, few_words);
}
at::Tensor some_text(model_kind model, std::int64_t count, std::int64_t steps) {
  return at::randint(model == model_kind::char_lstm ? 80 : few_words + 1, {count, steps}, at::kInt);
}

/// A whole network with values of its own in every tensor.
struct whole_text_network {
  trainer::architecture net;
  std::shared_ptr<trainer::network> module;

  explicit whole_text_network(model_kind model) : net(trainer::describe(channels_of(model))) {
    module = trainer::make_network(channels_of(model), net.norm);
    trainer::start(*module, 1);
    torch::manual_seed(1);
    for (const at::Tensor& t : module->tensors()) {
      if (t.dim() == 1) t.add_(at::randn_like(t) * 0.3);
    }
  }
};

subfed::submodel part_by(const trainer::architecture& net, const char* name,
                         const subfed::draw_key& key) {
  const trainer::options settings;
  const auto method = trainer::find_method(name).make(settings, net);
  return subfed::draw(
      net.net, [&](const subfed::draw_request& where) { return method->nodes(where); }, key);
}

/// The whole network of examples/models, which shares no code with the trainer's: what a client does not
/// hold is 0 in it, and layer norms count only what it holds.
class masked_network {
 public:
  masked_network(const trainer::architecture& net, const subfed::submodel& part,
                 const std::vector<at::Tensor>& own) {
    const auto full = [](const auto& described) { return subfed::submodel::full(described.net); };
    if (net.model == model_kind::char_lstm) {
      const auto described = models::describe_char_lstm();
      const auto made = std::make_shared<models::char_lstm_module>(described, full(described));
      module_ = made;
      forward_ = [made](const at::Tensor& x) { return made->forward(x); };
    } else {
      models::transformer_options options;
      options.vocabulary = few_words;
      const auto described = models::describe_transformer(options);
      const auto made = std::make_shared<models::transformer_module>(described, full(described));
      module_ = made;
      forward_ = [made](const at::Tensor& x) { return made->forward(x); };
    }
    const auto kept = [&](subfed::group_id group) {
      at::Tensor out = at::zeros({net.net[group].extent});
      for (const std::int64_t n : part[group]) out[n] = 1;
      return out;
    };
    for (const auto& each : module_->named_modules()) {
      if (auto* norm = each.value()->as<models::layer_norm_module>()) {
        norm->kept = kept(each.key() == "decoder_norm" ? net.last : net.stream.at(0));
      }
    }
    const auto all = tensors();
    for (const at::Tensor& t : all) t.zero_();
    subfed::scatter<float>(own, part, all);
  }

  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> out;
    for (const at::Tensor& p : module_->parameters()) out.push_back(p.detach());
    return out;
  }
  at::Tensor forward(const at::Tensor& x) const { return forward_(x.to(at::kLong)).flatten(0, 1); }
  void step(double lr) const {
    const torch::NoGradGuard no_grad;
    for (at::Tensor p : module_->parameters()) p.add_(p.grad(), -lr);
  }

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::function<at::Tensor(const at::Tensor&)> forward_;
};

bool close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-3, 1e-5); }

}  // namespace

DOCTEST_TEST_CASE("networks for texts have the papers' sizes") {
  const auto size = [](const trainer::channel_counts& channels) {
    return trainer::describe(channels).net.size();
  };
  const auto transformer = trainer::full_size(model_kind::transformer, 1, 10000);
  DOCTEST_CHECK(size(transformer) == 4374416);
  DOCTEST_CHECK(size(trainer::narrowed(transformer, 0.0625)) == 178136);
  DOCTEST_CHECK(size(trainer::full_size(model_kind::char_lstm)) ==
                models::describe_char_lstm().net.size());
  for (const auto model : {model_kind::char_lstm, model_kind::transformer}) {
    const auto one = channels_of(model), four = trainer::full_size(model, 4, few_words);
    DOCTEST_CHECK(trainer::narrowed(four, 0.25) == one);
    for (const subfed::capacity share : {1.0, 0.5, 0.3, 0.0625}) {
      const auto channels = trainer::narrowed(one, share);
      const auto net = trainer::describe(channels);
      DOCTEST_CHECK_NOTHROW(trainer::check_match(*trainer::make_network(channels, net.norm), net));
      DOCTEST_CHECK(net.channels(subfed::submodel::full(net.net)) == channels);
    }
  }
}

DOCTEST_TEST_CASE("multiply-adds of a sequence are those of its steps") {
  const auto of = [](model_kind model, double share) {
    const auto net = trainer::describe(trainer::narrowed(channels_of(model), share));
    return net.work.count(subfed::submodel::full(net.net));
  };
  DOCTEST_CHECK(of(model_kind::char_lstm, 1) == 64 * (4 * 256 * (8 + 256) + 256 * 80));
  DOCTEST_CHECK(of(model_kind::char_lstm, 0.25) == 64 * (4 * 64 * (8 + 64) + 64 * 80));
  const auto transformer = [](std::int64_t width, std::int64_t heads, std::int64_t hidden) {
    return 3 * (20 * (4 * width * heads + 2 * width * hidden) + 2 * 20 * 20 * heads) +
           20 * (width * width + width * few_words);
  };
  DOCTEST_CHECK(of(model_kind::transformer, 1) == transformer(128, 128, 2048));
  DOCTEST_CHECK(of(model_kind::transformer, 0.5) == transformer(64, 64, 1024));
}

DOCTEST_TEST_CASE("networks for texts are proven, and clients' networks are parts") {
  for (const auto model : {model_kind::char_lstm, model_kind::transformer}) {
    trainer::channel_counts channels{{}, {6}, 80, model};
    if (model == model_kind::transformer) channels = {{12}, {4, 10, 4, 10, 4, 10, 12}, 20, model};
    const auto net = trainer::describe(channels);
    torch::manual_seed(2);
    const at::Tensor x = at::randint(20, {2, 6}, at::kInt);
    const auto forward = [&](const subfed::submodel& part,
                             const subfed::tensor_views<const double>& values) {
      return results_of(net, part, values, x);
    };
    const auto proof = subfed::prove_description<double>(
        net.net, [&](const subfed::tensor_views<const double>& values) {
          return forward(subfed::submodel::full(net.net), values);
        });
    DOCTEST_INFO(describe(proof));
    DOCTEST_CHECK(proof.verdict() != subfed::verdict::wrong);
    DOCTEST_CHECK(proof.not_permuted.empty());
    for (const subfed::binding& use : proof.not_shown) {  // biases of keys change no softmax
      DOCTEST_CHECK(proof.net[use.tensor].name.ends_with("k_proj.bias"));
    }
  }
}

DOCTEST_TEST_CASE("a client's network for texts is the masked whole one, before and after a step") {
  for (const auto model : {model_kind::char_lstm, model_kind::transformer}) {
    const whole_text_network whole(model);
    const std::int64_t steps = 7;
    const at::Tensor x = some_text(model, 3, steps);
    const at::Tensor targets = at::randint(whole.module->classes(), {3 * steps}, at::kLong);
    for (const char* name : {"fedrolex", "heterofl", "federated-dropout"}) {
      for (const double share : {1.0, 0.5, 0.25, 0.0625}) {
        const subfed::submodel part =
            part_by(whole.net, name, {.seed = 5, .round = 60, .client = 3, .capacity = share});
        const auto own = trainer::make_network(whole.net.channels(part), whole.net.norm);
        subfed::slice<float>(whole.module->tensors(), part, own->tensors());
        const masked_network masked(whole.net, part, own->tensors());
        DOCTEST_INFO(name << ", capacity " << share << ", model " << static_cast<int>(model));

        const at::Tensor ours = own->forward(x, {}), expected = masked.forward(x);
        DOCTEST_CHECK(ours.size(0) == 3 * steps);
        DOCTEST_CHECK(close(ours, expected));

        trainer::flat_sgd optimiser(*own, {0.1, 0, 0});
        at::cross_entropy_loss(own->forward(x, {}), targets).backward();
        at::cross_entropy_loss(masked.forward(x), targets).backward();
        const at::Tensor before = own->tensors().front().clone();
        optimiser.step();
        masked.step(0.1);
        DOCTEST_CHECK(!own->tensors().front().equal(before));
        const auto trained = own->tensors();
        std::vector<at::Tensor> held;
        for (const at::Tensor& t : trained) held.push_back(at::empty_like(t));
        subfed::slice<float>(masked.tensors(), part, held);
        for (std::size_t t = 0; t < trained.size(); ++t) {
          DOCTEST_INFO(whole.net.net.tensors()[t].name);
          DOCTEST_CHECK(close(trained[t], held[t]));
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("a Transformer's first values are a sixth of the variance of others") {
  trainer::pool workers(1, trainer::make_thread_repeatable);
  for (const auto model : {model_kind::char_lstm, model_kind::transformer}) {
    trainer::options settings;
    settings.model = model;
    settings.cohort.mix.classes = {{1.0, 1}};
    const trainer::server central(trainer::find_method("fedavg"), settings, at::kCPU, workers);
    const auto network = central.evaluated_networks().front();
    const char* name = model == model_kind::transformer ? "decoder2.weight" : "decoder.weight";
    const double inputs = model == model_kind::transformer ? 128 : 256;
    const double variance = (model == model_kind::transformer ? 1.0 / 3 : 2) / inputs;
    DOCTEST_CHECK(network->named_parameters()[name].detach().var().item<double>() ==
                  doctest::Approx(variance).epsilon(0.05));
  }
}

DOCTEST_TEST_CASE("no step of a network for texts sees a later one") {
  for (const auto model : {model_kind::char_lstm, model_kind::transformer}) {
    const torch::NoGradGuard no_grad;
    const whole_text_network whole(model);
    at::Tensor x = some_text(model, 2, 9);
    const at::Tensor before = whole.module->forward(x, {}).view({2, 9, -1}).clone();
    x.narrow(1, 5, 4).fill_(3);
    const at::Tensor after = whole.module->forward(x, {}).view({2, 9, -1});
    DOCTEST_CHECK(close(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
    DOCTEST_CHECK(!close(before.narrow(1, 5, 4), after.narrow(1, 5, 4)));
  }
}

DOCTEST_TEST_CASE("the scaler of a text multiplies what hidden nodes give") {
  const torch::NoGradGuard no_grad;
  const auto scaled = [](const trainer::network& n, const at::Tensor& x, double scale) {
    return n.forward(x, {trainer::norm_mode::batch, nullptr, scale});
  };
  // The LSTM's: as if the weights that read hidden nodes were larger.
  const whole_text_network lstm(model_kind::char_lstm);
  const at::Tensor text = some_text(model_kind::char_lstm, 2, 5);
  const at::Tensor ours = scaled(*lstm.module, text, 2);
  DOCTEST_CHECK(!close(ours, scaled(*lstm.module, text, 1)));
  for (const auto& named : lstm.module->named_parameters()) {
    if (named.key() == "lstm.weight_hh_l0" || named.key() == "decoder.weight") {
      named.value().detach().mul_(2);
    }
  }
  DOCTEST_CHECK(close(ours, scaled(*lstm.module, text, 1)));
  // The Transformer's: as if all linear layers but the last had larger weights and biases.
  const whole_text_network transformer(model_kind::transformer);
  const at::Tensor words = some_text(model_kind::transformer, 2, 5);
  const at::Tensor theirs = scaled(*transformer.module, words, 1.5);
  for (const auto& named : transformer.module->named_parameters()) {
    const std::string& name = named.key();
    if (name.find("_proj.") != std::string::npos || name.find("linear") != std::string::npos ||
        name.find("decoder1.") != std::string::npos) {
      named.value().detach().mul_(1.5);
    }
  }
  DOCTEST_CHECK(close(theirs, scaled(*transformer.module, words, 1)));
}

DOCTEST_TEST_CASE("sequences as tensors: what is read, what comes next, and words to leave out") {
  trainer::text_set set;
  set.steps = 3;
  set.classes = 5;
  set.tokens = {0, 1, 2, 3, 4, 5, 0, 1, 2, 2, 5, 5};
  set.first = {0, 2, 3};
  const trainer::device_data data(set, at::kCPU);
  DOCTEST_CHECK(data.count() == 3);
  DOCTEST_CHECK(data.targets_each() == 3);
  const std::vector<std::int64_t> chosen = {2, 0};
  const at::Tensor inputs = data.inputs(chosen), targets = data.targets(chosen);
  DOCTEST_CHECK(inputs.equal(at::tensor({2, 2, 5, 0, 1, 2}, at::kInt).view({2, 3})));
  DOCTEST_CHECK(targets.equal(at::tensor({2, -100, -100, 1, 2, 3}, at::kLong)));

  // Such a row has no part in the loss, and no answer to it is right.
  const at::Tensor logits = at::randn({6, 5});
  trainer::batch samples;
  samples.targets = targets;
  const at::Tensor loss = trainer::masked_loss(logits, samples, trainer::absent_classes::zero);
  const at::Tensor rows = at::tensor({0, 3, 4, 5}, at::kLong);
  DOCTEST_CHECK(close(
      loss, at::cross_entropy_loss(logits.index_select(0, rows), targets.index_select(0, rows))));
  const at::Tensor right = at::one_hot(targets.clamp_min(0), 5).to(at::kFloat);
  const trainer::answers given{right, targets, 3};
  DOCTEST_CHECK(trainer::judge(given, {}).accuracy == doctest::Approx(4.0 / 6));
  // Clients are judged by their own sequences: the first row of three, and the last.
  std::vector<trainer::client> clients(2);
  clients[0].tests = {0};
  clients[1].tests = {1};
  const auto local = trainer::local_accuracies(given, clients);
  DOCTEST_CHECK(local[0] == doctest::Approx(1.0 / 3));
  DOCTEST_CHECK(local[1] == 1);
}
