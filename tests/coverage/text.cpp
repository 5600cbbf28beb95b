// SPDX-License-Identifier: MIT
#include <subfed/coverage/text.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::coverage;
using subfed::coverage_by_class;
using subfed::index_set;
using subfed::parameter_coverage;
using subfed::read_coverage;
using subfed::read_coverage_by_class;
using subfed::read_parameter_coverage;
using subfed::submodel;
using subfed::to_text;
using support::message_of;

namespace {

subfed::model example() {
  subfed::model net;
  const auto a = net.group("a", 3);
  const auto b = net.group("b 1%", 2);
  net.tensor("weight", {a, b});
  return net;
}

template <class Coverage>
void record_two_rounds(Coverage& seen) {
  const auto& net = seen.parent();
  seen.record(submodel(net, {index_set(3, {2, 0}), index_set(2, {0, 1})}));
  seen.record(submodel(net, {index_set(3, {0}), index_set(2, {1})}));
  seen.end_round();
  seen.record(submodel(net, {index_set(3, {0, 1}), index_set(2, {1})}));
  seen.end_round();
}

const std::string nodes_text =
    "subfed coverage 1\n"
    "times 2\n"
    "group 3 a\n"
    "group 2 b%201%25\n"
    "rounds 2 times 2 clients 3 pairs 1\n"
    "counts 3 1 1\n"
    "last 1 1 0\n"
    "held 0 1 0 0 -1 -1\n"
    "holders 2 3 1\n"
    "consecutive 1\n"
    "counts 1 3\n"
    "last 0 1\n"
    "held 0 0 -1 0\n"
    "holders 1 2 1\n"
    "consecutive 1\n";

const std::string parameters_text =
    "subfed parameter coverage 1\n"
    "group 3 a\n"
    "group 2 b%201%25\n"
    "sets 3\n"
    "2 0 1 2 3\n"
    "1 0 1\n"
    "1 0 2\n"
    "sets 2\n"
    "1 0 2\n"
    "1 1 2\n"
    "submodels 3\n"
    "0 0\n"
    "1 1\n"
    "2 1\n"
    "rounds 2\n"
    "2 0 1\n"
    "1 2\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Reading a damaged text must end in an error or in what was written.
template <class Read>
void damage(const std::string& text, Read&& read) {
  support::seeded random(5);
  const std::string alphabet = "0123456789 -\nab%";
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bad = text;
    const auto at =
        static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
    const auto letter = alphabet[static_cast<std::size_t>(random.between(0, 16))];
    switch (random.between(0, 3)) {
      case 0:
        bad[at] = letter;
        break;
      case 1:
        bad.erase(at, static_cast<std::size_t>(random.between(1, 9)));
        break;
      case 2:
        bad.insert(at, static_cast<std::size_t>(random.between(1, 20)), letter);
        break;
      default:
        bad += text.substr(at);
    }
    if (bad == text) continue;
    std::string back;
    const std::string message = message_of([&] { back = to_text(read(bad)); });
    if (message == "nothing was thrown") {
      CHECK(back == bad);  // another coverage, but a possible one
    } else {
      ++refused;
      CHECK(message.rfind("subfed: coverage text: line ", 0) == 0);
    }
  }
  CHECK(refused > 3000);
}

}  // namespace

TEST_CASE("coverage is written as words and numbers, and read back") {
  const auto net = example();
  coverage seen(net, 2);
  record_two_rounds(seen);
  CHECK(to_text(seen) == nodes_text);
  coverage back = read_coverage(net, nodes_text);
  CHECK(to_text(back) == nodes_text);
  CHECK(back.summary().gini == seen.summary().gini);
  // What was read continues as what was written.
  for (auto* each : {&seen, &back}) record_two_rounds(*each);
  CHECK(to_text(back) == to_text(seen));
  CHECK(back.complete() == seen.complete());
}

TEST_CASE("the log of parameters is written and read back") {
  const auto net = example();
  parameter_coverage seen(net);
  record_two_rounds(seen);
  CHECK(to_text(seen) == parameters_text);
  parameter_coverage back = read_parameter_coverage(net, parameters_text);
  CHECK(back.histogram() == seen.histogram());
  for (auto* each : {&seen, &back}) record_two_rounds(*each);
  CHECK(to_text(back) == to_text(seen));
}

TEST_CASE("long records and classes survive the way through text") {
  subfed::model net;
  net.group("empty", 0);
  const auto g = net.group("g", 23);
  net.tensor("t", {g, g});
  coverage_by_class seen(net, 2, 5);
  parameter_coverage parameters(net);
  for (std::uint64_t j = 0; j < 30; ++j) {
    for (std::uint64_t c = 0; c < j % 3; ++c) {
      const subfed::draw_key key{.round = j, .client = c, .capacity = 0.3};
      const auto sub = c == 0 ? subfed::draw(net, subfed::random_subset{}, key)
                              : subfed::draw(net, subfed::rolling{}, key);
      seen.record(sub, c % 2);
      parameters.record(sub);
    }
    seen.end_round();
    parameters.end_round();
  }
  CHECK(to_text(read_coverage_by_class(net, to_text(seen))) == to_text(seen));
  CHECK(to_text(read_coverage(net, to_text(seen.in_all()))) == to_text(seen.in_all()));
  CHECK(to_text(read_parameter_coverage(net, to_text(parameters))) == to_text(parameters));
  const subfed::model none;
  const parameter_coverage nothing(none);
  CHECK(to_text(read_parameter_coverage(none, to_text(nothing))) == to_text(nothing));
  damage(to_text(seen), [&](const std::string& text) { return read_coverage_by_class(net, text); });
}

