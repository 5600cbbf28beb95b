// SPDX-License-Identifier: MIT
#include <subfed/messages/update_message.hpp>

#include <doctest/doctest.h>
#include <subfed/draw.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/file_bytes.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

using subfed::draw_key;
using subfed::half;
using subfed::index_set;
using subfed::model;
using subfed::open_update;
using subfed::peek_update;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::write_update;
using support::message_of;

namespace {

/// A group, tensors of several types, one of which stays with the client.
struct message_world {
  model net;
  subfed::group_id g = net.group("g", 8);
  subfed::tensor_id w = net.tensor("w", {g, 3});
  subfed::tensor_id own = net.tensor("own", {g}, subfed::role::local);
  subfed::tensor_id steps = net.tensor("steps", {1}, subfed::role::counter);
  subfed::tensor_id flags = net.tensor("flags", {g});
  subfed::tensor_id scale = net.tensor("scale", {g});

  std::vector<float> values = std::vector<float>(24);
  std::vector<std::int64_t> count{41};
  bool marks[8] = {true, false, true, true, false, false, true, false};
  std::vector<half> halves = std::vector<half>(8, half(1.5));
  submodel sub = subfed::draw(net, subfed::rolling{}, key());

  static draw_key key() {
    return {.seed = 7,
            .round = 3,
            .client = 0xFFFFFFFFFFFFFFFFu,
            .capacity = subfed::capacity::ratio(1, 2)};
  }
  message_world() {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.25f;
  }
  /// w is the transpose of what lies in memory.
  tensor_views<const void> tensors() const {
    return {tensor_view<const float>(values.data(), {4, 3}, {1, 4}),
            tensor_view<const float>(nullptr, {0}),
            tensor_view<const std::int64_t>(count.data(), {1}), tensor_view<const bool>(marks, {4}),
            tensor_view<const half>(halves.data(), {4})};
  }
  std::vector<std::byte> written(std::string_view scheme = "rolling") const {
    return write_update(sub, tensors(), 2.5, scheme);
  }
};

/// Messages are read in place: elsewhere these are skipped, and doctest counts them as skipped.
const doctest::skip in_place(!support::reads_in_place);

void put_u64(std::vector<std::byte>& all, std::size_t at, std::uint64_t x) {
  for (std::size_t i = 0; i < 8; ++i) all[at + i] = static_cast<std::byte>(x >> (8 * i) & 0xFF);
}
std::string refusal(const message_world& w, const std::vector<std::byte>& all) {
  return message_of([&] { open_update(w.sub, "rolling", all); });
}

}  // namespace

TEST_CASE("what was written is read in place, element for element" * in_place) {
  const message_world w;
  for (const std::string scheme : {"rolling", ""}) {
    const auto all = w.written(scheme);
    const auto front = peek_update(std::span(all).first(subfed::update_front_bytes));
    CHECK(front.bytes == all.size());
    CHECK(front.key == message_world::key());
    CHECK(front.weight == 2.5);
    CHECK(front.model == subfed::fingerprint(w.net));
    check_front(front, w.sub, scheme);
    const auto found = open_update(w.sub, scheme, all);
    CHECK(found.weight == 2.5);
    CHECK(found.sub.origin() == message_world::key());
    CHECK(found.sub.same_nodes(w.sub));
    const auto values = found.tensors[0].as<float>();
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        CHECK(values.data_handle()[3 * i + j] == static_cast<float>(4 * j + i) + 0.25f);
      }
    }
    CHECK(found.tensors[1].size() == 0);
    CHECK(*found.tensors[2].as<std::int64_t>().data_handle() == 41);
    CHECK(found.tensors[3].as<bool>().data_handle()[2]);
    CHECK(found.tensors[4].as<half>().data_handle()[3].bits == half(1.5).bits);
    for (const auto& view : found.tensors) {
      if (view.size() == 0) continue;
      const auto* const at = static_cast<const std::byte*>(view.data_handle());
      CHECK((at >= all.data() && at < all.data() + all.size()));
    }
  }
}

TEST_CASE("the layout of a small message, byte for byte" * in_place) {
  model net;
  const auto g = net.group("g", 3);
  net.tensor("x", {g});
  const submodel sub(net, {index_set(3, {1, 2})},
                     {.seed = 1, .round = 2, .client = 3, .capacity = 0.5});
  const float x[] = {1, -2};
  const auto all =
      write_update(sub, tensor_views<const float>{tensor_view<const float>(x, {2})}, 4, "s");
  REQUIRE(all.size() == 128);
  const auto u32 = [&](std::size_t at) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < 4; ++i)
      out |= std::to_integer<std::uint32_t>(all[at + i]) << (8 * i);
    return out;
  };
  CHECK(u32(0) == 0x01554653);  // "SFU" 1
  CHECK(u32(4) == 112);         // the head
  CHECK(u32(8) == 128);
  CHECK(u32(24) == 1);
  CHECK(u32(32) == 2);
  CHECK(u32(40) == 3);
  CHECK(u32(52) == 0x3FE00000);  // 0.5
  CHECK(u32(64) == 0);
  CHECK(u32(76) == 0x40100000);  // 4.0
  CHECK(u32(88) == 1);
  CHECK(u32(92) == 1);
  CHECK(u32(96) == 0x00003273);  // "s", float is 0x32
  CHECK(u32(112) == 0x3F800000);
  CHECK(u32(116) == 0xC0000000);
  CHECK(u32(120) == 0);
}

