// SPDX-License-Identifier: MIT
#include "federation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <subfed/cohort_model.hpp>
#include <subfed/coverage.hpp>
#include <subfed/coverage_text.hpp>

#include "evaluation.hpp"
#include "failure.hpp"
#include "server.hpp"

namespace trainer {
namespace {

using nlohmann::json;

class stopwatch {
 public:
  /// Adds the time since the last call, or since the start, to a sum.
  void lap(double& sum) {
    const auto now = std::chrono::steady_clock::now();
    sum += std::chrono::duration<double>(now - since_).count();
    since_ = now;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// What has been counted so far.
struct account {
  explicit account(const subfed::model& net) : by_all(net), by_partial(net) {}

  std::int64_t rounds = 0;
  std::vector<history_entry> history;
  double loss_since = 0;  // the last entry
  std::int64_t rounds_since = 0;
  std::int64_t turns = 0, turns_of_parts = 0, parameters = 0, flops = 0;
  subfed::coverage by_all, by_partial;
  seconds_spent seconds;

  void count(std::span<const turn> cohort, const architecture& described) {
    for (const turn& t : cohort) {
      ++turns;
      parameters += t.part.size();
      flops += described.work.count(t.part);
      by_all.record(t.part);
      if (t.part.size() == described.net.size()) continue;
      by_partial.record(t.part);
      ++turns_of_parts;
    }
    by_all.end_round();
    by_partial.end_round();
    ++rounds;
  }
};

/// JSON has no NaN and no infinity: those of a run that diverged are null, and NaN when read.
double number_of(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::string text_of(const account& a) {
  json history = json::array();
  for (const history_entry& e : a.history) {
    history.push_back(
        {e.round, e.on_test.accuracy, e.on_test.loss, e.on_test.local_accuracy, e.train_loss});
  }
  return json{{"rounds", a.rounds},
              {"history", history},
              {"loss since", a.loss_since},
              {"rounds since", a.rounds_since},
              {"turns", {a.turns, a.turns_of_parts, a.parameters, a.flops}},
              {"coverage", subfed::to_text(a.by_all)},
              {"coverage by parts", subfed::to_text(a.by_partial)},
              {"seconds",
               {a.seconds.cutting, a.seconds.training, a.seconds.averaging, a.seconds.evaluating}}}
      .dump();
}

account read_account(const subfed::model& net, const std::string& text) {
  const json in = json::parse(text);
  account out(net);
  out.rounds = in.at("rounds");
  for (const json& e : in.at("history")) {
    out.history.push_back({e.at(0),
                           {number_of(e.at(1)), number_of(e.at(2)), number_of(e.at(3))},
                           number_of(e.at(4))});
  }
  out.loss_since = number_of(in.at("loss since"));
  out.rounds_since = in.at("rounds since");
  const json& turns = in.at("turns");
  out.turns = turns.at(0), out.turns_of_parts = turns.at(1);
  out.parameters = turns.at(2), out.flops = turns.at(3);
  out.by_all = subfed::read_coverage(net, in.at("coverage").get<std::string>());
  out.by_partial = subfed::read_coverage(net, in.at("coverage by parts").get<std::string>());
  const json& seconds = in.at("seconds");
  out.seconds = {seconds.at(0), seconds.at(1), seconds.at(2), seconds.at(3)};
  return out;
}

void save_run(const std::filesystem::path& path, const server& central, const account& so_far,
              const options& settings, const federation& all) {
  checkpoint kept;
  central.keep(kept);
  kept.texts = {{"config", settings.config},
                {"identity", settings.identity},
                {"data", all.data_checksum},
                {"progress", text_of(so_far)}};
  save(kept, path);
}

/// Throws unless a checkpoint is of the same run.
void check_identity(const std::filesystem::path& path, const std::string& theirs,
                    const std::string& ours) {
  if (theirs == ours) return;
  const json was = json::parse(theirs, nullptr, false), is = json::parse(ours);
  for (const auto& [option, value] : is.items()) {
    if (was.is_object() && was.value(option, json()) == value) continue;
    throw failure(
        fmt::format("{} was made with another --{} ({}) than this run has ({}); without --resume "
                    "the run begins "
                    "anew.",
                    path.string(), option,
                    was.is_object() ? was.value(option, json()).dump() : "none", value.dump()));
  }
  throw failure(fmt::format("{} was made with other options than this run has.", path.string()));
}

std::filesystem::path checkpoint_path(const named_method& which, const options& settings) {
  return std::filesystem::path(settings.out) / (which.name.name + ".safetensors");
}

/// Reads the checkpoint of this very run into server and account; false where there is none.
bool go_on_from(const std::filesystem::path& path, server& central, account& so_far,
                const options& settings, const federation& all) {
  if (!std::filesystem::exists(path)) return false;
  const checkpoint kept = load(path);
  for (const char* text : {"identity", "data", "progress"}) {
    if (kept.texts.contains(text)) continue;
    throw failure(fmt::format("{} is no checkpoint of this program.", path.string()));
  }
  check_identity(path, kept.texts.at("identity"), settings.identity);
  if (kept.texts.at("data") != all.data_checksum) {
    throw failure(fmt::format("{} was made with other images than this run has.", path.string()));
  }
  try {
    so_far = read_account(central.described().net, kept.texts.at("progress"));
    central.restore(kept);
  } catch (const std::exception& error) {
    throw failure(fmt::format("{} is damaged: {}.", path.string(), error.what()));
  }
  return true;
}

holdings summarise(const subfed::coverage& seen, subfed::group_id drawn, bool any_client) {
  const auto nodes = seen.counts(drawn);
  return {any_client, seen.summary(), {nodes.begin(), nodes.end()}};
}

method_result result_of(const std::string& name, const account& a, const architecture& described) {
  method_result out;
  out.method = name;
  out.is_bound = a.turns_of_parts == 0;
  out.history = a.history;
  out.server_parameters = described.net.size();
  const auto turns = static_cast<double>(a.turns);
  out.each.parameters = static_cast<double>(a.parameters) / turns;
  out.each.bytes = 2 * sizeof(float) * out.each.parameters;
  out.each.flops = static_cast<double>(a.flops) / turns;
  out.rounds = a.rounds;
  out.megabytes_per_round = out.each.bytes * turns / 1e6 / static_cast<double>(a.rounds);
  out.by_all = summarise(a.by_all, described.stream.back(), true);
  out.by_partial = summarise(a.by_partial, described.stream.back(), a.turns_of_parts != 0);
  out.drawn_group = described.net[described.stream.back()].name;
  out.seconds = a.seconds;
  return out;
}

}  // namespace

double learning_rate(const options& settings, std::int64_t round) {
  const double gone = static_cast<double>(round) / static_cast<double>(settings.rounds);
  double rate = settings.lr;
  if (settings.schedule == lr_schedule::cosine) {
    rate *= (1 + std::cos(std::numbers::pi * gone)) / 2;
  }
  if (settings.schedule == lr_schedule::step) {
    for (const double at : settings.decay_at) {
      if (static_cast<double>(round) >= at * static_cast<double>(settings.rounds)) rate *= 0.1;
    }
  }
  return rate;
}

void check(const named_method& which, const options& settings, const federation& all,
           pool& workers) {
  server central(which, settings, all.device, workers);
  central.check_draws();
  if (!settings.resume) return;
  account so_far(central.described().net);
  go_on_from(checkpoint_path(which, settings), central, so_far, settings, all);
}

method_result run(const named_method& which, const options& settings, const federation& all,
                  pool& workers, const std::function<void(const round_report&)>& report) {
  server central(which, settings, all.device, workers);
  const subfed::cohort_model cohorts(settings.cohort);
  account so_far(central.described().net);
  const auto path = checkpoint_path(which, settings);
  if (settings.resume && go_on_from(path, central, so_far, settings, all)) {
    round_report news{so_far.rounds, 0, {}, true};
    if (so_far.rounds_since > 0) {
      news.train_loss = so_far.loss_since / static_cast<double>(so_far.rounds_since);
    }
    if (!so_far.history.empty()) {
      news.on_test = so_far.history.back().on_test;
      if (so_far.rounds_since == 0) news.train_loss = so_far.history.back().train_loss;
    }
    report(news);
  } else if (settings.checkpoint_every > 0) {
    std::filesystem::remove(path);  // of an earlier run: nobody is to go on from it
  }

  training_plan plan{settings.local_epochs, settings.batch, settings.lr, settings.momentum,
                     settings.weight_decay};
  stopwatch clock;
  double elsewhere = 0;
  while (so_far.rounds < settings.rounds) {
    plan.lr = learning_rate(settings, so_far.rounds);
    const auto round = static_cast<std::uint64_t>(so_far.rounds);
    const auto cohort = cohorts.members(round);

    clock.lap(elsewhere);
    std::vector<turn> turns = central.cut(cohort, all.clients, round);
    clock.lap(so_far.seconds.cutting);

    // The longest turns first, so that no worker is left alone with one at the end.
    std::vector<turn*> by_size;
    for (turn& t : turns) by_size.push_back(&t);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const turn* a, const turn* b) { return a->part.size() > b->part.size(); });
    workers.run(by_size.size(), [&](std::size_t i) { train(*by_size[i], all.train, plan); });
    clock.lap(so_far.seconds.training);

    central.average(turns);
    clock.lap(so_far.seconds.averaging);

    so_far.count(turns, central.described());
    round_report news{so_far.rounds, 0, {}, false};
    for (const turn& t : turns) news.train_loss += t.loss / static_cast<double>(turns.size());
    so_far.loss_since += news.train_loss;
    ++so_far.rounds_since;

    const bool last = so_far.rounds == settings.rounds;
    if (so_far.rounds % settings.eval_every == 0 || last) {
      clock.lap(elsewhere);
      news.on_test = evaluate(central.judged(), all.train, all.test, all.clients, workers);
      so_far.history.push_back({so_far.rounds, *news.on_test,
                                so_far.loss_since / static_cast<double>(so_far.rounds_since)});
      so_far.loss_since = 0;
      so_far.rounds_since = 0;
      clock.lap(so_far.seconds.evaluating);
    }
    if (settings.checkpoint_every > 0 && (so_far.rounds % settings.checkpoint_every == 0 || last)) {
      save_run(path, central, so_far, settings, all);
    }
    report(news);
  }
  return result_of(which.name.name, so_far, central.described());
}

}  // namespace trainer
