// SPDX-License-Identifier: MIT
#include "federation.hpp"

#include "checkpoint.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <subfed/philox.hpp>
#include <utility>
#include <vector>

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

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
  out.cohort.seed = 1;
  out.cohort.clients = 20;
  out.cohort.participation = 0.5;
  out.cohort.mix.classes = {{1.0, 1}, {0.5, 1}, {subfed::capacity::ratio(1, 16), 1}};
  out.labels = 2;
  out.samples = 20;
  out.batch = 10;
  out.eval_every = 3;
  out.checkpoint_every = 0;
  return out;
}

trainer::federation small_federation(const trainer::options& settings) {
  static const trainer::dataset train = easy_images(400), test = easy_images(200);
  return {at::kCPU, trainer::device_data(train, at::kCPU), trainer::device_data(test, at::kCPU),
          trainer::partition(train.labels, {.seed = settings.seed(),
                                            .clients = settings.cohort.clients,
                                            .labels_each = settings.labels,
                                            .dirichlet = settings.dirichlet,
                                            .samples_each = settings.samples})};
}

trainer::method_result run(const std::string& name, const trainer::options& settings,
                           std::size_t workers = 2) {
  trainer::make_process_repeatable();
  const trainer::federation all = small_federation(settings);
  trainer::pool pool(workers, trainer::make_thread_repeatable);
  return trainer::run(trainer::find_method(name), settings, all, pool,
                      [](const trainer::round_report&) {});
}

void check_same(const trainer::method_result& a, const trainer::method_result& b) {
  DOCTEST_CHECK(a.history.size() == b.history.size());
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    DOCTEST_INFO(a.method << ", entry " << i);
    DOCTEST_CHECK(a.history[i].round == b.history[i].round);
    DOCTEST_CHECK(a.history[i].on_test.loss == b.history[i].on_test.loss);
    DOCTEST_CHECK(a.history[i].on_test.accuracy == b.history[i].on_test.accuracy);
    DOCTEST_CHECK(a.history[i].on_test.local_accuracy == b.history[i].on_test.local_accuracy);
    DOCTEST_CHECK(a.history[i].train_loss == b.history[i].train_loss);
  }
  DOCTEST_CHECK(a.by_all.nodes == b.by_all.nodes);
  DOCTEST_CHECK(a.by_partial.nodes == b.by_partial.nodes);
  DOCTEST_CHECK(a.each.parameters == b.each.parameters);
  DOCTEST_CHECK(a.each.flops == b.each.flops);
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    DOCTEST_CHECK(a.history[i].parameters == b.history[i].parameters);
    DOCTEST_CHECK(a.history[i].flops == b.history[i].flops);
    DOCTEST_CHECK(a.history[i].keep == b.history[i].keep);
  }
  DOCTEST_REQUIRE(a.clients.size() == b.clients.size());
  for (std::size_t c = 0; c < a.clients.size(); ++c) {
    DOCTEST_CHECK(a.clients[c].capacity == b.clients[c].capacity);
    DOCTEST_CHECK(a.clients[c].own_accuracy == b.clients[c].own_accuracy);
  }
  DOCTEST_REQUIRE(a.capacities.size() == b.capacities.size());
  for (std::size_t c = 0; c < a.capacities.size(); ++c) {
    DOCTEST_CHECK(a.capacities[c].on_test.loss == b.capacities[c].on_test.loss);
  }
}

