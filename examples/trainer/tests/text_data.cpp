// SPDX-License-Identifier: MIT
#include "text_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <common/tests/message_of.hpp>

namespace {

constexpr std::string_view known =
    "\n !\"&'()*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz";

std::string text_of(const trainer::text_set& set, std::int64_t sample) {
  std::string out;
  for (std::int64_t i = 0; i <= set.steps; ++i) {
    const auto at = static_cast<std::size_t>(sample * (set.steps + 1) + i);
    out += known.at(static_cast<std::size_t>(set.tokens.at(at)));
  }
  return out;
}
std::vector<std::int32_t> tokens_of(const trainer::text_set& set, std::int64_t sample) {
  const auto from = set.tokens.begin() + sample * (set.steps + 1);
  return {from, from + set.steps + 1};
}

/// A verse of so many words, numbers that cannot be mistaken: "aa", "ab", ..
std::string numbered(int from, int to) {
  std::string out;
  for (int i = from; i < to; ++i) {
    if (!out.empty()) out += ' ';
    out += {static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
  }
  return out;
}

}  // namespace

TEST_CASE("characters are cut into sequences of 64 guesses, the last tenth for testing") {
  std::string verse;
  for (int i = 0; i < 1999; ++i) verse += known[static_cast<std::size_t>(i * 7 % 80) % 79 + 1];
  const std::vector<trainer::book> one = {{"A", {verse}}};
  const trainer::text_split data = trainer::cut_characters(one);
  verse += '\n';  // 2000: 1800 and 200
  CHECK(data.train.steps == 64);
  CHECK(data.train.classes == 80);
  CHECK(data.train.first == std::vector<std::int64_t>{0, 28});  // 28 x 64 + 1 <= 1800
  CHECK(data.test.first == std::vector<std::int64_t>{0, 3});
  for (std::int64_t s = 0; s < 28; ++s) {
    CHECK(text_of(data.train, s) == verse.substr(static_cast<std::size_t>(64 * s), 65));
  }
  for (std::int64_t s = 0; s < 3; ++s) {
    CHECK(text_of(data.test, s) == verse.substr(static_cast<std::size_t>(1800 + 64 * s), 65));
  }
}

TEST_CASE("of a long text eight sequences are for testing, evenly spread") {
  std::vector<std::string> verses;
  for (int v = 0; v < 500; ++v) verses.push_back(numbered(0, 33));  // 98 characters and an end
  const std::vector<trainer::book> two = {{"A", verses}, {"B", verses}};
  const trainer::text_split data = trainer::cut_characters(two);
  CHECK(data.test.first == std::vector<std::int64_t>{0, 8, 16});
  CHECK(data.train.first.back() == 2 * data.train.first[1]);
  std::string text;
  for (const std::string& v : verses) text += v + '\n';
  const std::string last = text.substr(text.size() - text.size() / 10);
  const std::size_t all = (last.size() - 1) / 64;
  for (std::size_t s = 0; s < 8; ++s) {
    CHECK(text_of(data.test, static_cast<std::int64_t>(s)) == last.substr(s * all / 8 * 64, 65));
  }
}

TEST_CASE("characters that the network lacks and texts that are too short are refused") {
  const std::vector<trainer::book> strange = {{"A", {std::string(700, 'a'), "\xc3\xa9"}}};
  CHECK(message_of([&] { trainer::cut_characters(strange); }) ==
        "A has a character of code 195, which is none of the 80 that the network knows.");
  const std::vector<trainer::book> small = {{"A", {std::string(649, 'a')}}};
  CHECK_NOTHROW(trainer::cut_characters(small));  // 650: the last tenth is 65
  const std::vector<trainer::book> smaller = {{"A", {std::string(648, 'a')}}};
  CHECK(
      message_of([&] { trainer::cut_characters(smaller); }) ==
      "A client's part of A has no sequence of 64 guesses for testing: --clients is too large for "
      "this text.");
}

TEST_CASE("words are numbered by frequency, then by the alphabet; all others are one") {
  // 21 words: "two" 8 times, "one" and "God's" 5 times, "x-y" 3 times.
  std::vector<std::string> verses = {"Two two, two; TWO: one (one) God's God's two",
                                     "one God's two one God's. two x-y x-y x-y?", "one God's two"};
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) all.insert(all.end(), verses.begin(), verses.end());
  const std::vector<trainer::book> one = {{"A", all}};
  const trainer::text_split data = trainer::cut_words(one, 3);
  CHECK(data.train.steps == 20);
  CHECK(data.train.classes == 3);
  CHECK(tokens_of(data.train, 0) ==
        std::vector<std::int32_t>{0, 0, 0, 0, 2, 2, 1, 1, 0, 2, 1, 0, 2, 1, 0, 3, 3, 3, 2, 1, 0});
  // 420 words: 378 and 42.
  CHECK(data.train.count() == 18);
  CHECK(data.test.count() == 2);
  CHECK(message_of([&] { trainer::cut_words(one, 5); }) ==
        "--vocabulary is 5, but the text has only 4 different words.");
}

