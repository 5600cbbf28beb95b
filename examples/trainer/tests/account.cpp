// SPDX-License-Identifier: MIT
#include "account.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <subfed/layers.hpp>
#include <vector>

namespace {

using nlohmann::json;

subfed::model small_model() {
  subfed::model net;
  const auto hidden = net.group("hidden", 4);
  subfed::linear(net, "fc", {3, hidden});
  return net;
}
subfed::submodel first_nodes(const subfed::model& net, std::int64_t count) {
  std::vector<subfed::index_set> sets = {subfed::index_set::prefix(4, count)};
  return subfed::submodel(net, sets);
}

std::vector<std::int64_t> bins() { return std::vector<std::int64_t>(trainer::keep_bins, 3); }

/// Two clients a round, one with a part; rounds 1 .. 5, evaluated after 2 and 4.
trainer::account five_rounds(std::int64_t evaluated_last = 0) {
  const subfed::model net = small_model();
  trainer::account a(net);
  for (int r = 1; r <= 5; ++r) {
    a.count(subfed::submodel::full(net), 12, 120);
    a.count(first_nodes(net, 2), 6, 30);
    a.end_round(1.0 / r);
    if (r % 2 == 0 || r == evaluated_last) {
      a.add({0.5, 2.5, 0.75}, 2, r == 2 ? std::vector<std::int64_t>() : bins());
    }
  }
  a.seconds = {1, 2, 3, 4};
  return a;
}

std::string refused(const json& progress) {
  try {
    trainer::read_account(small_model(), 2, progress.dump());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(no failure)";
}

/// The whole text with one place changed.
std::string refused(const std::string& pointer, const json& value) {
  json progress = json::parse(trainer::text_of(five_rounds()));
  progress[json::json_pointer(pointer)] = value;
  return refused(progress);
}

}  // namespace

TEST_CASE("what has been counted is read as it was written") {
  for (const std::int64_t last : {0, 5}) {
    const trainer::account a = five_rounds(last);
    const trainer::account b = trainer::read_account(small_model(), 2, trainer::text_of(a));
    CHECK(trainer::text_of(b) == trainer::text_of(a));
    CHECK(b.rounds == 5);
    CHECK(b.last_loss == 0.2);
    CHECK(b.trainings == 10);
    CHECK(b.trainings_of_parts == 5);
    CHECK(b.parameters == 5 * (16 + 8));
    CHECK(b.flops == 5 * 18);
    CHECK(b.all_flops == 5 * 150);
    CHECK(b.history[0].parameters == 2 * (16 + 8));
    CHECK(b.history[1].flops == 4 * 150);
    CHECK(b.history[0].keep.empty());
    CHECK(b.history[1].keep == bins());
    CHECK(b.since_without_last.has_value() == (last == 5));
  }
  trainer::account diverged = five_rounds();
  diverged.last_loss = std::numeric_limits<double>::quiet_NaN();
  diverged.history[1].on_test.loss = std::numeric_limits<double>::infinity();
  const auto again = trainer::read_account(small_model(), 2, trainer::text_of(diverged));
  CHECK(std::isnan(again.last_loss));
  CHECK(std::isnan(again.history[1].on_test.loss));
}

TEST_CASE("a run that continues has no evaluation that was there only for its end") {
  trainer::account a = five_rounds(5);
  CHECK(a.history.size() == 3);
  CHECK(a.since.rounds == 0);
  a.go_on(2);
  const trainer::account straight = five_rounds();
  CHECK(trainer::text_of(a) == trainer::text_of(straight));
  a = five_rounds(5);
  a.go_on(5);  // now it would be there anyway
  CHECK(a.history.size() == 3);
  CHECK(a.since.rounds == 0);
}

TEST_CASE("each number of a damaged checkpoint is refused by name") {
  const json hostile[] = {-5,
                          1e300,
                          1000000,
                          2.5,
                          5.0,
                          "5",
                          json(),
                          true,
                          json::array(),
                          json::object(),
                          18446744073709551615u,
                          std::int64_t{1} << 62};
  for (const json& value : hostile) {
    CAPTURE(value.dump());
    CHECK(refused("/rounds", value) != "(no failure)");
    CHECK(refused("/history/0/0", value) != "(no failure)");
    CHECK(refused("/losses since/1", value) != "(no failure)");
    for (const char* trainings : {"/trainings/0", "/trainings/1"})
      CHECK(refused(trainings, value) != "(no failure)");
    for (const char* whole : {"/history", "/losses since", "/trainings", "/coverage",
                              "/coverage by parts", "/seconds", "/history/1"}) {
      CHECK(refused(whole, value) != "(no failure)");
    }
  }
  CHECK(refused("/rounds", -5) ==
        "the number of rounds is -5, but a whole number, 1 to 10000000 is "
        "expected");
  CHECK(refused("/rounds", 0).starts_with("the number of rounds is 0"));
  CHECK(refused("/rounds", 4).find("expected") != std::string::npos);
  for (const json& value : {json(-1), json(2.5), json("1"), json(), json(1e300)}) {
    CHECK(refused("/trainings/2", value).starts_with("the number of parameters is"));
    CHECK(refused("/trainings/3", value).starts_with("the number of operations is"));
  }
  CHECK(refused("/trainings/2", 161).starts_with("the number of parameters is 161"));
  for (const json& value : {json(-1), json(2.5), json("1"), json(), json(1e300)}) {
    CHECK(refused("/trainings/4", value).starts_with("the number of operations is"));
    CHECK(refused("/history/0/5", value).starts_with("the number of parameters so far is"));
    CHECK(refused("/history/1/6", value).starts_with("the number of operations so far is"));
    CHECK(refused("/history/1/7", value).starts_with("the counts of keep probabilities is"));
    CHECK(refused("/history/1/7/4", value).starts_with("the counts of keep probabilities is"));
  }
  // They never fall, and end at those of all rounds.
  CHECK(refused("/history/1/5", 47).starts_with("the number of parameters so far is 47"));
  CHECK(refused("/history/1/5", 121).starts_with("the number of parameters so far is 121"));
  CHECK(refused("/history/1/6", 299).starts_with("the number of operations so far is 299"));
  CHECK(refused("/history/1/6", 751).starts_with("the number of operations so far is 751"));
  CHECK(refused("/history/1/7", {1, 2}).starts_with("the counts of keep probabilities is [1,2]"));
  for (const json& value : {json(-0.1), json(1.1), json(), json("1")}) {
    CHECK(refused("/history/0/1", value).starts_with("an accuracy is"));
    CHECK(refused("/history/0/3", value).starts_with("a local accuracy is"));
  }
  for (const json& value : {json("1"), json(true), json::array()}) {
    CHECK(refused("/loss", value).starts_with("the loss is"));
    CHECK(refused("/history/0/2", value).starts_with("a loss is"));
    CHECK(refused("/history/0/4", value).starts_with("a loss is"));
  }
  for (const json& value : {json(-1), json(), json("1"), json(true)}) {
    CHECK(refused("/seconds/2", value).starts_with("a time is"));
  }
  // Rounds of the history ascend, and end at the rounds that are done.
  CHECK(refused("/history/1/0", 2) != "(no failure)");
  CHECK(refused("/history/1/0", 6) != "(no failure)");
  CHECK(refused("/history/1/0", 3).starts_with("losses since, rounds, is 1, but 2"));
  CHECK(refused("/losses without last", {0.5, 1}).find("but null") != std::string::npos);
}

TEST_CASE("so is what is missing, too much or there twice, and coverage of another run") {
  const std::string whole = trainer::text_of(five_rounds());
  const json progress = json::parse(whole);
  for (const auto& item : progress.items()) {
    json altered = progress;
    altered.erase(item.key());
    CHECK(refused(altered) == "progress has no \"" + item.key() + "\"");
    if (!item.value().is_array()) continue;
    altered = progress;
    altered[item.key()].push_back(0);
    CHECK(refused(altered) != "(no failure)");
  }
  json altered = progress;
  altered["more"] = 1;
  CHECK(refused(altered) == "progress has \"more\", which no run writes");
  std::string twice = whole;
  twice.insert(1, "\"rounds\":5,");
  CHECK_THROWS_WITH(trainer::read_account(small_model(), 2, twice),
                    "the key \"rounds\" occurs twice");
  for (const std::string& text : {std::string(), whole.substr(0, 40), std::string("null")}) {
    CHECK_THROWS(trainer::read_account(small_model(), 2, text));
  }
  CHECK_THROWS(trainer::read_account(small_model(), 3, whole));

  // Coverage with a round more, and that of the parts in place of that of all.
  trainer::account other = five_rounds();
  other.by_all.end_round();
  altered = progress;
  altered["coverage"] = json::parse(trainer::text_of(other))["coverage"];
  CHECK(refused(altered) == "the number of rounds of the coverage is 6, but 5 is expected");
  altered["coverage"] = progress["coverage by parts"];
  CHECK(refused(altered) == "the number of clients of the coverage is 5, but 10 is expected");
}
