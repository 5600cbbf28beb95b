// SPDX-License-Identifier: MIT
/// Methods against each other where they must be the same, and against what they promise.
#include "method.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <subfed/adapt/torch.hpp>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/philox.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <vector>

#include "host_copy.hpp"
#include "liars.hpp"
#include "server.hpp"
#include "torch_runtime.hpp"

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

namespace {

/// A server and clients with random images, run for some rounds without evaluation.
struct small_run {
  trainer::options settings;
  std::vector<trainer::client> clients;
  trainer::pool workers{2, trainer::make_thread_repeatable};
  std::unique_ptr<trainer::device_data> data;
  std::unique_ptr<trainer::server> central;
  std::vector<trainer::local_training> trainings;
  trainer::training_plan plan{2, 4, 0.05, 0.9, 5e-4};

  small_run(const std::string& name, const trainer::options& given) : settings(given) {
    trainer::make_process_repeatable();
    trainer::dataset images{120, 28, 28, {}, {}};
    subfed::random_stream noise(3, 0, 0, "images");
    for (int i = 0; i < 120; ++i) images.labels.push_back(std::uint8_t(i % 10));
    for (int i = 0; i < 120 * 28 * 28; ++i) images.pixels.push_back(std::uint8_t(noise.below(256)));
    data = std::make_unique<trainer::device_data>(images, at::kCPU);
    clients = trainer::partition(
        images.labels,
        {.seed = 1, .clients = settings.cohort.clients, .labels_each = 2, .samples_each = 12});
    // Weights by examples are seen when clients have different numbers of them.
    for (trainer::client& c : clients) c.samples.resize(12 - 2 * (c.number % 4));
    central =
        std::make_unique<trainer::server>(trainer::find_method(name), settings, at::kCPU, workers);
  }

  trainer::tensor_list rounds(std::uint64_t count) {
    const subfed::cohort_model cohorts(settings.cohort);
    for (std::uint64_t r = 0; r < count; ++r) {
      trainings = central->cut(cohorts.members(r), clients, r);
      for (trainer::local_training& t : trainings) trainer::train(t, *data, plan);
      central->average(trainings);
    }
    trainer::checkpoint kept;
    central->keep(kept);
    trainer::tensor_list out;
    for (const auto& tensor : central->described().net.tensors()) {
      out.push_back(kept.tensors.at(tensor.name));
    }
    return trainer::copies(out);
  }
};

trainer::options all_of_capacity_1() {
  trainer::options out;
  out.cohort.seed = 1;
  out.cohort.clients = 6;
  out.cohort.participation = 0.5;
  out.cohort.mix.classes = {{1.0, 1}};
  out.weights = trainer::weight_rule::examples;
  return out;
}

double distance(const trainer::tensor_list& a, const trainer::tensor_list& b) {
  double most = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    most = (std::max)(most, (a[t] - b[t]).abs().max().item<double>());
  }
  return most;
}

trainer::tensor_list after(const std::string& name, const trainer::options& settings,
                           std::uint64_t rounds) {
  return small_run(name, settings).rounds(rounds);
}

/// The keep probability that FedDrop and UniDrop start with.
double start_of_keep(const trainer::options& settings, const trainer::architecture& net) {
  return subfed::flops_budget(subfed::expected_flops(net.net, net.work), settings.flops_ratio)
      .constant_start();
}

}  // namespace

DOCTEST_TEST_CASE("when all clients can hold everything, every scheme is FedAvg") {
  const trainer::options settings = all_of_capacity_1();
  const auto expected = after("fedavg", settings, 3);
  for (const char* name : {"heterofl", "federated-dropout", "fjord", "ensemble"}) {
    DOCTEST_INFO(std::string(name));
    DOCTEST_CHECK(distance(after(name, settings, 3), expected) == 0);
  }
  // A window that starts elsewhere adds up channels in another order.
  DOCTEST_CHECK(distance(after("fedrolex", settings, 3), expected) < 1e-4);
  trainer::options everything = settings;
  everything.flops_ratio = 1;
  everything.divide_by = subfed::divisor::holders;  // label rows make a difference
  DOCTEST_CHECK(distance(after("unidrop", everything, 3), expected) == 0);
  everything.proximal = 0;
  DOCTEST_CHECK(distance(after("fedprox", everything, 3), expected) == 0);
}