/// Settings under which every part of the program has something to do.
std::vector<std::pair<std::string, trainer::options>> everything() {
  std::vector<std::pair<std::string, trainer::options>> out;
  for (const trainer::named_method& m : trainer::all_methods()) {
    out.emplace_back(m.name.name, small_settings());
  }
  trainer::options distilled = small_settings();
  distilled.distillation = true;
  distilled.absent = trainer::absent_classes::minus_infinity;
  out.emplace_back("fjord", distilled);
  trainer::options by_round = small_settings();
  by_round.drop_by = trainer::thresholds::round;
  by_round.cohort.cohort_rounds = 2;
  by_round.norm = trainer::norm_kind::none;
  by_round.absent = trainer::absent_classes::trained;
  out.emplace_back("feddrop", by_round);
  trainer::options bare = small_settings();
  bare.synchronised = bare.dropout_scaling = bare.fixed_start = false;
  out.emplace_back("feddrop", bare);
  trainer::options tracked = small_settings();
  tracked.statistics = trainer::norm_statistics::running;
  out.emplace_back("heterofl", tracked);
  trainer::options by_element = small_settings();
  by_element.weights = trainer::weight_rule::both;
  by_element.weights_by_element = true;
  by_element.server_scale = 2;
  by_element.overlap = 0.5;
  by_element.dirichlet = 0.5;
  by_element.schedule = trainer::lr_schedule::cosine;
  out.emplace_back("fedrolex", by_element);
  for (const auto rule : {trainer::server_rule::sgd, trainer::server_rule::adagrad,
                          trainer::server_rule::adam, trainer::server_rule::yogi}) {
    trainer::options with_step = small_settings();
    with_step.server = rule;
    with_step.seeds = subfed::seed_policy::pool(3);
    with_step.weights = trainer::weight_rule::updates;
    with_step.divide_by = subfed::divisor::cohort;
    with_step.server_step = 1.5;
    with_step.cohort.capacities = subfed::capacity_assignment::redrawn;
    with_step.untied_skips = rule == trainer::server_rule::yogi;
    out.emplace_back("federated-dropout", with_step);
  }
  for (const char* name : {"fedrolex", "feddrop", "fjord"}) {
    trainer::options lenet = small_settings();
    lenet.model = trainer::model_kind::lenet;
    lenet.samples = 10;
    lenet.scaler = false;
    out.emplace_back(name, lenet);
    trainer::options cnn = lenet;
    cnn.model = trainer::model_kind::cnn;
    cnn.width = 2;
    out.emplace_back(name, cnn);
  }
  return out;
}

}  // namespace

DOCTEST_TEST_CASE("results do not depend on the number of threads, bit for bit") {
  for (auto [name, settings] : everything()) {
    settings.rounds = 2;
    settings.eval_every = 1;
    settings.cohort.clients = 10;
    const auto a = run(name, settings, 1), b = run(name, settings, 3);
    DOCTEST_CHECK(a.history.size() == 2);
    DOCTEST_CHECK(std::isfinite(a.last().loss));
    DOCTEST_CHECK(std::isfinite(a.history[1].train_loss));
    check_same(a, b);
  }
}

DOCTEST_TEST_CASE(
    "a run that continues from a checkpoint equals an uninterrupted one, bit for bit") {
  const temporary_folder folder;
  for (auto [name, settings] : everything()) {
    settings.identity = "{\"of\":\"" + name + "\"}";
    settings.rounds = 5;
    settings.eval_every = 2;
    settings.cohort.clients = 10;
    const auto unbroken = run(name, settings);

    // An evaluation and a checkpoint that do not fall together: the loss in between is kept.
    settings.out = folder.path().string();
    settings.checkpoint_every = 3;
    trainer::options interrupted = settings;
    struct stop {};
    try {
      trainer::make_process_repeatable();
      trainer::pool pool(2, trainer::make_thread_repeatable);
      trainer::run(trainer::find_method(name), interrupted, small_federation(interrupted), pool,
                   [](const trainer::round_report& r) {
                     if (r.round == 4) throw stop{};
                   });
      DOCTEST_FAIL("the run was not interrupted");
    } catch (const stop&) {
    }
    settings.resume = true;
    std::int64_t first_seen = 0, reports = 0;
    trainer::pool pool(2, trainer::make_thread_repeatable);
    const auto resumed =
        trainer::run(trainer::find_method(name), settings, small_federation(settings), pool,
                     [&](const trainer::round_report& r) {
                       if (reports++ == 0) first_seen = r.round;
                     });
    DOCTEST_CHECK(first_seen == 3);
    DOCTEST_CHECK(reports == 3);  // what was read, and rounds 4 and 5
    check_same(unbroken, resumed);

    // A finished run is read, not trained again.
    reports = 0;
    const auto finished =
        trainer::run(trainer::find_method(name), settings, small_federation(settings), pool,
                     [&](const trainer::round_report&) { ++reports; });
    DOCTEST_CHECK(reports == 1);
    check_same(unbroken, finished);
  }
}

