// SPDX-License-Identifier: MIT
#include "account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/strict_json.hpp>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <subfed/coverage/text.hpp>

#include "failure.hpp"

namespace trainer {
namespace {

using nlohmann::json;

constexpr std::int64_t most_rounds = 10'000'000;  // the limit of --rounds
constexpr std::int64_t largest_count = std::int64_t{1} << 62;

void require(bool holds, std::string_view what, const std::string& found,
             std::string_view expected) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected", what, found, expected));
}

std::int64_t whole(const json& value, std::string_view what, std::int64_t least,
                   std::int64_t largest) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest)) &&
                    value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= largest;
  require(fits, what, value.dump(), fmt::format("a whole number, {} to {}", least, largest));
  return value.get<std::int64_t>();
}
void require_same(std::int64_t found, std::string_view what, std::int64_t expected) {
  require(found == expected, what, std::to_string(found), std::to_string(expected));
}

/// JSON has no NaN and no infinity: those of a run that diverged are null, and NaN when read.
double number(const json& value, std::string_view what) {
  require(value.is_null() || value.is_number(), what, value.dump(), "a number or null");
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}
double share(const json& value, std::string_view what) {
  const bool fits = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1;
  require(fits, what, value.dump(), "0 to 1");
  return value.get<double>();
}
double not_negative(const json& value, std::string_view what) {
  require(value.is_number() && value.get<double>() >= 0, what, value.dump(),
          "a number that is not negative");
  return value.get<double>();
}

const json& list(const json& value, std::string_view what, std::size_t size) {
  require(value.is_array() && value.size() == size, what, value.dump(),
          fmt::format("a list of {}", size));
  return value;
}
void expect_keys(const json& object, std::initializer_list<const char*> keys) {
  require(object.is_object(), "progress", object.dump(), "an object");
  for (const char* key : keys) {
    if (!object.contains(key)) throw failure(fmt::format("progress has no \"{}\"", key));
  }
  for (const auto& item : object.items()) {
    const auto is_it = [&](const char* key) { return item.key() == key; };
    if (std::none_of(keys.begin(), keys.end(), is_it)) {
      throw failure(fmt::format("progress has \"{}\", which no run writes", item.key()));
    }
  }
}

subfed::coverage coverage_of(const subfed::model& net, const json& value, std::string_view what,
                             std::int64_t rounds, std::int64_t clients) {
  require(value.is_string(), what, value.dump(), "a text");
  subfed::coverage out = subfed::read_coverage(net, value.get<std::string>());
  require_same(out.rounds(), fmt::format("the number of rounds of the {}", what), rounds);
  require_same(out.clients(), fmt::format("the number of clients of the {}", what), clients);
  return out;
}

std::vector<std::int64_t> keep_of(const json& value) {
  constexpr std::string_view what = "the counts of keep probabilities";
  require(value.is_array() && (value.empty() || value.size() == keep_bins), what, value.dump(),
          fmt::format("a list of {} or none", keep_bins));
  std::vector<std::int64_t> out;
  for (const json& count : value) out.push_back(whole(count, what, 0, largest_count));
  return out;
}

std::vector<history_entry> history_of(const json& value, std::int64_t rounds) {
  require(value.is_array(), "history", value.dump(), "a list");
  std::vector<history_entry> out;
  for (const json& e : value) {
    list(e, "an entry of the history", 8);
    const std::int64_t least = out.empty() ? 1 : out.back().round + 1;
    const auto counted = [&](const json& sum, std::string_view what, auto member) {
      return whole(sum, what, out.empty() ? 0 : out.back().*member, largest_count);
    };
    out.push_back(
        {whole(e[0], "a round of the history", least, rounds),
         {share(e[1], "an accuracy"), number(e[2], "a loss"), share(e[3], "a local accuracy")},
         number(e[4], "a loss"),
         counted(e[5], "the number of parameters so far", &history_entry::parameters),
         counted(e[6], "the number of operations so far", &history_entry::flops),
         keep_of(e[7])});
  }
  return out;
}

/// Of the rounds after the first `entries` of the history.
open_losses losses_of(const json& value, std::string_view what, const account& a,
                      std::size_t entries) {
  list(value, what, 2);
  const std::int64_t last = entries == 0 ? 0 : a.history[entries - 1].round;
  open_losses out;
  out.sum = number(value[0], what);
  out.rounds = whole(value[1], fmt::format("{}, rounds,", what), 0, a.rounds);
  require_same(out.rounds, fmt::format("{}, rounds,", what), a.rounds - last);
  require(out.rounds > 0 || out.sum == 0, what, value.dump(), "0 for no round");
  return out;
}