DOCTEST_TEST_CASE("FedProx stays nearer to where it started") {
  trainer::options settings = all_of_capacity_1();
  const auto start = after("fedprox", settings, 0);
  const double free = distance(after("fedavg", settings, 1), start);
  settings.proximal = 2;
  const double held = distance(after("fedprox", settings, 1), start);
  DOCTEST_CHECK(held < 0.8 * free);
  DOCTEST_CHECK(held > 0);
}

DOCTEST_TEST_CASE(
    "SCAFFOLD begins as FedAvg, and its control is the mean of the clients' controls") {
  trainer::options settings = all_of_capacity_1();
  settings.absent = trainer::absent_classes::trained;  // FedAvg counts label rows otherwise
  DOCTEST_CHECK(distance(after("scaffold", settings, 1), after("fedavg", settings, 1)) == 0);
  DOCTEST_CHECK(distance(after("scaffold", settings, 3), after("fedavg", settings, 3)) > 0);

  small_run run("scaffold", settings);
  for (int rounds = 0; rounds < 2; ++rounds) run.rounds(3);
  trainer::checkpoint kept;
  run.central->keep(kept);
  const auto state = trainer::with_prefix(kept, "method.");
  for (std::size_t t = 0; t < run.central->described().net.tensors().size(); ++t) {
    at::Tensor sum = at::zeros_like(state.at("server." + std::to_string(t)));
    for (std::int64_t c = 0; c < settings.cohort.clients; ++c) {
      const auto own = state.find("client." + std::to_string(c) + "." + std::to_string(t));
      if (own != state.end()) sum += own->second;
    }
    const at::Tensor mean = sum / static_cast<double>(settings.cohort.clients);
    DOCTEST_CHECK(at::allclose(state.at("server." + std::to_string(t)), mean, 1e-4, 1e-5));
  }
}

DOCTEST_TEST_CASE("SCAFFOLD averages all rows of all clients alike, as it does the controls") {
  trainer::options settings = all_of_capacity_1();
  settings.weights = trainer::weight_rule::by_method;
  small_run run("scaffold", settings);
  const auto values = run.rounds(1);
  for (std::size_t t = 0; t < values.size(); ++t) {
    at::Tensor mean = at::zeros_like(values[t]);
    for (const trainer::local_training& own : run.trainings) mean += own.network->tensors()[t];
    mean /= static_cast<double>(run.trainings.size());
    DOCTEST_CHECK(at::allclose(values[t], mean, 1e-5, 1e-6));
  }
}

DOCTEST_TEST_CASE("a control is the mean gradient of the client's steps, with momentum too") {
  // One client and one batch a round: without weight decay and in the first step the gradient is
  // what SGD moved by over the learning rate.
  trainer::options settings = all_of_capacity_1();
  settings.cohort.clients = 1;
  settings.cohort.participation = 1;
  small_run run("scaffold", settings);
  run.plan = {1, 64, 0.05, 0.9, 0};
  const auto before = run.rounds(0), after = run.rounds(1);
  trainer::checkpoint kept;
  run.central->keep(kept);
  const auto state = trainer::with_prefix(kept, "method.");
  for (std::size_t t = 0; t < before.size(); ++t) {
    DOCTEST_CHECK(at::allclose(state.at("client.0." + std::to_string(t)),
                               (before[t] - after[t]) / 0.05, 1e-3, 1e-5));
  }
}