DOCTEST_TEST_CASE("a checkpoint of another run is refused, and names what differs") {
  const temporary_folder folder;
  trainer::options settings = small_settings();
  settings.rounds = 1;
  settings.checkpoint_every = 1;
  settings.out = folder.path().string();
  settings.identity = R"({"lr":0.05,"seed":1})";
  run("heterofl", settings);
  settings.resume = true;
  settings.identity = R"({"lr":0.05,"seed":2})";
  DOCTEST_CHECK(
      message_of([&] { run("heterofl", settings); }) ==
      (folder.path() / "heterofl.safetensors").string() +
          " was made with another --seed (1) than this run has (2); --overwrite instead of "
          "--resume starts over.");
  std::ofstream(folder.path() / "fedavg.safetensors") << "not a checkpoint";
  DOCTEST_CHECK_THROWS(run("fedavg", settings));
}

DOCTEST_TEST_CASE("a run that diverged can be gone on with too, and one of other images not") {
  const temporary_folder folder;
  trainer::options settings = small_settings();
  settings.rounds = 4;
  settings.lr = 1e30;
  settings.checkpoint_every = 4;
  settings.out = folder.path().string();
  settings.identity = "{}";
  DOCTEST_CHECK(std::isnan(run("heterofl", settings).last().loss));
  settings.resume = true;
  DOCTEST_CHECK(std::isnan(run("heterofl", settings).last().loss));

  trainer::federation other = small_federation(settings);
  other.data_checksum = "other";
  trainer::pool pool(1, trainer::make_thread_repeatable);
  const auto& heterofl = trainer::find_method("heterofl");
  DOCTEST_CHECK(message_of([&] {
                  trainer::check(heterofl, settings, other, pool);
                }).ends_with("was made with other data than this run has."));
}

DOCTEST_TEST_CASE("what a method cannot do is refused before anything is trained") {
  const trainer::federation all = small_federation(small_settings());
  trainer::pool pool(1, trainer::make_thread_repeatable);
  const auto refused = [&](const char* name, const trainer::options& settings) {
    DOCTEST_CHECK_THROWS(trainer::check(trainer::find_method(name), settings, all, pool));
  };
  trainer::options settings = small_settings();
  settings.members = 5;  // does not divide 32
  refused("ensemble", settings);
  settings = small_settings();
  settings.widths = {0.5, 1.0};  // a client of 1/16 can hold neither
  refused("fjord", settings);
  settings = small_settings();
  settings.weights = trainer::weight_rule::updates;
  settings.weights_by_element = true;
  refused("feddrop", settings);
  settings.divide_by = subfed::divisor::holders;
  trainer::check(trainer::find_method("feddrop"), settings, all, pool);
}

