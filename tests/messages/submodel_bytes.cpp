// SPDX-License-Identifier: MIT
#include <subfed/messages/submodel_bytes.hpp>

#include <subfed/draw.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::read_sets;
using subfed::submodel;
using subfed::write_sets;
using support::message_of;

namespace {

using byte_vector = std::vector<std::byte>;

byte_vector bytes_of(std::initializer_list<int> values) {
  byte_vector out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}
/// The first bytes of every file of sets of this model: magic and names.
byte_vector start_of(const subfed::model& net) {
  byte_vector out = write_sets(submodel::full(net));
  out.resize(12);
  return out;
}
std::string refusal(const subfed::model& net, const byte_vector& start, const byte_vector& rest) {
  byte_vector all = start;
  all.insert(all.end(), rest.begin(), rest.end());
  return message_of([&] { static_cast<void>(read_sets(net, all)); });
}

}  // namespace

TEST_CASE("sets as bytes, by hand") {
  subfed::model net;
  const auto a = net.group("a", 300);
  const submodel sub = submodel::full(net).with(a, index_set(300, {200, 201, 10, 11, 12, 299}));
  const byte_vector written = write_sets(sub);
  // FNV-1a of "1:a" by hand is long; what follows it is not.
  const byte_vector rest(written.begin() + 12, written.end());
  // 300; 3 runs; 200 ahead, 2 long; 192 back, 3 long; 286 ahead, 1 long.
  CHECK(rest == bytes_of({1, 0xAC, 2, 3, 0x90, 3, 1, 0xFF, 2, 2, 0xBC, 4, 0}));
  CHECK(written[0] == std::byte{'S'});
  CHECK(read_sets(net, written).same_nodes(sub));
}

TEST_CASE("what was written is read again, for schemes and for any order") {
  subfed::model net;
  net.group("empty", 0);
  net.group("one", 1);
  const auto wide = net.group("wide", 1000);
  net.group("huge", std::int64_t{1} << 60, subfed::cut::never);
  const subfed::draw_key key{.seed = 3, .round = 41, .client = 9, .capacity = 0.3};
  for (const auto& sub : {draw(net, subfed::prefix{}, key, {{wide, 0.3}}), submodel::full(net)}) {
    const auto read = read_sets(net, write_sets(sub), key);
    CHECK(read.same_nodes(sub));
    CHECK(read.origin() == key);
  }
  subfed::model small;
  const auto g = small.group("g", 40);
  small.group("h", 7);
  support::seeded random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> nodes;
    for (std::int64_t n = 0; n < 40; ++n) {
      if (!random.one_in(3)) nodes.push_back(n);
    }
    if (random.one_in(2)) random.shuffle(nodes);
    const auto sub = submodel::full(small).with(g, index_set(40, nodes));
    CHECK(read_sets(small, write_sets(sub)).same_nodes(sub));
  }
  CHECK(write_sets(draw(small, subfed::random_subset{}, key)) !=
        write_sets(draw(small, subfed::rolling{}, key)));
}

TEST_CASE("sets of another model, and bytes that are none, are refused") {
  subfed::model net, other, wider;
  net.group("a", 10);
  other.group("b", 10);
  wider.group("a", 11);
  const byte_vector written = write_sets(submodel::full(net));
  CHECK(refusal(other, written, {}) ==
        "subfed: read_sets: these are groups of another model, at byte 12");
  CHECK(refusal(wider, written, {}) ==
        "subfed: read_sets: group 'a' has 10 nodes, expected 11, at byte 14");
  CHECK(refusal(net, {}, {}) == "subfed: read_sets: the bytes end too early, at byte 0");
  CHECK(refusal(net, bytes_of({'S', 'F', 'S', '2'}), {}) ==
        "subfed: read_sets: this is not \"SFS1\", at byte 4");
  for (std::size_t n = 0; n < written.size(); ++n) {
    CHECK(refusal(net,
                  byte_vector(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(n)),
                  {}) ==
          (n == 15   ? "subfed: read_sets: there are fewer bytes than runs, at byte 15"
           : n == 16 ? "subfed: read_sets: there are fewer bytes than runs, at byte 15"
                     : "subfed: read_sets: the bytes end too early, at byte " + std::to_string(n)));
  }
  const byte_vector start = start_of(net);
  const auto refused = [&](std::initializer_list<int> rest) {
    return refusal(net, start, bytes_of(rest));
  };
  CHECK(refused({2}) == "subfed: read_sets: the number of groups is another, at byte 13");
  CHECK(refused({0x81, 0}) == "subfed: read_sets: a number with leading zeros, at byte 14");
  CHECK(refused({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2}) ==
        "subfed: read_sets: a number over 2^64 - 1, at byte 22");
  CHECK(refused({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x81}) ==
        "subfed: read_sets: a number of more than ten bytes, at byte 22");
  CHECK(refused({1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}) ==
        "subfed: read_sets: a number over 2^63 - 1, at byte 23");
  CHECK(refused({1, 10, 0xFF, 0x7F, 0, 0}) ==
        "subfed: read_sets: there are fewer bytes than runs, at byte 16");
  CHECK(refused({1, 10, 1, 20, 0}) ==
        "subfed: read_sets: a run of group 'a' begins outside of it, at byte 16");
  CHECK(refused({1, 10, 1, 1, 0}) ==
        "subfed: read_sets: a run of group 'a' begins outside of it, at byte 16");
  CHECK(refused({1, 10, 1, 18, 1}) ==
        "subfed: read_sets: a run of group 'a' ends outside of it, at byte 17");
  CHECK(refused({1, 10, 2, 0, 1, 0, 1}) ==
        "subfed: read_sets: a run continues the one before it, at byte 18");
  CHECK(refused({1, 10, 2, 0, 3, 5, 1}) ==
        "subfed: index_set: node 1 is repeated, at positions 1 and 4");
  CHECK(refused({1, 10, 1, 0, 9, 0}) ==
        "subfed: read_sets: there are bytes after the end, at byte 17");
  CHECK(refused({1, 10, 1, 0, 9}) == "nothing was thrown");
}

TEST_CASE("a restricted submodel is not written") {
  subfed::model net;
  const auto classes = net.group("classes", 10);
  const auto sub = submodel::full(net).restricted(classes, index_set(10, {1, 2}));
  CHECK(message_of([&] { static_cast<void>(write_sets(sub)); }) ==
        "subfed: write_sets: group 'classes' is restricted");
}