TEST_CASE("a sequence in which nobody has to guess a word is left out") {
  std::vector<std::string> verses;
  for (int v = 0; v < 20; ++v) verses.push_back("the the the the the the the the the the the");
  verses.insert(verses.begin() + 3, numbered(30, 90));
  const std::vector<trainer::book> one = {{"A", verses}};
  const trainer::text_split data = trainer::cut_words(one, 1);
  // 280 words, 252 for training: 12 sequences, of which the third and fourth have strange words alone.
  CHECK(data.train.count() == 10);
  for (std::int64_t s = 0; s < data.train.count(); ++s) {
    const auto t = tokens_of(data.train, s);
    CHECK(std::count(t.begin() + 1, t.end(), 0) > 0);
  }
  const std::vector<trainer::book> none = {{"A", {numbered(0, 400)}}, {"B", verses}};
  CHECK(message_of([&] {
          trainer::cut_words(none, 1);
        }).starts_with("A client's part of A has no sequence of 20 guesses for training"));
}

TEST_CASE("the vocabulary is of the training parts alone") {
  std::vector<std::string> verses(27, "one two three four five six seven eight nine ten");
  for (int v = 0; v < 3; ++v) verses.push_back("last last last last last one last last last last");
  const std::vector<trainer::book> one = {{"A", verses}};
  CHECK_NOTHROW(trainer::cut_words(one, 10));
  CHECK(message_of([&] { trainer::cut_words(one, 11); }).find("only 10 different") !=
        std::string::npos);
}

TEST_CASE("clients draw their sequences by the seed, from their own") {
  std::vector<std::string> verses;
  for (int v = 0; v < 100; ++v) verses.push_back(numbered(v, v + 33));
  const std::vector<trainer::book> two = {{"A", verses},
                                          {"B", {verses.begin(), verses.begin() + 20}}};
  const trainer::text_split data = trainer::cut_characters(two);
  const auto clients = trainer::text_clients(data, 5, 40);
  REQUIRE(clients.size() == 2);
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(clients[c].number == c);
    CHECK(clients[c].labels.empty());
    const std::set<std::int64_t> own(clients[c].samples.begin(), clients[c].samples.end());
    CHECK(own.size() == clients[c].samples.size());
    CHECK(*own.begin() >= data.train.first[c]);
    CHECK(*own.rbegin() < data.train.first[c + 1]);
    CHECK(clients[c].tests.front() == data.test.first[c]);
    CHECK(clients[c].tests.back() == data.test.first[c + 1] - 1);
  }
  CHECK(clients[0].samples.size() == 40);
  CHECK(clients[1].samples.size() ==
        static_cast<std::size_t>(data.train.first[2] - data.train.first[1]));
  CHECK(trainer::text_clients(data, 5, 40)[0].samples == clients[0].samples);
  CHECK(trainer::text_clients(data, 6, 40)[0].samples != clients[0].samples);
}

TEST_CASE("a checksum changes with a token and with what clients have") {
  std::vector<std::string> verses(20, numbered(0, 40));
  const std::vector<trainer::book> two = {{"A", verses}, {"B", verses}};
  trainer::text_split data = trainer::cut_characters(two);
  const std::string before = trainer::checksum(data);
  CHECK(before.size() == 8);
  ++data.test.tokens.back();
  CHECK(trainer::checksum(data) != before);
  --data.test.tokens.back();
  CHECK(trainer::checksum(data) == before);
  ++data.train.first[1];
  CHECK(trainer::checksum(data) != before);
}