DOCTEST_TEST_CASE("a checkpoint whose tensors do not fit is refused by name") {
  const temporary_folder folder;
  trainer::options settings = small_settings();
  settings.rounds = 1;
  settings.checkpoint_every = 1;
  settings.out = folder.path().string();
  settings.identity = "{}";
  settings.server = trainer::server_rule::adam;
  settings.weights = trainer::weight_rule::both;
  settings.weights_by_element = true;
  settings.divide_by = subfed::divisor::holders;
  for (const std::string method : {"fedrolex", "scaffold", "feddrop"}) {
    settings.resume = false;
    run(method, settings);
    settings.resume = true;
    const auto path = folder.path() / (method + ".safetensors");
    const trainer::checkpoint whole = trainer::load(path);
    std::set<std::string> kinds;  // one tensor of each kind: "optimizer", "method", ..
    for (const auto& [name, tensor] : whole.tensors) {
      if (!kinds.insert(name.substr(0, name.find_first_of(".0123456789"))).second) continue;
      DOCTEST_INFO(method << ", " << name);
      trainer::checkpoint altered = whole;
      altered.tensors[name] = at::zeros({3}, tensor.options());
      trainer::save(altered, path);
      const std::string message = message_of([&] { run(method, settings); });
      DOCTEST_CHECK(message.starts_with(path.string() + " is damaged: there is no tensor "));
      DOCTEST_CHECK(message.find(name.substr(name.rfind('.') + 1)) != std::string::npos);
    }
    DOCTEST_CHECK(kinds.size() >= 5);
  }
}

DOCTEST_TEST_CASE(
    "a checkpoint with any value that no run writes is refused, and names the way out") {
  const temporary_folder folder;
  trainer::options settings = small_settings();
  settings.rounds = 2;
  settings.checkpoint_every = 2;
  settings.out = folder.path().string();
  settings.identity = R"({"rounds":2})";
  settings.server = trainer::server_rule::adam;
  settings.weights = trainer::weight_rule::both;
  settings.weights_by_element = true;
  run("scaffold", settings);
  settings.resume = true;
  const auto path = folder.path() / "scaffold.safetensors";
  const trainer::checkpoint whole = trainer::load(path);
  const auto refused = [&](const trainer::checkpoint& altered, const std::string& why) {
    trainer::save(altered, path);
    const std::string message = message_of([&] { run("scaffold", settings); });
    DOCTEST_INFO(message);
    DOCTEST_CHECK(message.starts_with(path.string() + " is damaged: "));
    DOCTEST_CHECK(message.ends_with("; without the file the method starts over."));
    DOCTEST_CHECK(message.find(why) != std::string::npos);
  };
  std::set<std::string> kinds;
  for (const auto& [name, tensor] : whole.tensors) {
    if (!kinds.insert(name.substr(0, name.find_first_of(".0123456789"))).second) continue;
    DOCTEST_INFO(name);
    trainer::checkpoint altered = whole;
    altered.tensors.erase(name);
    refused(altered, "");
    altered = whole;
    altered.tensors[name] =
        tensor.to(tensor.scalar_type() == at::kFloat ? at::kDouble : at::kFloat);
    refused(altered, name.substr(name.rfind('.') + 1));
    altered = whole;
    altered.tensors[name + "0"] = tensor;
    refused(altered, "which this run would not write");
  }
  const auto with = [&](const std::string& name, auto change) {
    trainer::checkpoint altered = whole;
    at::Tensor& tensor = altered.tensors.at(name);
    tensor = tensor.clone();
    change(tensor);
    return altered;
  };
  std::string first;  // of the clients that were asked
  for (const auto& [name, tensor] : whole.tensors) {
    if (first.empty() && name.starts_with("server.rounds.")) first = name.substr(14);
  }
  for (const double rounds : {-5.0, 0.0, 0.5, 3.0, 1e300, std::nan("")}) {
    const std::string name = "server.rounds." + first;
    refused(with(name, [&](at::Tensor& t) { t.fill_(rounds); }), name);
  }
  for (const int count : {-1, 3}) {
    const std::string name = "server.updates." + first + ".0";
    refused(with(name, [&](at::Tensor& t) { t[0] = count; }), name);
  }
  refused(with("optimizer.second.0", [](at::Tensor& t) { t[0] = -1e-9; }), "negative");
  trainer::checkpoint altered = whole;
  for (const auto& [name, tensor] : whole.tensors) {  // one client's control
    if (name.starts_with("method.client." + first + ".")) altered.tensors.erase(name);
  }
  refused(altered, "of client " + first + " is missing");
  for (const char* text : {"identity", "progress"}) {
    for (const char* value : {"", "5", "[]", "{", "{\"rounds\":1,\"rounds\":2}"}) {
      altered = whole;
      altered.texts[text] = value;
      refused(altered, "");
    }
  }
  altered = whole;
  altered.texts["more"] = "x";
  refused(altered, "a text \"more\"");
  altered = whole;
  altered.texts["identity"] = R"({"rounds":1})";
  refused(altered, "2 rounds are finished, but its --rounds is 1");
  for (const char* text : {"identity", "progress", "data", "config"}) {
    altered = whole;
    altered.texts.erase(text);
    trainer::save(altered, path);
    DOCTEST_CHECK(message_of([&] { run("scaffold", settings); }) ==
                  path.string() + " is not a checkpoint of this program.");
  }

  // Any bit.
  trainer::save(whole, path);
  run("scaffold", settings);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (const std::size_t from_end : {1u, 1000u, 100000u, 300000u}) {
    const std::size_t at = bytes.size() - from_end;
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    std::ofstream(path, std::ios::binary) << flipped;
    DOCTEST_CHECK(message_of([&] { run("scaffold", settings); }) ==
                  path.string() +
                      " is damaged: its checksum is wrong; without the file the "
                      "method starts over.");
  }
}

