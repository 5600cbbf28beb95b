// SPDX-License-Identifier: MIT
#include "federation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <common/strict_json.hpp>
#include <exception>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string_view>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/coverage/nodes.hpp>

#include "account.hpp"
#include "evaluation.hpp"
#include "failure.hpp"
#include "interruption.hpp"
#include "ranks.hpp"
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

failure other_option(const std::filesystem::path& path, const std::string& option,
                     const std::string& theirs, const std::string& ours, const std::string& why) {
  return failure(
      fmt::format("{} was made with another --{} ({}) than this run has ({}){}; --overwrite "
                  "instead of --resume starts over.",
                  path.string(), option, theirs, ours, why));
}

/// Options that decide about the learning rate of a round: they may be others where the rounds of
/// the past had the same.
bool is_of_schedule(const std::string& option) {
  constexpr std::string_view names[] = {"rounds", "lr", "lr-schedule", "decay-at"};
  return std::find(std::begin(names), std::end(names), option) != std::end(names);
}

/// Throws unless a checkpoint is of the same run of the method, but for the schedule.
void check_identity(const std::filesystem::path& path, const named_method& which, const json& was,
                    const json& is) {
  const auto is_of_others = [&](const std::string& option) {
    if (which.name.reads(option)) return false;
    for (const named_method& m : all_methods()) {
      if (m.name.reads(option)) return true;
    }
    return false;
  };
  const auto text = [](const json& options, const std::string& name) {
    return options.contains(name) ? options[name].dump() : std::string("none");
  };
  for (const json* options : {&is, &was}) {
    for (const auto& item : options->items()) {
      const std::string& option = item.key();
      if (is_of_schedule(option) || is_of_others(option)) continue;
      if (text(was, option) == text(is, option)) continue;
      throw other_option(path, option, text(was, option), text(is, option), "");
    }
  }
}

/// Throws unless the rounds that are done had the learning rates that this run has for them.
void check_schedule(const std::filesystem::path& path, const json& was, const json& is,
                    std::int64_t rounds, const options& settings) {
  if (rounds > settings.rounds) {
    throw failure(fmt::format("{} has {} finished rounds, but --rounds is {}.", path.string(),
                              rounds, settings.rounds));
  }
  std::string differs;
  for (const char* option : {"lr-schedule", "lr", "decay-at", "rounds"}) {
    if (!differs.empty() || !was.contains(option) || !is.contains(option)) continue;
    if (was[option] != is[option]) differs = option;
  }
  if (differs.empty()) return;
  options theirs;
  theirs.rounds = was.at("rounds").get<std::int64_t>();
  theirs.lr = was.at("lr").get<double>();
  theirs.schedule = parse_lr_schedule(was.at("lr-schedule").get<std::string>());
  if (was.contains("decay-at"))
    theirs.decay_at = parse_decay_at(was.at("decay-at").get<std::string>());
  for (std::int64_t r = 0; r < rounds; ++r) {
    const double then = learning_rate(theirs, r), now = learning_rate(settings, r);
    if (then == now) continue;
    throw other_option(
        path, differs, was.at(differs).dump(), is.at(differs).dump(),
        fmt::format("{}: round {} of {}, which is finished, had the learning rate {} and would "
                    "have {}",
                    differs == "lr-schedule"
                        ? ""
                        : ", by --lr-schedule " + was.at("lr-schedule").get<std::string>(),
                    r + 1, rounds, then, now));
  }
}

std::filesystem::path checkpoint_path(const named_method& which, const options& settings) {
  return std::filesystem::path(settings.out) / (which.name.name + ".safetensors");
}