DOCTEST_TEST_CASE("FjORD trains its widths, and distillation changes what narrow ones learn") {
  trainer::options settings = all_of_capacity_1();
  settings.widths = {subfed::capacity::ratio(1, 4), subfed::capacity::ratio(1, 2), 1.0};
  const auto start = after("fjord", settings, 0), plain = after("fjord", settings, 2);
  settings.distillation = true;
  const auto distilled = after("fjord", settings, 2);
  DOCTEST_CHECK(distance(plain, distilled) > 0);
  // Channels of the narrowest width are in every step, the others are not.
  for (const auto& trained : {plain, distilled}) {
    const at::Tensor moved = (trained[0] - start[0]).abs().sum({1, 2, 3});
    DOCTEST_CHECK(moved.min().item<double>() > 0);
  }
  settings.distilled.alpha = 0;  // the labels alone: the teacher's steps come on top
  DOCTEST_CHECK(distance(after("fjord", settings, 2), distilled) > 0);
}

DOCTEST_TEST_CASE("the members of an ensemble begin as small models and never touch each other") {
  trainer::options settings = all_of_capacity_1();
  settings.members = 4;
  small_run run("ensemble", settings);
  const auto start = run.rounds(0), values = run.rounds(4);
  const auto networks = run.central->evaluated_networks();
  DOCTEST_CHECK(networks.size() == 4);
  // Channel i of a quarter of a tensor's channels may meet those of the same quarter alone.
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (values[t].dim() < 2) continue;
    const bool between = values[t].size(0) != 10 && values[t].size(1) != 1;  // two cut dimensions
    const std::int64_t rows = values[t].size(0), columns = values[t].size(1);
    const auto inputs =
        static_cast<double>(networks[0]->tensors()[t].numel() / networks[0]->tensors()[t].size(0));
    DOCTEST_CHECK(networks[0]->tensors()[t].abs().max().item<double>() > 0);
    const double bound = std::sqrt(6 / inputs);
    const double largest = start[t].abs().max().item<double>();
    DOCTEST_CHECK(largest <= bound * 1.0001);
    DOCTEST_CHECK(largest > 0.9 * bound);
    if (!between) continue;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const double there = values[t][i][j].abs().sum().item<double>();
        DOCTEST_CHECK((there != 0) == (4 * i / rows == 4 * j / columns));
      }
    }
  }
}

DOCTEST_TEST_CASE("FedDrop's probabilities part, within the budget") {
  trainer::options settings = all_of_capacity_1();
  settings.flops_ratio = 0.4;
  small_run run("feddrop", settings);
  run.rounds(4);
  trainer::checkpoint kept;
  run.central->keep(kept);
  const auto state = trainer::with_prefix(kept, "method.");
  DOCTEST_CHECK(state.size() >= 3);
  const auto& described = run.central->described();
  const subfed::flops_budget budget(subfed::expected_flops(described.net, described.work), 0.4);
  std::vector<subfed::keep_probabilities> last;
  bool parted = false;
  for (const trainer::local_training& t : run.trainings) {
    const at::Tensor p = state.at("keep." + std::to_string(t.who->number));
    last.emplace_back(described.net);
    last.back().assign({p.data_ptr<double>(), static_cast<std::size_t>(p.numel())});
    parted = parted || (p.max() - p.min()).item<double>() > 0.05;
  }
  DOCTEST_CHECK(budget.slack(last) >= 0);
  DOCTEST_CHECK(parted);
}

DOCTEST_TEST_CASE("a client of an ensemble keeps its member where it is to") {
  trainer::options settings = all_of_capacity_1();
  settings.members = 4;
  settings.cohort.participation = 1;
  for (const auto by : {subfed::ensemble_members::assignment::per_client,
                        subfed::ensemble_members::assignment::by_number,
                        subfed::ensemble_members::assignment::per_round}) {
    settings.member_by = by;
    small_run run("ensemble", settings);
    run.rounds(1);
    const subfed::group_id group = run.central->described().stream[0];
    std::vector<subfed::index_set> first, later;
    for (const trainer::local_training& t : run.trainings) first.push_back(t.part[group]);
    run.rounds(4);  // rounds 0 .. 3 again; the last is 3
    for (const trainer::local_training& t : run.trainings) later.push_back(t.part[group]);
    const bool keeps = by != subfed::ensemble_members::assignment::per_round;
    DOCTEST_CHECK((first == later) == keeps);
    if (by != subfed::ensemble_members::assignment::by_number) continue;
    DOCTEST_CHECK(first[5] == first[1]);
    DOCTEST_CHECK(first[1][0] == 8);
  }
}