DOCTEST_TEST_CASE("a run may get longer or shorter where its past stays the same") {
  const temporary_folder folder;
  const auto identity = [](const trainer::options& o) {
    const char* schedule = o.schedule == trainer::lr_schedule::constant ? "constant"
                           : o.schedule == trainer::lr_schedule::cosine ? "cosine"
                                                                        : "step";
    return "{\"rounds\":" + std::to_string(o.rounds) + ",\"lr\":" + std::to_string(o.lr) +
           ",\"lr-schedule\":\"" + schedule + "\",\"decay-at\":\"" +
           std::to_string(o.decay_at.at(0)) + "\",\"seed\":1}";
  };
  trainer::options settings = small_settings();
  settings.schedule = trainer::lr_schedule::constant;
  settings.rounds = 6;
  settings.eval_every = 4;
  const auto straight = run("fedrolex", settings);
  settings.out = folder.path().string();
  settings.checkpoint_every = 100;
  for (const std::int64_t first : {3, 4, 5}) {  // with an evaluation for the end, and in any case
    trainer::options shorter = settings;
    shorter.rounds = first;
    shorter.identity = identity(shorter);
    run("fedrolex", shorter);
    trainer::options longer = settings;
    longer.resume = true;
    longer.identity = identity(longer);
    check_same(straight, run("fedrolex", longer));
    std::filesystem::remove(folder.path() / "fedrolex.safetensors");
  }

  // Cut short: the evaluation of the new end is made.
  trainer::options stopped = settings;
  stopped.checkpoint_every = 3;
  stopped.identity = identity(stopped);
  struct stop {};
  trainer::pool pool(2, trainer::make_thread_repeatable);
  const auto& fedrolex = trainer::find_method("fedrolex");
  try {
    trainer::run(fedrolex, stopped, small_federation(stopped), pool,
                 [](const trainer::round_report& r) {
                   if (r.round == 3) throw stop{};
                 });
  } catch (const stop&) {
  }
  trainer::options to_three = settings;
  to_three.rounds = 3;
  const trainer::options as_given = to_three;
  to_three.resume = true;
  to_three.identity = identity(to_three);
  check_same(run("fedrolex",
                 [&] {
                   trainer::options o = as_given;
                   o.checkpoint_every = 0;
                   return o;
                 }()),
             run("fedrolex", to_three));

  // Another past, or more of it than there is to be.
  const auto message = [&](trainer::options o) {
    o.resume = true;
    o.identity = identity(o);
    return message_of([&] { run("fedrolex", o); });
  };
  trainer::options other = to_three;
  other.rounds = 2;
  DOCTEST_CHECK(message(other).ends_with("has 3 finished rounds, but --rounds is 2."));
  other = to_three;
  other.lr = 0.1;
  DOCTEST_CHECK(message(other).find("another --lr (0.05) than this run has (0.1), by --lr-schedule "
                                    "constant: round 1 of 3, which is finished, had the learning "
                                    "rate 0.05 and would have 0.1; --overwrite") !=
                std::string::npos);
  other = to_three;
  other.rounds = 6;
  other.schedule = trainer::lr_schedule::step;  // from the fourth round on
  DOCTEST_CHECK(message(other) == "(no failure)");
  other.rounds = 60;
  DOCTEST_CHECK(message(other).find("has 6 finished rounds") == std::string::npos);
  DOCTEST_CHECK(message(other).find("another --rounds (6) than this run has (60), by "
                                    "--lr-schedule step: round 4 of 6,") != std::string::npos);
  other.schedule = trainer::lr_schedule::cosine;
  other.rounds = 6;
  DOCTEST_CHECK(message(other).find("another --lr-schedule (\"step\") than this run has "
                                    "(\"cosine\")") != std::string::npos);
}