TEST_CASE("sets that the client chose are read from the message" * in_place) {
  const message_world w;
  const submodel chosen(w.net, {index_set(8, {5, 1, 0, 7})}, message_world::key());
  const auto all = write_update(chosen, w.tensors(), 1);
  const auto found = open_update(w.net, all);
  CHECK(found.sub.same_nodes(chosen));
  CHECK(found.sub.origin() == message_world::key());
  CHECK(message_of([&] { open_update(w.net, w.written()); }) ==
        "subfed: update message: it names a scheme, and has no sets");
  CHECK(message_of([&] { open_update(w.sub, "", all); }).find("the sets of client") !=
        std::string::npos);
}

TEST_CASE("a submodel of a scheme is its key, whatever its sets are" * in_place) {
  model net;
  const auto g = net.group("g", 100000);
  net.tensor("x", {g});
  const auto sub = subfed::draw(net, subfed::random_subset{}, {.client = 1, .capacity = 0.5});
  const std::vector<float> x(50000);
  const tensor_views<const float> tensors{tensor_view<const float>(x.data(), {50000})};
  const std::string scheme = "random_subset";
  const auto keyed = write_update(sub, tensors, 1, scheme);
  CHECK(keyed.size() == 200000 + 112);
  CHECK(keyed.size() <= subfed::most_update_bytes(sub, scheme.size()));
  CHECK(write_update(sub, tensors, 1).size() > 200000 + 40000);
  const auto up = [&](std::string_view by) {
    const std::int64_t framing = subfed::update_framing(sub, by);
    return static_cast<std::size_t>(subfed::traffic(sub, {.framing_bytes = framing}).up);
  };
  CHECK(up(scheme) == keyed.size());
  CHECK(up("") == write_update(sub, tensors, 1).size());
}

TEST_CASE("cost counts the bytes of a message, for tensors of several types" * in_place) {
  const message_world w;
  const std::vector<std::int64_t> sizes{4, 4, 8, 1, 2};
  subfed::traffic_options options{.tensor_element_bytes = sizes};
  for (const std::string scheme : {"rolling", ""}) {
    options.framing_bytes = subfed::update_framing(w.sub, scheme, options);
    CHECK(static_cast<std::size_t>(subfed::traffic(w.sub, options).up) == w.written(scheme).size());
  }
}

TEST_CASE(
    "another model, client, round, seed, capacity, scheme or size is refused by the front alone" *
    in_place) {
  const message_world w;
  const auto front = peek_update(w.written());
  const auto refused = [&](subfed::update_front changed) {
    return message_of([&] { check_front(changed, w.sub, "rolling"); });
  };
  CHECK(refused(front) == "nothing was thrown");
  auto other = front;
  other.key.client = 6;
  CHECK(refused(other) == "subfed: update message: the client is 6, expected 18446744073709551615");
  other = front;
  other.key.round = 4;
  CHECK(refused(other) == "subfed: update message: the round is 4, expected 3");
  other = front;
  other.key.seed = 8;
  CHECK(refused(other) == "subfed: update message: the seed is 8, expected 7");
  other = front;
  other.key.capacity = 0.5;
  CHECK(refused(other) == "subfed: update message: the capacity is 0.5, expected 0.5");
  other = front;
  other.bytes = 5000;
  CHECK(refused(other).find("the size is 5000 bytes, expected at most ") != std::string::npos);
  other = front;
  other.scheme_bytes = 0;
  CHECK(refused(other) == "subfed: update message: the size of the scheme's text is 0, expected 7");
  model renamed;
  const auto g = renamed.group("h", 8);
  renamed.tensor("w", {g, 3});
  CHECK(message_of([&] {
          check_front(front, subfed::draw(renamed, subfed::rolling{}, message_world::key()),
                      "rolling");
        }).find("the model's fingerprint is ") != std::string::npos);
  CHECK(message_of([&] { open_update(w.sub, "rotated", w.written()); }) ==
        "subfed: update message: the scheme is 'rolling', expected 'rotated'");
}