DOCTEST_TEST_CASE("a step of the window that leaves every window where it is is refused") {
  trainer::options settings = all_of_capacity_1();
  settings.window_step = 64;
  DOCTEST_CHECK_THROWS(small_run("fedrolex", settings));
  settings.window_step = 32;  // moves those of 64 channels
  DOCTEST_CHECK_NOTHROW(small_run("fedrolex", settings));
  settings.window_step = 64;
  settings.overlap = 0.5;
  DOCTEST_CHECK_NOTHROW(small_run("fedrolex", settings));
}

DOCTEST_TEST_CASE("windows start where --client-phase and --layer-phases say") {
  trainer::options settings;
  const trainer::architecture net = trainer::describe(trainer::full_size());
  const auto start = [&](const char* group, std::uint64_t client, std::uint64_t round,
                         std::uint64_t seed = 1) {
    const auto method = trainer::find_method("fedrolex").make(settings, net);
    return method->nodes({seed, round, client, group, 64, 0.25})[0];
  };
  DOCTEST_CHECK(start("a", 3, 10) == 10);
  settings.client_phase = 7;
  DOCTEST_CHECK(start("a", 3, 10) == 31);
  DOCTEST_CHECK(start("b", 3, 10) == 31);
  DOCTEST_CHECK(start("a", 9, 10) == (10 + 63) % 64);
  settings.client_phase = 0;
  settings.layer_phases = true;
  // Rolls as before, from a start that client and layer have for the whole run.
  std::set<std::int64_t> apart;  // by how much two layers of a client are
  for (std::uint64_t client = 0; client < 50; ++client) {
    DOCTEST_CHECK((start("a", client, 10) - start("a", client, 0) + 64) % 64 == 10);
    apart.insert((start("a", client, 0) - start("b", client, 0) + 64) % 64);
  }
  DOCTEST_CHECK(apart.size() > 20);
  DOCTEST_CHECK(start("a", 3, 0) == start("a", 3, 64));
  DOCTEST_CHECK(start("a", 3, 0, 1) != start("a", 3, 0, 2));
}

DOCTEST_TEST_CASE("what a mini-batch drops is not trained by it") {
  // One batch a round: what its thresholds drop keeps its values but for weight decay, which is off.
  trainer::options settings = all_of_capacity_1();
  settings.drop_by = trainer::thresholds::batch;
  settings.cohort.clients = 1;
  settings.cohort.participation = 1;
  small_run run("unidrop", settings);
  run.plan = {1, 64, 0.05, 0, 0};
  const auto before = run.rounds(0), after = run.rounds(1);
  DOCTEST_CHECK(run.trainings[0].part.size() == run.central->described().net.size());
  const at::Tensor moved = (after[0] - before[0]).abs().sum({1, 2, 3});
  const auto still = moved.eq(0).sum().item<std::int64_t>();
  DOCTEST_CHECK(still > 0);
  DOCTEST_CHECK(still < 32);
}

DOCTEST_TEST_CASE("without synchronisation every client has thresholds of its own") {
  trainer::options settings = all_of_capacity_1();
  settings.drop_by = trainer::thresholds::round;
  const trainer::architecture net = trainer::describe(trainer::full_size());
  const auto kept = [&](std::uint64_t client, std::uint64_t round, std::uint64_t seed) {
    return trainer::find_method("unidrop")
        .make(settings, net)
        ->nodes({seed, round, client, "inner2", 64, 1});
  };
  DOCTEST_CHECK(kept(0, 3, 1) == kept(1, 3, 1));
  const subfed::index_set common = kept(0, 3, 1);
  settings.synchronised = false;
  DOCTEST_CHECK(kept(0, 3, 1) == kept(0, 3, 1));
  DOCTEST_CHECK(kept(0, 3, 1) != common);
  DOCTEST_CHECK(kept(0, 3, 1) != kept(1, 3, 1));
  DOCTEST_CHECK(kept(0, 3, 1) != kept(0, 4, 1));
  DOCTEST_CHECK(kept(0, 3, 1) != kept(0, 3, 2));
  double nodes = 0;
  for (std::uint64_t c = 0; c < 200; ++c) nodes += static_cast<double>(kept(c, 0, 1).size());
  DOCTEST_CHECK(std::fabs(nodes / (200 * 64) - start_of_keep(settings, net)) < 0.02);
}

