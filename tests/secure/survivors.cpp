// SPDX-License-Identifier: MIT
#include <subfed/secure/survivors.hpp>

#include <doctest/doctest.h>
#include <support/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::secure_participant;
using subfed::secure_round;
using subfed::submodel;
using subfed::survivor_list;
using subfed::unmasking_guard;
using support::message_of;

namespace {

/// Clients 1 to 7. All have node 0; 1 to 4 have node 1 too.
secure_round seven(subfed::secure_options options = {}) {
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("w", {3, g});
  std::vector<secure_participant> all;
  for (std::uint64_t c = 1; c <= 7; ++c) {
    all.push_back({submodel(net, {index_set::prefix(2, c <= 4 ? 2 : 1)}, {.client = c})});
  }
  options.average.sums = subfed::fixed_point{.clients = 7};
  options.threshold = 4;
  return secure_round(std::move(all), options);
}

std::string answer_of(const secure_round& round, const survivor_list& list,
                      std::uint64_t client = 1) {
  unmasking_guard guard(round, client);
  return message_of([&] { guard.admit(list); });
}

const std::string nothing = "nothing was thrown";

}  // namespace

TEST_CASE("a client helps once, whatever it is asked the second time") {
  const survivor_list first{{1, 2, 3, 5, 6}, {4, 7}}, second{{1, 2, 3, 4, 5, 6}, {7}};
  for (const survivor_list& again : {first, second}) {
    unmasking_guard guard(seven(), 1);
    guard.admit(first);
    CHECK(message_of([&] { guard.admit(again); }) ==
          "subfed: secure: client 1 is asked to open the round a second time");
  }
  unmasking_guard guard(seven(), 1);
  CHECK(message_of([&] { guard.admit({{1, 2}, {3, 4, 5, 6, 7}}); }) != nothing);
  CHECK(message_of([&] { guard.admit(first); }) == nothing);  // nothing had been sent
}

TEST_CASE("lists in which a client has two fates, or none, are refused") {
  const secure_round round = seven();
  CHECK(answer_of(round, {{7, 1, 5, 3, 2, 4, 6}, {}}) == nothing);  // in any order
  CHECK(answer_of(round, {{1, 2, 3, 4, 5, 6}, {7, 2}}) ==
        "subfed: secure: client 2 is a survivor and dropped out");
  CHECK(answer_of(round, {{1, 2, 3, 4, 5, 2}, {6, 7}}) ==
        "subfed: secure: client 2 is listed twice");
  CHECK(answer_of(round, {{1, 2, 3, 4, 5}, {6, 6, 7}}) ==
        "subfed: secure: client 6 is listed twice");
  CHECK(answer_of(round, {{1, 2, 3, 4, 5}, {6}}) ==
        "subfed: secure: client 7 is neither a survivor nor dropped out");
  CHECK(answer_of(round, {{1, 2, 3, 4, 5}, {6, 7, 8}}) ==
        "subfed: secure: client 8 does not take part in the round");
  CHECK(
      answer_of(round, {{2, 3, 4, 5}, {1, 6, 7}}) ==
      "subfed: secure: client 1 is asked to open a round of which it is said to have dropped out");
  CHECK(message_of([&] { unmasking_guard(round, 8); }) ==
        "subfed: secure: client 8 does not take part in the round");
}

TEST_CASE("too few survivors, of all or of one parameter, are refused") {
  CHECK(answer_of(seven(), {{1, 2, 3}, {4, 5, 6, 7}}) ==
        "subfed: secure: 3 clients survive, expected at least 4");
  CHECK(
      answer_of(seven(), {{1, 2, 5, 6, 7}, {3, 4}}) ==
      "subfed: secure: tensor 'w' has 2 surviving holders at global element (0, 1), expected 3 or "
      "none");
  CHECK(answer_of(seven(), {{1, 2, 3, 6, 7}, {5, 4}}) == nothing);
  // Nobody sees a sum of nothing.
  subfed::model net;
  const auto g = net.group("g", 2);
  net.tensor("w", {g});
  std::vector<secure_participant> all;
  for (std::uint64_t c = 1; c <= 7; ++c) {
    const auto nodes = c <= 4 ? index_set(2, {0}) : index_set(2, {1});
    all.push_back({submodel(net, {nodes}, {.client = c})});
  }
  const secure_round apart(
      all, {.average = {.sums = subfed::fixed_point{.clients = 7}}, .threshold = 4});
  CHECK(answer_of(apart, {{1, 2, 3, 4}, {5, 6, 7}}) == nothing);
  // What was never released needs no survivors.
  CHECK(answer_of(seven({.expected_dropouts = 2}), {{1, 5, 6, 7}, {2, 3, 4}}) == nothing);
}

TEST_CASE("of private rows, each class needs survivors of its own") {
  subfed::model net;
  const auto g = net.group("g", 2);
  const auto classes = net.group("classes", 3, subfed::cut::never);
  net.tensor("fc", {classes, g});
  std::vector<secure_participant> all;
  for (std::uint64_t c = 1; c <= 7; ++c) {
    const submodel sub(net, {index_set::prefix(2, c <= 3 ? 2 : 1), index_set::full(3)},
                       {.client = c});
    all.push_back({sub});
  }
  const auto round = [&](std::vector<subfed::group_id> rows) {
    return secure_round(all, {.average = {.sums = subfed::fixed_point{.clients = 7}},
                              .threshold = 4,
                              .private_rows = std::move(rows)});
  };
  CHECK(answer_of(round({classes}), {{1, 2, 3, 4, 5, 6}, {7}}) == nothing);
  CHECK(answer_of(round({classes}), {{1, 2, 3, 4, 5}, {6, 7}}) ==
        "subfed: secure: private rows have 2 survivors with the columns of client 4, expected 3 or "
        "none");
  CHECK(answer_of(round({}), {{1, 2, 3, 4, 5}, {6, 7}}) == nothing);
  CHECK(answer_of(round({classes}), {{4, 5, 6, 7}, {1, 2, 3}}, 4) == nothing);
}
