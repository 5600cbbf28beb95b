// SPDX-License-Identifier: MIT
#include "words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <common/mix.hpp>
#include <common/text.hpp>
#include <string_view>
#include <utility>

#include "failure.hpp"

namespace trainer {
namespace {

using common::number;
using common::pieces;

template <class T>
void require(bool holds, std::string_view option, std::string_view expected, T found) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected.", option, found, expected));
}
/// Written so that NaN is refused too.
void require_positive(std::string_view option, double value) {
  require(value > 0 && std::isfinite(value), option, "a positive number", value);
}
void require_not_negative(std::string_view option, double value) {
  require(value >= 0 && std::isfinite(value), option, "a number that is not negative", value);
}
void require_within(std::string_view option, std::int64_t value, std::int64_t least,
                    std::int64_t most) {
  require(value >= least && value <= most, option, fmt::format("{} to {}", least, most), value);
}
void require_at_least(std::string_view option, std::int64_t value, std::int64_t least) {
  require(value >= least, option, fmt::format("at least {}", least), value);
}

void check(const options& o) {
  require_at_least("--clients", o.cohort.clients, 1);
  require(o.cohort.clients <= 1'000'000, "--clients", "at most 1000000", o.cohort.clients);
  require(o.cohort.participation > 0 && o.cohort.participation <= 1, "--participation",
          "more than 0 and at most 1", o.cohort.participation);
  require_at_least("--cohort-rounds", o.cohort.cohort_rounds, 1);
  require(o.server_scale >= 1 && std::isfinite(o.server_scale), "--server-scale",
          "a number of at least 1", o.server_scale);
  require_within("--labels", o.labels, 1, 10);
  if (o.dirichlet) require_positive("--dirichlet", *o.dirichlet);
  require_at_least("--samples", o.samples, 1);

  require_at_least("--rounds", o.rounds, 1);
  require(o.rounds <= 10'000'000, "--rounds", "at most 10000000", o.rounds);
  require_at_least("--local-epochs", o.local_epochs, 1);
  require_at_least("--batch", o.batch, 1);
  require_positive("--lr", o.lr);
  for (const double at : o.decay_at) require(at >= 0 && at <= 1, "--decay-at", "0 to 1", at);
  require(o.momentum >= 0 && o.momentum < 1, "--momentum", "at least 0 and below 1", o.momentum);
  require_not_negative("--weight-decay", o.weight_decay);

  require_positive("--server-step", o.server_step);
  require_not_negative("--server-lr", o.server_lr);
  require(o.server_momentum >= 0 && o.server_momentum < 1, "--server-momentum",
          "at least 0 and below 1", o.server_momentum);

  require(o.window_step != 0, "--step", "a number that is not 0", o.window_step);
  if (o.overlap) {
    require(*o.overlap >= 0 && *o.overlap <= 1, "--overlap", "0 to 1", *o.overlap);
  }
  require_at_least("--members", o.members, 0);
  for (std::size_t w = 1; w < o.widths.size(); ++w) {
    require(o.widths[w - 1].value() < o.widths[w].value(), "--widths", "an ascending list",
            fmt::format("{} after {}", o.widths[w].value(), o.widths[w - 1].value()));
  }
  require(o.distilled.alpha >= 0 && o.distilled.alpha <= 1, "--alpha", "0 to 1", o.distilled.alpha);
  require_positive("--temperature", o.distilled.temperature);
  require(o.flops_ratio > 0 && o.flops_ratio <= 1, "--flops-ratio", "more than 0 and at most 1",
          o.flops_ratio);
  require_not_negative("--proximal", o.proximal);

  require_at_least("--eval-every", o.eval_every, 1);
  require_at_least("--checkpoint-every", o.checkpoint_every, 0);
  require_at_least("--threads", o.threads, 1);
  require(o.threads <= 1024, "--threads", "at most 1024", o.threads);
  try {
    const subfed::cohort_model probe(o.cohort);
  } catch (const subfed::error& error) {
    throw failure(error.what());
  }
}

/// The value next to a word.
template <class T, std::size_t N>
T meant(std::string_view option, std::string_view word,
        const std::pair<std::string_view, T> (&table)[N]) {
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (table[i].first == word) return table[i].second;
    known += i == 0 ? "" : i + 1 == N ? " or " : ", ";
    known += table[i].first;
  }
  throw failure(fmt::format("{} is \"{}\", but {} is expected.", option, word, known));
}

subfed::seed_policy seeds_of(const std::string& text) {
  if (text == "client-and-round") return subfed::seed_policy::per_client_and_round();
  if (text == "client") return subfed::seed_policy::per_client();
  const auto words = pieces(text, ':');
  const auto count = words.size() == 2 ? number<std::int64_t>(words[1]) : std::nullopt;
  if (count && *count >= 1 && words[0] == "pool") return subfed::seed_policy::pool(*count);
  if (count && *count >= 1 && words[0] == "pool-per-round") {
    return subfed::seed_policy::pool_per_round(*count);
  }
  if (count && *count >= 1 && words[0] == "shared") return subfed::seed_policy::shared(*count);
  throw failure(
      fmt::format("--seed-policy is \"{}\", but client-and-round, client, or pool:, "
                  "pool-per-round: or shared: with a number of at least 1 is expected.",
                  text));
}