DOCTEST_TEST_CASE("clients that drop for each mini-batch do so by thresholds of their own, too") {
  // One step of two clients from the same values: what only one of them moves, the other dropped.
  trainer::options settings = all_of_capacity_1();
  settings.cohort.clients = 2;
  settings.cohort.participation = 1;
  const auto moved_by_one = [&] {
    small_run run("unidrop", settings);
    run.plan = {1, 64, 0.05, 0, 0};
    const auto before = run.rounds(0);
    run.rounds(1);
    std::vector<at::Tensor> moved;
    for (const trainer::local_training& t : run.trainings) {
      moved.push_back((t.network->tensors()[0] - before[0]).abs().sum({1, 2, 3}).gt(0));
    }
    return moved[0].ne(moved[1]).sum().item<std::int64_t>();
  };
  DOCTEST_CHECK(moved_by_one() == 0);
  settings.synchronised = false;
  DOCTEST_CHECK(moved_by_one() > 0);
}

DOCTEST_TEST_CASE("without dropout scaling a client's loss is that of the network it was sent") {
  trainer::options settings = all_of_capacity_1();
  settings.drop_by = trainer::thresholds::round;
  settings.absent = trainer::absent_classes::trained;
  settings.norm = trainer::norm_kind::none;  // batch norm hides the factors
  const auto apart = [&] {
    small_run run("unidrop", settings);
    const auto cohort = subfed::cohort_model(settings.cohort).members(0);
    auto trainings = run.central->cut(cohort, run.clients, 0);
    trainer::local_training& own = trainings[0];
    const trainer::batch all{
        run.data->inputs(own.who->samples), run.data->targets(own.who->samples), {}};
    const double plain =
        trainer::masked_loss(own.network->forward(all.inputs, {}), all, settings.absent)
            .item<double>();
    trainer::train(own, *run.data, {1, 64, 0.05, 0, 0});
    return std::fabs(own.loss - plain);
  };
  DOCTEST_CHECK(apart() > 1e-3);
  settings.dropout_scaling = false;
  DOCTEST_CHECK(apart() < 1e-5);
}

DOCTEST_TEST_CASE("first weights have the variance 2 p / N, or 2 / N") {
  trainer::options settings = all_of_capacity_1();
  const trainer::architecture net = trainer::describe(trainer::full_size());
  const double p = start_of_keep(settings, net);
  DOCTEST_CHECK(p < 0.8);
  const auto fixed = after("unidrop", settings, 0);
  settings.fixed_start = false;
  const auto he = after("unidrop", settings, 0), without_dropout = after("fedavg", settings, 0);
  DOCTEST_CHECK(distance(he, without_dropout) == 0);
  DOCTEST_CHECK(at::allclose(he[0] * std::sqrt(p), fixed[0], 1e-5, 1e-6));
}

