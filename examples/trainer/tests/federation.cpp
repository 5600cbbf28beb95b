// SPDX-License-Identifier: MIT
#include "federation.hpp"

#include <subfed/philox.hpp>
#include <vector>

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

namespace {

/// Images that are easy to tell apart: noise, and a bright row whose place says the label.
trainer::dataset easy_images(std::int64_t count) {
  trainer::dataset out{count, 28, 28, {}, {}};
  subfed::random_stream noise(9, 0, 0, "test images");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(i % 10);
    out.labels.push_back(label);
    for (int p = 0; p < 28 * 28; ++p) {
      const bool bright = p / 28 / 2 == label + 1;
      out.pixels.push_back(static_cast<std::uint8_t>(noise.below(60) + (bright ? 180 : 0)));
    }
  }
  return out;
}

trainer::options small_settings() {
  trainer::options out;
  out.rounds = 6;
  out.clients = 20;
  out.participation = 0.5;
  out.labels = 2;
  out.samples = 20;
  out.batch = 10;
  out.eval_every = 3;
  for (const char* text : {"1", "1/2", "1/16"}) {
    out.capacities.push_back({text, trainer::parse_capacity(text)});
  }
  return out;
}

trainer::federation small_federation(const trainer::options& settings) {
  const trainer::dataset train = easy_images(400), test = easy_images(200);
  trainer::partition_plan plan;
  plan.seed = settings.seed;
  plan.clients = settings.clients;
  plan.labels_each = settings.labels;
  plan.samples_each = settings.samples;
  plan.capacities = settings.capacity_values();
  return {at::kCPU, trainer::device_data(train, at::kCPU), trainer::device_data(test, at::kCPU),
          trainer::partition(train.labels, plan)};
}

trainer::method_result run(const char* name, const trainer::options& settings,
                           std::size_t workers) {
  trainer::settle_process();
  const trainer::federation all = small_federation(settings);
  trainer::pool pool(workers, trainer::settle_thread);
  return trainer::run(trainer::find_method(name), settings, all, pool,
                      [](const trainer::round_report&) {});
}

}  // namespace

DOCTEST_TEST_CASE("results do not depend on the number of threads, bit for bit") {
  const trainer::options settings = small_settings();
  for (const trainer::method& m : trainer::all_methods()) {
    const auto a = run(m.name.c_str(), settings, 1), b = run(m.name.c_str(), settings, 3);
    DOCTEST_CHECK(a.history.size() == 2);
    DOCTEST_CHECK(b.history.size() == 2);
    for (std::size_t i = 0; i < a.history.size(); ++i) {
      DOCTEST_INFO(m.name << ", entry " << i);
      DOCTEST_CHECK(a.history[i].on_test.loss == b.history[i].on_test.loss);
      DOCTEST_CHECK(a.history[i].on_test.accuracy == b.history[i].on_test.accuracy);
      DOCTEST_CHECK(a.history[i].on_test.local_accuracy == b.history[i].on_test.local_accuracy);
      DOCTEST_CHECK(a.history[i].train_loss == b.history[i].train_loss);
    }
  }
}

DOCTEST_TEST_CASE("easy images are learnt") {
  trainer::options settings = small_settings();
  settings.labels = 10;
  settings.rounds = 20;
  settings.eval_every = 20;
  DOCTEST_CHECK(run("fedavg-largest", settings, 2).last().accuracy > 0.9);
}

DOCTEST_TEST_CASE("coverage is what theory says") {
  // All clients in every round, so that each round's cohort is the same; 64 rounds are once round
  // the widest group and twice round the others.
  trainer::options settings = small_settings();
  settings.rounds = 64;
  settings.eval_every = 64;
  settings.clients = 3;
  settings.participation = 1;
  settings.labels = 10;
  settings.samples = 10;

  const auto rolling = run("fedrolex", settings, 2);
  // Of 64 nodes, clients hold 64, 32 and 4: each node 64 + 32 + 4 times in 64 rounds.
  DOCTEST_CHECK(rolling.by_all.nodes == std::vector<std::int64_t>(64, 100));
  DOCTEST_CHECK(rolling.by_partial.nodes == std::vector<std::int64_t>(64, 36));
  DOCTEST_CHECK(rolling.by_partial.summary.unseen == 0);

  const auto fixed = run("heterofl", settings, 2);
  DOCTEST_CHECK(fixed.by_partial.summary.unseen_share == 0.5);
  DOCTEST_CHECK(fixed.by_partial.nodes[0] == 128);
  DOCTEST_CHECK(fixed.by_partial.nodes[4] == 64);
  DOCTEST_CHECK(fixed.by_partial.nodes[32] == 0);

  const auto bound = run("fedavg-smallest", settings, 2);
  DOCTEST_CHECK(!bound.by_partial.any_client);
  DOCTEST_CHECK(bound.by_all.summary.min == 3 * 64);
  DOCTEST_CHECK(bound.server_parameters < rolling.server_parameters / 100);
}

DOCTEST_TEST_CASE("the learning rate falls in steps") {
  trainer::options settings = small_settings();
  settings.rounds = 100;
  settings.lr = 1;
  settings.decay_at = {0.5, 0.75};
  DOCTEST_CHECK(trainer::learning_rate(settings, 49) == 1);
  DOCTEST_CHECK(trainer::learning_rate(settings, 50) == doctest::Approx(0.1));
  DOCTEST_CHECK(trainer::learning_rate(settings, 75) == doctest::Approx(0.01));
}