TEST_CASE("a text that is damaged anywhere is refused, or is that of another coverage") {
  const auto net = example();
  damage(nodes_text, [&](const std::string& text) { return read_coverage(net, text); });
  damage(parameters_text,
         [&](const std::string& text) { return read_parameter_coverage(net, text); });
}

TEST_CASE("refusals name the line, what is there and what is expected") {
  const auto net = example();
  const auto refusal = [&](const std::string& from, const std::string& to) {
    return message_of([&] { read_coverage(net, replaced(nodes_text, from, to)); });
  };
  const std::string line = "subfed: coverage text: line ";
  CHECK(refusal("group 3 a", "group 4 a") == line + "3: '4', expected '3'");
  CHECK(refusal("times 2", "times 999999999999") ==
        line + "2: the times of first covers '999999999999', expected 1 to 21");
  CHECK(refusal("counts 3 1 1", "counts 4 1 1") == line + "6: a count '4', expected 0 to 3");
  CHECK(refusal("last 1 1 0", "last 1 1 -1") == line + "7: a last round '-1', expected 0 to 1");
  CHECK(refusal("held 0 1 0 0", "held 0 0 0 0") == line + "8: a round '0', expected 1 to 1");
  CHECK(refusal("holders 2 3 1", "holders 2 2 1") ==
        line + "10: a number of nodes and rounds 'consecutive', expected 0 to 1");
  CHECK(refusal("consecutive 1", "consecutive 3") ==
        line + "10: the number of consecutive holdings '3', expected 0 to 2");
  CHECK(refusal("pairs 1\n", "pairs 4\n") ==
        line + "5: the number of pairs of clients '4', expected 0 to 3");
  CHECK(message_of([&] { read_coverage(net, nodes_text + "\n"); }) ==
        line + "15: more or other blanks, expected what to_text writes");
  CHECK(message_of([&] { read_coverage(net, ""); }) == line + "1: '', expected 'subfed'");
  CHECK(message_of([&] {
          read_parameter_coverage(net, replaced(parameters_text, "1 1 2\nsub", "1 0 2\nsub"));
        }) == line + "10: a set, expected another");
  CHECK(message_of([&] {
          read_parameter_coverage(net, replaced(parameters_text, "1 2\n", "1 1\n"));
        }) != "nothing was thrown");

  coverage open(net);
  open.record(submodel::full(net));
  const std::string expected =
      "subfed: coverage text: clients of a round that has not ended are recorded; end it before "
      "writing";
  CHECK(message_of([&] { to_text(open); }) == expected);
  parameter_coverage log(net);
  log.record(submodel::full(net));
  CHECK(message_of([&] { to_text(log); }) == expected);
}

TEST_CASE("what can be counted can be written and read back, however many clients there were") {
  subfed::model net;
  net.group("g", 3);
  net.group("h", 1);
  const auto sub = submodel::full(net);
  coverage seen(net, 2);
  for (int client = 0; client < 3; ++client) seen.record(sub);
  seen.end_round();
  seen.record(sub);
  seen.end_round();
  for (int doublings = 0; doublings < 58; ++doublings) {
    CAPTURE(doublings);
    seen.append(seen);
    const std::string text = to_text(seen);
    CHECK(to_text(read_coverage(net, text)) == text);
  }
  CHECK(seen.clients() == std::int64_t{1} << 60);
  subfed::coverage_by_class classes(net, 2);
  classes.record(sub, 1);
  classes.end_round();
  for (int doublings = 0; doublings < 60; ++doublings) classes.append(classes);
  const std::string text = to_text(classes);
  CHECK(to_text(read_coverage_by_class(net, text)) == text);
}

TEST_CASE("first covers of many times, and many classes, are read back from few nodes") {
  for (const std::int64_t nodes : {0, 1, 2}) {
    subfed::model net;
    if (nodes > 0) net.group("g", nodes);
    for (const std::int64_t times : {1, 2, 1000}) {
      CAPTURE(nodes);
      CAPTURE(times);
      coverage seen(net, times);
      const std::string text = to_text(seen);
      CHECK(to_text(read_coverage(net, text)) == text);
      for (const std::size_t number : {0u, 1u, 300u}) {
        const subfed::coverage_by_class classes(net, number, times);
        const std::string by_class = to_text(classes);
        CHECK(to_text(read_coverage_by_class(net, by_class)) == by_class);
      }
    }
  }
}