DOCTEST_TEST_CASE(
    "costs are what was computed: mini-batches' parts, widths, and the teacher's passes") {
  trainer::options settings = small_settings();
  settings.rounds = 2;
  const auto whole = run("fedavg", settings);
  settings.drop_by = trainer::thresholds::batch;
  settings.flops_ratio = 0.5;
  const auto by_batch = run("unidrop", settings);
  DOCTEST_CHECK(by_batch.each.parameters == whole.each.parameters);  // all of it is sent
  DOCTEST_CHECK(by_batch.each.flops == doctest::Approx(0.5 * whole.each.flops).epsilon(0.15));
  settings.drop_by = trainer::thresholds::round;
  const auto by_round = run("unidrop", settings);
  DOCTEST_CHECK(by_round.each.parameters < 0.8 * whole.each.parameters);

  // Everybody has capacity 1; widths 1/2 and 1, each drawn in half of the steps.
  settings.cohort.mix.classes = {{1.0, 1}};
  settings.widths = {0.5, 1.0};
  settings.rounds = 4;
  const auto narrow = trainer::describe(trainer::narrowed(trainer::full_size(), 0.5));
  const auto half = static_cast<double>(narrow.work.count(subfed::submodel::full(narrow.net)));
  const auto fjord = run("fjord", settings);
  const double share = (whole.each.flops - fjord.each.flops) / (whole.each.flops - half);
  DOCTEST_CHECK(share > 0.2);  // of the images in steps of width 1/2
  DOCTEST_CHECK(share < 0.8);
  settings.distillation = true;
  const auto distilled = run("fjord", settings);
  DOCTEST_CHECK(distilled.each.flops ==
                doctest::Approx(whole.each.flops + share * half).epsilon(1e-6));
}

DOCTEST_TEST_CASE("each entry has what was sent and computed until then") {
  trainer::options settings = small_settings();
  settings.local_epochs = 2;
  const auto whole = run("fedavg", settings);  // 10 of 20 clients with 20 images, 6 rounds
  const auto size = whole.server_parameters;
  DOCTEST_CHECK(whole.history[0].parameters == 3 * 10 * size);
  DOCTEST_CHECK(whole.history[1].parameters == 6 * 10 * size);
  const auto image = std::llround(whole.each.flops);
  DOCTEST_CHECK(whole.history[0].flops == 3 * 10 * 2 * 20 * image);
  DOCTEST_CHECK(whole.history[1].flops == 6 * 10 * 2 * 20 * image);
  DOCTEST_CHECK(whole.history[1].keep.empty());

  const auto nodes = 2 * (32 + 64) * settings.cohort.clients;
  const auto constant = run("unidrop", settings), found = run("feddrop", settings);
  const auto in_one_bin = [&](const std::vector<std::int64_t>& keep) {
    return std::count(keep.begin(), keep.end(), nodes) == 1;
  };
  for (const auto* r : {&constant, &found}) {
    for (const auto& e : r->history) {
      DOCTEST_REQUIRE(e.keep.size() == trainer::keep_bins);
      DOCTEST_CHECK(std::accumulate(e.keep.begin(), e.keep.end(), std::int64_t{0}) == nodes);
    }
  }
  DOCTEST_CHECK(in_one_bin(constant.last_entry().keep));
  DOCTEST_CHECK(constant.last_entry().keep[14] == nodes);  // about the root of 1/2
  DOCTEST_CHECK(!in_one_bin(found.last_entry().keep));
}

