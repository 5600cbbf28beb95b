// SPDX-License-Identifier: MIT
#include "protocol.hpp"

#include "failure_of.hpp"
#include "wire.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace secure_aggregation;

namespace {

struct people {
  std::vector<signing_key> keys;
  registry known;
  std::vector<advertisement> all;

  people() {
    for (std::uint64_t c = 0; c < 24; ++c) {
      keys.push_back(signing_key::random());
      known.push_back(keys.back().open);
      const auto share = task::capacity_of(c).to_parts();
      all.push_back({c,
                     6,
                     static_cast<std::uint64_t>(share.numerator),
                     static_cast<std::uint64_t>(share.denominator),
                     task::weight_of(c),
                     key_pair::random().open,
                     key_pair::random().open,
                     {}});
      all.back().by = keys.back().sign(all.back().signed_part());
    }
  }
  static bytes message_of(const std::vector<advertisement>& list) {
    byte_writer out;
    out.number(list.size());
    for (const advertisement& a : list) out.all(a.all());
    return out.take();
  }
  std::string refusal(const std::vector<advertisement>& list) const {
    return failure_of([&] { read_advertisements(message_of(list), known, 6); });
  }
};

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t c = 0; c < count; ++c) out.push_back(c);
  return out;
}

}  // namespace

TEST_CASE("keys come with what their client has signed: no one else can change a capacity") {
  const people some;
  CHECK(some.refusal(some.all) == "nothing failed");
  auto list = some.all;
  list[3].denominator = 2;
  CHECK(some.refusal(list) == "the keys of client 3 are not signed by it");
  list = some.all;
  list[3].mask = list[4].mask;
  CHECK(some.refusal(list) == "the keys of client 3 are not signed by it");
  list = some.all;
  list.insert(list.begin() + 4, list[3]);
  CHECK(some.refusal(list) == "client 3 is listed twice");
  list = some.all;
  std::swap(list[3], list[4]);
  CHECK(some.refusal(list) == "client 3 is listed twice");  // or out of order
  list = some.all;
  list[3].client = 99;
  CHECK(some.refusal(list) == "the keys of client 99, which nobody knows");
  CHECK(failure_of([&] { read_advertisements(people::message_of(some.all), some.known, 7); }) ==
        "the keys of client 0 are for another round");
  list = some.all;
  list[3].numerator = 5;
  list[3].by = some.keys[3].sign(list[3].signed_part());
  CHECK(some.refusal(list) == "the keys of client 3 come with an impossible capacity");
}

TEST_CASE("two plans of a round have two hashes, and so other masks") {
  const people some;
  const task about(8);
  const hash keys = hash_of(people::message_of(some.all));
  const hash usual = hash_of_round(round_of(about, some.all, numbers(24)), keys);
  CHECK(usual == hash_of_round(round_of(about, some.all, numbers(24)), keys));
  CHECK(usual != hash_of_round(round_of(about, some.all, numbers(23)), keys));
  auto list = some.all;
  list[3].denominator = 5;
  CHECK(usual != hash_of_round(round_of(about, list, numbers(24)), keys));
  CHECK(usual != hash_of_round(round_of(about, some.all, numbers(24)), usual));
  CHECK(failure_of([&] { round_of(about, some.all, numbers(25)); }) ==
        "client 24 has no keys in this round");
}

TEST_CASE("messages that are cut short, or announce what they do not have, are refused") {
  const people some;
  const bytes keys = people::message_of(some.all);
  const bytes fates = survivors_message({{0, 1, 2}, {3, 4}});
  CHECK(read_survivors(fates) == subfed::survivor_list{{0, 1, 2}, {3, 4}});
  for (std::size_t size = 0; size < fates.size(); ++size) {
    const bytes part(fates.begin(), fates.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(failure_of([&] { read_survivors(part); }) != "nothing failed");
  }
  for (std::size_t size = 0; size < keys.size(); size += 29) {
    const bytes part(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(failure_of([&] { read_advertisements(part, some.known, 6); }) != "nothing failed");
  }
  bytes huge = fates;
  for (std::size_t i = 0; i < 8; ++i) huge[i] = 0xFF;
  CHECK(failure_of([&] { read_survivors(huge); }) == "a message announces more than it has");
  bytes longer = fates;
  longer.push_back(0);
  CHECK(failure_of([&] { read_survivors(longer); }) == "a message has bytes after its end");
  CHECK(words_of(bytes_of(numbers(9))) == numbers(9));
  CHECK(failure_of([&] { words_of(bytes(9)); }) == "an upload is no sequence of words");
}

TEST_CASE("a frame of another kind, or longer than can be, is refused before memory is taken") {
  listener door;
  const auto answer = [&](frame kind, std::uint64_t most) {
    std::thread other([&] {
      connection to = connect_to(door.port());
      to.send(frame::upload, bytes(100));
    });
    connection from = door.accept();
    other.join();
    return failure_of([&] { from.receive(kind, most); });
  };
  CHECK(answer(frame::upload, 100) == "nothing failed");
  CHECK(answer(frame::upload, 99) == "a message of 100 bytes, expected at most 99");
  CHECK(answer(frame::shares, 100) == "a message of kind 5, expected 3");
  std::thread other([&] { connect_to(door.port()); });
  connection from = door.accept();
  other.join();
  CHECK(failure_of([&] { from.receive(frame::upload, 100); }) ==
        "the other end has closed the connection");
}