DOCTEST_TEST_CASE("running statistics are those of the clients, averaged over the holders") {
  trainer::options settings = all_of_capacity_1();
  settings.statistics = trainer::norm_statistics::running;
  settings.cohort.clients = 2;
  settings.cohort.participation = 1;
  settings.cohort.mix.classes = {{0.5, 1}};
  small_run run("heterofl", settings);
  const auto untouched = run.central->evaluated_moments();
  DOCTEST_REQUIRE(untouched.size() == 5);
  const auto cohort = subfed::cohort_model(settings.cohort).members(0);
  auto trainings = run.central->cut(cohort, run.clients, 0);
  std::vector<trainer::network_moments> seen(2);
  for (std::size_t c = 0; c < 2; ++c) {  // of the one batch
    trainings[c].network->forward(run.data->inputs(trainings[c].who->samples),
                                  {trainer::norm_mode::measure, &seen[c], 2});
    trainer::train(trainings[c], *run.data, {1, 64, 0.05, 0, 0});
  }
  run.central->average(trainings);
  const auto now = run.central->evaluated_moments();
  const auto part = run.central->network_of(0, 1, 0.5);
  DOCTEST_REQUIRE(part);
  for (std::size_t n = 0; n < now.size(); ++n) {
    const std::int64_t all = now[n].mean.size(0), held = seen[0][n].mean.size(0);
    DOCTEST_CHECK(2 * held == all);
    const at::Tensor mean = (seen[0][n].mean + seen[1][n].mean) / 2;
    const at::Tensor variance = (seen[0][n].variance + seen[1][n].variance) / 2;
    DOCTEST_CHECK(at::allclose(now[n].mean.narrow(0, 0, held), 0.1 * mean, 1e-4, 1e-5));
    DOCTEST_CHECK(at::allclose(now[n].variance.narrow(0, 0, held), 0.9 + 0.1 * variance, 1e-4));
    DOCTEST_CHECK(at::equal(now[n].mean.narrow(0, held, held), at::zeros({held})));
    DOCTEST_CHECK(at::equal(now[n].variance.narrow(0, held, held), at::ones({held})));
    DOCTEST_CHECK(at::equal(part->moments[n].mean, now[n].mean.narrow(0, 0, held)));
    DOCTEST_CHECK(at::equal(part->moments[n].variance, now[n].variance.narrow(0, 0, held)));
  }
}

DOCTEST_TEST_CASE("running statistics change what is evaluated, not what is trained") {
  trainer::options settings = all_of_capacity_1();
  settings.cohort.mix.classes = {{1.0, 1}, {0.5, 1}};
  const auto measured = after("heterofl", settings, 3);
  DOCTEST_CHECK(small_run("heterofl", settings).central->evaluated_moments().empty());
  settings.statistics = trainer::norm_statistics::running;
  DOCTEST_CHECK(distance(after("heterofl", settings, 3), measured) == 0);
}

DOCTEST_TEST_CASE("weights and the server's optimiser do what their names say") {
  trainer::options settings = all_of_capacity_1();
  const auto by_examples = after("fedavg", settings, 2);
  settings.weights = trainer::weight_rule::by_method;
  DOCTEST_CHECK(distance(after("fedavg", settings, 2), by_examples) == 0);
  settings.weights = trainer::weight_rule::none;
  const auto equal = after("fedavg", settings, 2);
  DOCTEST_CHECK(distance(equal, by_examples) > 0);
  settings.weights = trainer::weight_rule::kept_size;  // all hold the same
  DOCTEST_CHECK(distance(after("fedavg", settings, 2), equal) < 1e-6);
  settings.weights_by_element = true;
  DOCTEST_CHECK(distance(after("fedavg", settings, 2), equal) < 1e-6);
  settings.weights = trainer::weight_rule::updates;
  const auto by_element = after("fedavg", settings, 3);
  settings.weights_by_element =
      false;  // everybody holds everything, but label rows count by element
  DOCTEST_CHECK(distance(after("fedavg", settings, 3), by_element) < 1e-6);

  settings = all_of_capacity_1();
  settings.server = trainer::server_rule::sgd;
  settings.server_lr = 1;
  settings.server_momentum = 0;
  DOCTEST_CHECK(distance(after("fedavg", settings, 2), by_examples) < 1e-6);
  settings.server = trainer::server_rule::yogi;
  DOCTEST_CHECK(distance(after("fedavg", settings, 2), by_examples) > 1e-3);
}

DOCTEST_TEST_CASE("as many clients lie as are asked for, and by the seed") {
  trainer::options settings = all_of_capacity_1();
  settings.cohort.clients = 40;
  settings.liars = 0.25;
  const auto liars = [&] {
    std::vector<std::uint64_t> out;
    for (std::uint64_t c = 0; c < 40; ++c) {
      if (trainer::is_liar(c, settings)) out.push_back(c);
    }
    return out;
  };
  const auto first = liars();
  DOCTEST_CHECK(first.size() == 10);
  settings.cohort.seed = 2;
  DOCTEST_CHECK(liars() != first);
  settings.liars = 0;
  DOCTEST_CHECK(liars().empty());
}