DOCTEST_TEST_CASE("in the end clients are judged one by one, and models by capacity") {
  trainer::options settings = small_settings();
  settings.labels = 10;
  settings.rounds = 20;
  settings.eval_every = 20;
  const auto fixed = run("heterofl", settings);
  DOCTEST_REQUIRE(fixed.clients.size() == 20);
  double sum = 0;
  for (std::size_t c = 0; c < 20; ++c) {
    DOCTEST_CHECK(fixed.clients[c].number == c);
    sum += fixed.clients[c].local_accuracy;
  }
  DOCTEST_CHECK(sum / 20 == doctest::Approx(fixed.last().local_accuracy));
  DOCTEST_REQUIRE(fixed.capacities.size() == 3);
  // The largest clients have the server's model. With all labels, local is global.
  DOCTEST_CHECK(fixed.capacities[0].parameters == fixed.server_parameters);
  DOCTEST_CHECK(fixed.capacities[0].on_test.loss == fixed.last().loss);
  std::int64_t clients = 0;
  for (const auto& k : fixed.capacities) {
    clients += k.clients;
    DOCTEST_CHECK(k.on_test.accuracy == doctest::Approx(k.on_test.local_accuracy));
    for (const auto& c : fixed.clients) {
      if (c.capacity == k.capacity) DOCTEST_CHECK(c.own_accuracy == k.on_test.accuracy);
    }
  }
  DOCTEST_CHECK(clients == 20);
  const auto narrow = trainer::describe(trainer::narrowed(trainer::full_size(), 0.5));
  DOCTEST_CHECK(fixed.capacities[1].parameters == narrow.net.size());
  DOCTEST_CHECK(fixed.capacities[1].on_test.accuracy > 0.5);
  DOCTEST_CHECK(fixed.capacities[1].on_test.loss != fixed.last().loss);

  // All clients have the same.
  const auto bound = run("fedavg-smallest", settings);
  DOCTEST_CHECK(bound.capacities.size() == 3);
  for (const auto& k : bound.capacities) {
    DOCTEST_CHECK(k.parameters == bound.server_parameters);
    DOCTEST_CHECK(k.on_test.loss == bound.last().loss);
  }
}

DOCTEST_TEST_CASE("the other networks learn too, whole and in parts") {
  trainer::options settings = small_settings();
  settings.labels = 10;
  settings.rounds = 8;
  settings.eval_every = 8;
  settings.model = trainer::model_kind::lenet;
  settings.scaler = false;  // without batch norm it needs smaller steps
  settings.cohort.mix.classes = {{1.0, 1}, {0.5, 1}};
  for (const char* name : {"fedavg", "heterofl"}) {
    DOCTEST_INFO(std::string(name));
    DOCTEST_CHECK(run(name, settings).last().accuracy > 0.5);
  }
  settings.model = trainer::model_kind::cnn;
  settings.width = 4;
  for (const char* name : {"fedavg", "ensemble", "heterofl"}) {
    DOCTEST_INFO(std::string(name));
    DOCTEST_CHECK(run(name, settings).last().accuracy > 0.5);
  }
  settings.model = trainer::model_kind::small;
  settings.width = 2;
  DOCTEST_CHECK(run("fedrolex", settings).last().accuracy > 0.5);
  settings.width = 1;
  settings.model = trainer::model_kind::pre_resnet18;
  settings.cohort.mix.classes = {{subfed::capacity::ratio(1, 16), 1}};
  settings.cohort.participation = 0.1;
  settings.rounds = 2;
  settings.eval_every = 2;
  const auto narrow = run("fedavg", settings);
  DOCTEST_CHECK(std::isfinite(narrow.last().loss));
  DOCTEST_CHECK(narrow.server_parameters == 44510 - 2 * 4 * 9);
}