std::vector<std::string> methods_of(const std::string& text, std::span<const method_name> known) {
  std::vector<std::string> out;
  for (const std::string& name : pieces(text)) {
    const auto is_it = [&](const method_name& m) { return m.name == name; };
    if (std::none_of(known.begin(), known.end(), is_it)) {
      std::vector<std::string_view> names;
      for (const method_name& m : known) names.emplace_back(m.name);
      throw failure(fmt::format("There is no method \"{}\"; the methods are {}.", name,
                                fmt::join(names, ", ")));
    }
    if (std::find(out.begin(), out.end(), name) != out.end()) {
      throw failure(fmt::format("The method \"{}\" is given twice.", name));
    }
    out.push_back(name);
  }
  return out;
}

}  // namespace

std::vector<double> shares_of(const std::string& text) {
  if (text == "rolex") return {0.32, 0.6};  // 800 and 1500 of 2500 rounds
  std::vector<double> out;
  for (const std::string& piece : pieces(text)) {
    if (piece.empty()) continue;
    const auto at = number<double>(piece);
    if (!at) throw failure(fmt::format("--decay-at: \"{}\" is not a number.", piece));
    out.push_back(*at);
  }
  return out;
}

lr_schedule schedule_of(const std::string& word) {
  return meant<lr_schedule>("--lr-schedule", word,
                            {{"constant", lr_schedule::constant},
                             {"step", lr_schedule::step},
                             {"cosine", lr_schedule::cosine}});
}

void settle(options& o, words& w, std::span<const method_name> known) {
  o.methods = methods_of(w.methods, known);
  w.methods = fmt::format("{}", fmt::join(o.methods, ","));
  const common::named_mix mixed = common::parse_mix(w.mix);
  o.cohort.mix = mixed.mix;
  o.mix = w.mix = mixed.text;
  o.cohort.capacities =
      w.redrawn ? subfed::capacity_assignment::redrawn : subfed::capacity_assignment::fixed;
  o.decay_at = shares_of(w.decay_at);
  w.decay_at = fmt::format("{}", fmt::join(o.decay_at, ","));
  const auto widths = w.widths.empty() ? std::vector<std::string>() : pieces(w.widths);
  for (const std::string& width : widths) o.widths.push_back(parse_capacity(width));
  w.widths = fmt::format("{}", fmt::join(widths, ","));

  o.schedule = schedule_of(w.schedule);
  o.absent = meant<absent_classes>("--absent-logits", w.absent,
                                   {{"zero", absent_classes::zero},
                                    {"minus-infinity", absent_classes::minus_infinity},
                                    {"trained", absent_classes::trained}});
  using divisor = std::optional<subfed::divisor>;
  o.divide_by = meant<divisor>("--average", w.average,
                               {{"by-method", std::nullopt},
                                {"holders", subfed::divisor::holders},
                                {"cohort", subfed::divisor::cohort}});
  o.weights = meant<weight_rule>("--weighting", w.weighting,
                                 {{"by-method", weight_rule::by_method},
                                  {"none", weight_rule::none},
                                  {"examples", weight_rule::examples},
                                  {"kept-size", weight_rule::kept_size},
                                  {"updates", weight_rule::updates},
                                  {"both", weight_rule::both}});
  o.weights_by_element =
      meant<bool>("--weight-each", w.weight_each, {{"client", false}, {"element", true}});
  o.server = meant<server_rule>("--server-optimizer", w.server,
                                {{"none", server_rule::none},
                                 {"sgd", server_rule::sgd},
                                 {"adagrad", server_rule::adagrad},
                                 {"adam", server_rule::adam},
                                 {"yogi", server_rule::yogi}});
  o.split_by_class =
      meant<bool>("--dirichlet-split", w.split, {{"client", false}, {"class", true}});
  o.norm =
      meant<norm_kind>("--norm", w.norm, {{"batch", norm_kind::batch}, {"none", norm_kind::none}});
  using assignment = subfed::ensemble_members::assignment;
  o.member_by = meant<assignment>("--member-by", w.member_by,
                                  {{"round", assignment::per_round},
                                   {"client", assignment::per_client},
                                   {"number", assignment::by_number}});
  o.seeds = seeds_of(w.seeds);
  o.drop_by = meant<thresholds>("--thresholds", w.thresholds,
                                {{"round", thresholds::round}, {"batch", thresholds::batch}});
  meant<bool>("--device", o.device, {{"cpu", false}, {"cuda", true}});

  if (o.weights_by_element && o.weights != weight_rule::kept_size &&
      o.weights != weight_rule::updates && o.weights != weight_rule::both) {
    throw failure("--weight-each element needs --weighting kept-size, updates or both.");
  }
  if (o.weights_by_element && (o.divide_by == subfed::divisor::cohort || o.server_step != 1)) {
    throw failure(
        "--weight-each element divides by the weights of an element's holders and takes the "
        "whole step: it cannot be used with --average cohort or a --server-step other than 1.");
  }
  check(o);
}

}  // namespace trainer