DOCTEST_TEST_CASE("a lie is the difference to what was sent, times the factor or minus it") {
  trainer::options settings = all_of_capacity_1();
  settings.cohort.mix.classes = {{0.5, 1}};
  const auto start = after("heterofl", settings, 0);
  const auto honest = after("heterofl", settings, 1);
  settings.liars = 0.999999;  // of 6 clients 5
  settings.lie_factor = 1;
  settings.told = trainer::lie::scaled;
  DOCTEST_CHECK(distance(after("heterofl", settings, 1), honest) < 1e-5);
  settings.lie_factor = 0;
  settings.cohort.clients = 1;
  settings.cohort.participation = 1;
  settings.liars = 0.9999999999;  // of 1 client
  DOCTEST_CHECK(distance(after("heterofl", settings, 1), start) < 1e-6);
  settings.lie_factor = 1;
  const auto alone = after("heterofl", settings, 1);
  settings.told = trainer::lie::flipped;
  const auto flipped = after("heterofl", settings, 1);
  for (std::size_t t = 0; t < start.size(); ++t) {
    DOCTEST_CHECK(at::allclose(flipped[t] - start[t], start[t] - alone[t], 1e-4, 1e-5));
  }
  DOCTEST_CHECK(distance(flipped, start) > 1e-4);
}

DOCTEST_TEST_CASE("a clipped client moves the model by the bound, and no further") {
  trainer::options settings = all_of_capacity_1();
  settings.cohort.clients = 1;
  settings.cohort.participation = 1;
  settings.absent = trainer::absent_classes::trained;  // all rows are averaged
  const auto start = after("heterofl", settings, 0);
  settings.against = trainer::defense::clip;
  settings.clip_bound = 0.01;
  small_run run("heterofl", settings);
  const auto moved = run.rounds(1);
  double squares = 0;
  for (std::size_t t = 0; t < start.size(); ++t) {
    if (!run.central->described().net.tensors()[t].is_parameter()) continue;
    squares += (moved[t] - start[t]).to(at::kDouble).square().sum().item<double>();
  }
  DOCTEST_CHECK(std::fabs(std::sqrt(squares) - 0.01) < 1e-5);
}

DOCTEST_TEST_CASE("the median of one liar among three is near the honest, the mean is not") {
  trainer::options settings = all_of_capacity_1();
  settings.cohort.clients = 3;
  settings.cohort.participation = 1;
  settings.absent = trainer::absent_classes::trained;
  const auto honest = after("heterofl", settings, 1);
  settings.liars = 0.34;
  settings.lie_factor = 100;
  const double mean = distance(after("heterofl", settings, 1), honest);
  settings.clip_bound = 1e9;
  settings.against = trainer::defense::median;
  const double median = distance(after("heterofl", settings, 1), honest);
  settings.against = trainer::defense::trimmed_mean;
  settings.trim = 0.34;  // one of three at each end: the median
  DOCTEST_CHECK(distance(after("heterofl", settings, 1), honest) == median);
  settings.trim = 0;
  DOCTEST_CHECK(distance(after("heterofl", settings, 1), honest) > 0.5 * mean);
  DOCTEST_CHECK(median < 0.1 * mean);
  DOCTEST_CHECK(median > 0);
}

DOCTEST_TEST_CASE("the scaler is 1 / capacity, unless it is off or a part is a whole model") {
  trainer::options settings = all_of_capacity_1();
  const trainer::architecture net = trainer::describe(trainer::full_size());
  const auto scale = [&](const char* name) {
    return trainer::find_method(name).make(settings, net)->scale(0.25);
  };
  DOCTEST_CHECK(scale("heterofl") == 4);
  DOCTEST_CHECK(scale("ensemble") == 1);
  settings.scaler = false;
  DOCTEST_CHECK(scale("heterofl") == 1);
}