/// Reads the checkpoint of this very run into server and account; false where there is none.
bool go_on_from(const named_method& which, server& central, account& so_far,
                const options& settings, const federation& all) {
  const std::filesystem::path path = checkpoint_path(which, settings);
  if (!std::filesystem::exists(path)) return false;
  const checkpoint kept = load(path);
  constexpr std::string_view texts[] = {"config", "identity", "data", "progress"};
  const auto damaged = [&](const std::string& why) {
    return failure(fmt::format("{} is damaged: {}; without the file the method starts over.",
                               path.string(), why));
  };
  for (const std::string_view text : texts) {
    if (kept.texts.contains(std::string(text))) continue;
    throw failure(fmt::format("{} is not a checkpoint of this program.", path.string()));
  }
  for (const auto& [name, text] : kept.texts) {
    if (std::find(std::begin(texts), std::end(texts), name) != std::end(texts)) continue;
    throw damaged(fmt::format("there is a text \"{}\", which no run writes", name));
  }
  json was;
  const json is = json::parse(settings.identity);
  try {
    was = common::parse_strictly<json>(kept.texts.at("identity"));
    if (!was.is_object()) throw failure("its options are not a JSON object");
  } catch (const std::exception& error) {
    throw damaged(error.what());
  }
  check_identity(path, which, was, is);
  if (kept.texts.at("data") != all.data_checksum) {
    throw failure(fmt::format("{} was made with other data than this run has.", path.string()));
  }
  try {
    so_far = read_account(central.described().net, subfed::cohort_model(settings.cohort).asked(),
                          kept.texts.at("progress"));
    if (was.value("rounds", so_far.rounds) < so_far.rounds) {
      throw failure(fmt::format("{} rounds are finished, but its --rounds is {}", so_far.rounds,
                                was["rounds"].dump()));
    }
  } catch (const std::exception& error) {
    throw damaged(error.what());
  }
  check_schedule(path, was, is, so_far.rounds, settings);
  try {
    central.restore(kept, so_far.rounds);
  } catch (const std::exception& error) {
    throw damaged(error.what());
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
  if (data_of(described.model) == data_kind::text) out.sample = "sequence";
  out.is_bound = a.trainings_of_parts == 0;
  out.history = a.history;
  out.server_parameters = described.net.size();
  const auto trainings = static_cast<double>(a.trainings);
  out.each.parameters = static_cast<double>(a.parameters) / trainings;
  out.each.bytes = 2 * sizeof(float) * out.each.parameters;
  out.each.flops = static_cast<double>(a.flops) / trainings;
  out.rounds = a.rounds;
  out.megabytes_per_round = out.each.bytes * trainings / 1e6 / static_cast<double>(a.rounds);
  out.by_all = summarise(a.by_all, described.last, true);
  out.by_partial = summarise(a.by_partial, described.last, a.trainings_of_parts != 0);
  out.drawn_group = described.net[described.last].name;
  out.seconds = a.seconds;
  return out;
}

answers server_answers(const server& central, const federation& all, pool& workers) {
  return answer(central.evaluated_networks(), 1, all.train, all.test, all.clients, workers,
                central.evaluated_moments());
}

/// What clients have from the server's model and from those of their capacities.
void judge_clients(method_result& out, const answers& whole, const subfed::cohort_model& cohorts,
                   const server& central, const federation& all, pool& workers) {
  const auto next = static_cast<std::uint64_t>(out.rounds);
  const std::vector<double> of_whole = local_accuracies(whole, all.clients);
  std::vector<std::size_t> own_class;
  for (std::size_t c = 0; c < all.clients.size(); ++c) {
    own_class.push_back(cohorts.class_of(all.clients[c].number, next));
    out.clients.push_back({all.clients[c].number, 0, of_whole[c], of_whole[c]});
  }
  const auto& classes = cohorts.options().mix.classes;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const auto first = std::find(own_class.begin(), own_class.end(), k);
    if (first == own_class.end()) continue;
    const auto number = all.clients[static_cast<std::size_t>(first - own_class.begin())].number;
    const auto part = central.network_of(number, next, classes[k].capacity);
    answers given = whole;
    if (part) {
      const std::shared_ptr<network> networks[] = {part->network};
      given =
          answer(networks, part->scale, all.train, all.test, all.clients, workers, part->moments);
    }
    const std::vector<double> of_part = part ? local_accuracies(given, all.clients) : of_whole;
    std::vector<double> local;
    for (std::size_t c = 0; c < all.clients.size(); ++c) {
      if (own_class[c] != k) continue;
      out.clients[c].capacity = classes[k].capacity.value();
      out.clients[c].own_accuracy = of_part[c];
      local.push_back(of_part[c]);
    }
    out.capacities.push_back({classes[k].capacity.value(), static_cast<std::int64_t>(local.size()),
                              part ? part->parameters : out.server_parameters,
                              judge(given, local)});
  }
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
  go_on_from(which, central, so_far, settings, all);
}