DOCTEST_TEST_CASE("easy images are learnt") {
  trainer::options settings = small_settings();
  settings.labels = 10;
  settings.rounds = 20;
  settings.eval_every = 20;
  for (const char* name : {"fedavg", "fedprox", "scaffold"}) {
    DOCTEST_INFO(std::string(name));
    DOCTEST_CHECK(run(name, settings).last().accuracy > 0.9);
  }
  for (const char* name : {"unidrop", "feddrop", "fjord"}) {
    DOCTEST_INFO(std::string(name));
    DOCTEST_CHECK(run(name, settings).last().accuracy > 0.3);
  }
}

DOCTEST_TEST_CASE("coverage is what theory says") {
  // All clients in every round, so that each round's cohort is the same; 64 rounds are once round
  // the widest group and twice round the others.
  trainer::options settings = small_settings();
  settings.rounds = 64;
  settings.eval_every = 64;
  settings.cohort.clients = 3;
  settings.cohort.participation = 1;
  settings.labels = 10;
  settings.samples = 10;

  const auto rolling = run("fedrolex", settings);
  // Of 64 nodes, clients hold 64, 32 and 4: each node 64 + 32 + 4 times in 64 rounds.
  DOCTEST_CHECK(rolling.by_all.nodes == std::vector<std::int64_t>(64, 100));
  DOCTEST_CHECK(rolling.by_partial.nodes == std::vector<std::int64_t>(64, 36));
  DOCTEST_CHECK(rolling.by_partial.summary.unseen == 0);

  const auto fixed = run("heterofl", settings);
  DOCTEST_CHECK(fixed.by_partial.summary.unseen_share == 0.5);
  DOCTEST_CHECK(fixed.by_partial.nodes[0] == 128);
  DOCTEST_CHECK(fixed.by_partial.nodes[4] == 64);
  DOCTEST_CHECK(fixed.by_partial.nodes[32] == 0);

  const auto bound = run("fedavg-smallest", settings);
  DOCTEST_CHECK(!bound.by_partial.any_client);
  DOCTEST_CHECK(bound.by_all.summary.min == 3 * 64);
  DOCTEST_CHECK(bound.server_parameters < rolling.server_parameters / 100);
}

DOCTEST_TEST_CASE("the learning rate falls as the schedule says") {
  trainer::options settings = small_settings();
  settings.rounds = 100;
  settings.lr = 1;
  settings.decay_at = {0.5, 0.75};
  DOCTEST_CHECK(trainer::learning_rate(settings, 49) == 1);
  DOCTEST_CHECK(trainer::learning_rate(settings, 50) == doctest::Approx(0.1));
  DOCTEST_CHECK(trainer::learning_rate(settings, 75) == doctest::Approx(0.01));
  settings.schedule = trainer::lr_schedule::constant;
  DOCTEST_CHECK(trainer::learning_rate(settings, 99) == 1);
  settings.schedule = trainer::lr_schedule::cosine;
  DOCTEST_CHECK(trainer::learning_rate(settings, 0) == 1);
  DOCTEST_CHECK(trainer::learning_rate(settings, 25) == doctest::Approx(0.8535534));
  DOCTEST_CHECK(trainer::learning_rate(settings, 50) == doctest::Approx(0.5));
}