TEST_CASE("any changed byte is refused" * in_place) {
  const message_world w;
  const auto all = w.written();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto changed = all;
    changed[i] ^= std::byte{0x10};
    CHECK_MESSAGE(refusal(w, changed) != "nothing was thrown", "byte " << i);
    changed = all;
    changed.resize(i);
    CHECK(refusal(w, changed) != "nothing was thrown");
  }
  auto longer = all;
  longer.resize(all.size() + 16);
  CHECK(refusal(w, longer) == "subfed: update message: it has " + std::to_string(longer.size()) +
                                  " bytes, expected " + std::to_string(all.size()));
}

TEST_CASE("bytes that are no update message say so" * in_place) {
  const message_world w;
  auto all = w.written();
  CHECK(message_of([&] { peek_update({}); }) ==
        "subfed: update message: it does not begin with \"SFU\"");
  CHECK(message_of([&] { peek_update(std::span(all).first(40)); }) ==
        "subfed: update message: it ends after 40 bytes, 8 more are expected at byte 40");
  all[3] = std::byte{2};
  CHECK(refusal(w, all) == "subfed: update message: version 2, and this is for version 1");
  all = w.written();
  put_u64(all, 72, 0x7FF8000000000000u);
  CHECK(refusal(w, all).starts_with("subfed: update message: the weight of client "));
  all = w.written();
  all[103] = std::byte{0x3F};  // the type of w
  CHECK(refusal(w, all).find("tensor 'w' has elements of an unknown type, code 63") !=
        std::string::npos);
  all = w.written();
  all[104] = std::byte{0x32};
  CHECK(refusal(w, all).find("tensor 'own', which stays with the client") != std::string::npos);
  all = w.written();
  all[103] = std::byte{0x33};  // double: there are not so many bytes
  CHECK(refusal(w, all).find(" bytes are left") != std::string::npos);
}

TEST_CASE("a flag that is neither 0 nor 1 never becomes a bool" * in_place) {
  const message_world w;
  auto all = w.written();
  const auto at =
      static_cast<const std::byte*>(open_update(w.sub, "rolling", all).tensors[3].data_handle());
  all[static_cast<std::size_t>(at - all.data())] = std::byte{2};
  put_u64(all, 80, subfed::detail::checksum_around(all, 80));
  CHECK(refusal(w, all) == "subfed: update message: a flag of tensor 'flags' is neither 0 nor 1");
}

TEST_CASE("bytes at an odd address are refused, not copied" * in_place) {
  const message_world w;
  const auto all = w.written();
  std::vector<std::byte> odd(all.size() + 1);
  std::memcpy(odd.data() + 1, all.data(), all.size());
  CHECK(message_of([&] {
          open_update(w.sub, "rolling", std::span(odd).subspan(1));
        }).find("no multiple of") != std::string::npos);
}

TEST_CASE("updates that cannot be written" * in_place) {
  const message_world w;
  CHECK(message_of([&] {
          write_update(w.sub, w.tensors(), -1, "rolling");
        }).starts_with("subfed: update message: the weight of client "));
  CHECK(
      message_of([&] { write_update<float>(w.sub, {}); }).starts_with("subfed: update message: "));
  const auto restricted = w.sub.restricted(w.g, index_set(8, {0}));
  CHECK(message_of([&] { write_update(restricted, w.tensors(), 1, "rolling"); }) ==
        "subfed: update message: the submodel of client 18446744073709551615 is restricted");
  CHECK(message_of([&] { write_update(w.sub, w.tensors(), 1, std::string(5000, 's')); }) ==
        "subfed: update message: the scheme's text has 5000 bytes, expected at most 4096");
  // Where it is received it may be: the label rows of a client.
  CHECK(open_update(restricted, "rolling", w.written()).sub.same_nodes(restricted));
}

TEST_CASE("capacities travel whole: ratios, floats, and what is left of a share") {
  for (const subfed::capacity& share :
       {subfed::capacity(0.1), subfed::capacity(0.1f), subfed::capacity::ratio(1, 3),
        subfed::capacity(0.7).without(0.1)}) {
    model net;
    const submodel sub(net, {}, {.capacity = share});
    const auto all = write_update(sub, tensor_views<const float>{}, 1, "s");
    CHECK(peek_update(all).key.capacity == share);
  }
  using subfed::capacity;
  CHECK(message_of([] {
          capacity::from_parts({0.5, 0, 1, 3});
        }).find("is not that of 1/3") != std::string::npos);
  CHECK(message_of([] {
          capacity::from_parts({0.5, -1, 0, 0});
        }).find("relative error -1") != std::string::npos);
  CHECK(message_of([] {
          capacity::from_parts({1.5, 0, 0, 0});
        }).find("1.5 is outside") != std::string::npos);
}

TEST_CASE("a machine of the other byte order refuses elements of several bytes by name" *
          doctest::skip(support::reads_in_place)) {
  const message_world w;
  CHECK(message_of([&] { w.written(); }) ==
        "subfed: update message: elements of 32 bits are little-endian in a message, and this "
        "machine is not");
}