method_result run(const named_method& which, const options& settings, const federation& all,
                  pool& workers, const std::function<void(const round_report&)>& report) {
  server central(which, settings, all.device, workers);
  const subfed::cohort_model cohorts(settings.cohort);
  account so_far(central.described().net);
  const auto path = checkpoint_path(which, settings);
  std::int64_t saved = 0;
  const auto save = [&] {
    ranks::on_first([&] { save_run(path, central, so_far, settings, all); });
    saved = so_far.rounds;
  };
  stopwatch clock;
  double elsewhere = 0;
  answers latest;  // of the last evaluation that was made here
  const auto evaluate_now = [&] {
    clock.lap(elsewhere);
    evaluation on_test;
    ranks::on_first([&] {
      latest = server_answers(central, all, workers);
      on_test = judge(latest, local_accuracies(latest, all.clients));
    });
    ranks::broadcast(on_test, 0);
    so_far.add(on_test, settings.eval_every, central.keep_counts());
    clock.lap(so_far.seconds.evaluating);
    return on_test;
  };

  if (settings.resume && go_on_from(which, central, so_far, settings, all)) {
    saved = so_far.rounds;
    round_report news{so_far.rounds, so_far.last_loss, {}, true, so_far.seconds};
    if (!so_far.history.empty()) news.on_test = so_far.history.back().on_test;
    if (so_far.rounds < settings.rounds) {
      so_far.go_on(settings.eval_every);
    } else if (so_far.history.empty() || so_far.history.back().round != so_far.rounds) {
      news.on_test = evaluate_now();  // the run was to be longer
      if (settings.checkpoint_every > 0) save();
    }
    report(news);
  } else if (settings.checkpoint_every > 0 && ranks::is_first()) {
    std::filesystem::remove(path);  // of an earlier run: nobody must continue from it
  }

  training_plan plan{settings.local_epochs, settings.batch, settings.lr, settings.momentum,
                     settings.weight_decay};
  while (so_far.rounds < settings.rounds) {
    plan.lr = learning_rate(settings, so_far.rounds);
    const bool is_kept = settings.checkpoint_every > 0;
    ranks::remember({which.name.name, is_kept ? saved : so_far.rounds, is_kept}, settings.out);
    const auto round = static_cast<std::uint64_t>(so_far.rounds);
    const auto cohort = cohorts.members(round);

    clock.lap(elsewhere);
    std::vector<local_training> trainings = central.cut(cohort, all.clients, round);
    clock.lap(so_far.seconds.cutting);

    // The largest networks first, so that no worker is left alone with one at the end.
    std::vector<local_training*> by_size;
    for (local_training& t : trainings) {
      if (t.rank == ranks::number()) by_size.push_back(&t);
    }
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const local_training* a, const local_training* b) {
                       return a->part.size() > b->part.size();
                     });
    workers.run(by_size.size(), [&](std::size_t i) {
      if (!asked_to_stop()) train(*by_size[i], all.train, plan);
    });
    clock.lap(so_far.seconds.training);
    if (ranks::count() == 1 && asked_to_stop()) {
      // The round counts for nothing: nothing but the networks that were sent has changed.
      if (settings.checkpoint_every > 0 && saved != so_far.rounds) save();
      throw interruption{which.name.name, so_far.rounds, settings.checkpoint_every > 0};
    }

    latest = {};
    central.exchange(trainings);
    central.average(trainings);
    clock.lap(so_far.seconds.averaging);

    double loss = 0;
    for (const local_training& t : trainings) {
      so_far.count(t.part, t.flops, t.all_flops);
      loss += t.loss / static_cast<double>(trainings.size());
    }
    so_far.end_round(loss);
    round_report news{so_far.rounds, loss, {}, false, {}};

    const bool last = so_far.rounds == settings.rounds;
    if (so_far.rounds % settings.eval_every == 0 || last) news.on_test = evaluate_now();
    if (settings.checkpoint_every > 0 && (so_far.rounds % settings.checkpoint_every == 0 || last)) {
      save();
    }
    report(news);
  }
  clock.lap(elsewhere);
  method_result out = result_of(which.name.name, so_far, central.described());
  ranks::on_first([&] {
    if (!latest.logits.defined()) latest = server_answers(central, all, workers);
    judge_clients(out, latest, cohorts, central, all, workers);
  });
  clock.lap(out.seconds.evaluating);
  return out;
}

}  // namespace trainer