json json_of(const open_losses& open) { return {open.sum, open.rounds}; }

}  // namespace

void account::count(const subfed::submodel& part, std::int64_t flops_of_image,
                    std::int64_t flops_of_images) {
  ++trainings;
  parameters += part.size();
  flops += flops_of_image;
  all_flops += flops_of_images;
  by_all.record(part);
  if (part.size() == part.parent().size()) return;
  by_partial.record(part);
  ++trainings_of_parts;
}

void account::end_round(double loss) {
  by_all.end_round();
  by_partial.end_round();
  ++rounds;
  last_loss = loss;
  since.sum += loss;
  ++since.rounds;
}

void account::add(const evaluation& on_test, std::int64_t every, std::vector<std::int64_t> keep) {
  since_without_last.reset();
  if (rounds % every != 0) since_without_last = since;
  history.push_back({rounds, on_test, since.mean(), parameters, all_flops, std::move(keep)});
  since = {};
}

void account::go_on(std::int64_t every) {
  if (since_without_last && rounds % every != 0) {
    since = *since_without_last;
    history.pop_back();
  }
  since_without_last.reset();
}

std::string text_of(const account& a) {
  json history = json::array();
  for (const history_entry& e : a.history) {
    history.push_back({e.round, e.on_test.accuracy, e.on_test.loss, e.on_test.local_accuracy,
                       e.train_loss, e.parameters, e.flops, e.keep});
  }
  return json{
      {"rounds", a.rounds},
      {"loss", a.last_loss},
      {"history", history},
      {"losses since", json_of(a.since)},
      {"losses without last", a.since_without_last ? json_of(*a.since_without_last) : json()},
      {"trainings", {a.trainings, a.trainings_of_parts, a.parameters, a.flops, a.all_flops}},
      {"coverage", subfed::to_text(a.by_all)},
      {"coverage by parts", subfed::to_text(a.by_partial)},
      {"seconds",
       {a.seconds.cutting, a.seconds.training, a.seconds.averaging, a.seconds.evaluating}}}
      .dump();
}

account read_account(const subfed::model& net, std::int64_t clients_each, const std::string& text) {
  const json in = common::parse_strictly<json>(text);
  expect_keys(in, {"rounds", "loss", "history", "losses since", "losses without last", "trainings",
                   "coverage", "coverage by parts", "seconds"});
  account out(net);
  out.rounds = whole(in["rounds"], "the number of rounds", 1, most_rounds);
  out.last_loss = number(in["loss"], "the loss");
  out.history = history_of(in["history"], out.rounds);
  out.since = losses_of(in["losses since"], "losses since", out, out.history.size());
  if (const json& open = in["losses without last"]; !open.is_null()) {
    require(!out.history.empty() && out.history.back().round == out.rounds, "losses without last",
            open.dump(), "null, as there is no evaluation after the last round,");
    out.since_without_last = losses_of(open, "losses without last", out, out.history.size() - 1);
  }

  const json& trainings = list(in["trainings"], "trainings", 5);
  out.trainings = whole(trainings[0], "the number of trainings", 0, largest_count);
  require_same(out.trainings, "the number of trainings", out.rounds * clients_each);
  out.trainings_of_parts =
      whole(trainings[1], "the number of trainings with a part", 0, out.trainings);
  out.parameters = whole(trainings[2], "the number of parameters", 0, largest_count);
  require(static_cast<double>(out.parameters) <=
              static_cast<double>(out.trainings) * static_cast<double>(net.size()),
          "the number of parameters", trainings[2].dump(), "at most the model's in each training");
  out.flops = whole(trainings[3], "the number of operations", 0, largest_count);
  out.all_flops = whole(trainings[4], "the number of operations", 0, largest_count);
  if (!out.history.empty()) {
    require(out.history.back().parameters <= out.parameters, "the number of parameters so far",
            in["history"].back()[5].dump(), "at most that of all rounds");
    require(out.history.back().flops <= out.all_flops, "the number of operations so far",
            in["history"].back()[6].dump(), "at most that of all rounds");
  }
  out.by_all = coverage_of(net, in["coverage"], "coverage", out.rounds, out.trainings);
  out.by_partial = coverage_of(net, in["coverage by parts"], "coverage by parts", out.rounds,
                               out.trainings_of_parts);
  const json& seconds = list(in["seconds"], "seconds", 4);
  out.seconds = {not_negative(seconds[0], "a time"), not_negative(seconds[1], "a time"),
                 not_negative(seconds[2], "a time"), not_negative(seconds[3], "a time")};
  return out;
}

}  // namespace trainer
