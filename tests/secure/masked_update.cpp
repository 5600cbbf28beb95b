// SPDX-License-Identifier: MIT
#include <subfed/secure/masked_update.hpp>

#include <subfed/secure/masked_sum.hpp>
#include <subfed/tensors.hpp>
#include <support/checks.hpp>
#include <support/secure_rounds.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

using subfed::index_set;
using subfed::mask_key;
using subfed::mask_secrets;
using subfed::masked_update;
using subfed::row_labels;
using subfed::secure_participant;
using subfed::secure_round;
using subfed::submodel;
using subfed::tensor_view;
using support::chacha20;
using support::message_of;
using support::secrets_of;

namespace {

/// Five clients, each with all of 4000 parameters, or with a part of them.
struct masked_setting {
  subfed::model net;
  subfed::group_id g = net.group("g", 4000);
  subfed::tensor_id w = net.tensor("w", {g});
  std::vector<secure_participant> all;
  std::vector<float> ones = std::vector<float>(4000, 1);

  explicit masked_setting(std::int64_t step = 0) {
    for (std::uint64_t c = 0; c < 5; ++c) {
      const auto first = static_cast<std::int64_t>(c) * step;
      all.push_back({submodel(net, {index_set::window(4000, first, 4000 - first)}, {.client = c})});
    }
  }
  secure_round round() const {
    return secure_round(
        all, {.average = {.sums = subfed::fixed_point{.bound = 4, .clients = 5}}, .threshold = 3});
  }
  std::vector<std::uint64_t> upload(const secure_round& round, std::uint64_t c,
                                    const mask_secrets& secrets) const {
    const std::int64_t held = all[c].sub.extent(g);
    return masked_update<float>(round, c, {tensor_view<const float>(ones.data(), {held})}, secrets,
                                chacha20{});
  }
  std::string refusal(const mask_secrets& secrets) const {
    return message_of([&] { upload(round(), 2, secrets); });
  }
};

struct golden_word {
  std::uint64_t client;
  std::uint64_t word;
};
constexpr golden_word golden_uploads[] = {
#include <golden/secure_uploads.inc>
};

/// Chi-square of the bytes of words, with 255 degrees of freedom: 255 on average, deviation 22.6.
double chi_square(std::span<const std::uint64_t> words) {
  std::array<double, 256> counts{};
  for (const std::uint64_t w : words) {
    for (int shift = 0; shift < 64; shift += 8) counts[w >> shift & 0xFF] += 1;
  }
  const double expected = static_cast<double>(words.size()) / 32;
  double out = 0;
  for (const double c : counts) out += (c - expected) * (c - expected) / expected;
  return out;
}
bool looks_uniform(std::span<const std::uint64_t> words) {
  const double found = chi_square(words);
  return found > 255 - 6 * 22.6 && found < 255 + 6 * 22.6;
}

/// words - the masks of some keys over all elements.
std::vector<std::uint64_t> without(std::vector<std::uint64_t> words, const mask_key& key,
                                   bool was_added) {
  std::vector<std::uint64_t> mask(words.size());
  chacha20{}(key, 0, mask);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (was_added) {
      words[i] -= mask[i];
    } else {
      words[i] += mask[i];
    }
  }
  return words;
}

}  // namespace

TEST_CASE("uploads, golden values") {
  subfed::model net;
  const auto g = net.group("g", 4), h = net.group("h", 3), e = net.group("e", 2);
  net.tensor("w", {h, g});
  net.tensor("steps", {5}, subfed::role::counter);
  net.tensor("b", {h});
  net.tensor("v", {e});
  const std::vector<std::vector<std::int64_t>> labels{{0}, {0, 2}, {1, 2}, {0, 1, 2}, {}, {2}};
  std::vector<secure_participant> all;
  for (std::uint64_t c = 0; c < 6; ++c) {
    const auto nodes = c < 3 ? index_set::full(4) : index_set(4, {2, 1});
    all.push_back({submodel(net, {nodes, index_set::full(3), index_set::prefix(2, c < 2 ? 2 : 1)},
                            {.client = c})});
  }
  const secure_round round(all, {.average = {.sums = subfed::fixed_point{.clients = 8}},
                                 .threshold = 4,
                                 .private_rows = {h}});
  const auto filled = [](std::uint64_t with) {
    mask_key key;
    key.bytes.fill(static_cast<std::uint8_t>(with));
    return key;
  };
  std::size_t at = 0;
  for (std::uint64_t c = 0; c < 6; ++c) {
    std::vector<float> values(20);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) - 7) / 16;
    const std::int64_t columns = c < 3 ? 4 : 2;
    const subfed::tensor_views<const float> views{
        tensor_view<const float>(values.data(), {3, columns}),
        tensor_view<const float>(values.data(), {5}),
        tensor_view<const float>(values.data() + 3 * columns, {3}),
        tensor_view<const float>(values.data() + 3 * columns + 3, {c < 2 ? 2 : 1})};
    mask_secrets secrets{filled(c + 1), {}};
    for (std::uint64_t o = 0; o < 6; ++o) {
      if (o == c) continue;
      secrets.pairs.push_back({o, filled(100 + 10 * (std::min)(c, o) + (std::max)(c, o))});
    }
    const std::vector<row_labels> own{{h, index_set(3, labels[c])}};
    for (const std::uint64_t word :
         masked_update<float>(round, c, views, secrets, chacha20{}, own)) {
      REQUIRE(at < std::size(golden_uploads));
      CHECK(golden_uploads[at].client == c);
      CHECK(golden_uploads[at].word == word);
      ++at;
    }
  }
  CHECK(at == std::size(golden_uploads));
}

TEST_CASE(
    "an upload is random to whoever lacks one of its keys, and equal terms are all it hides") {
  const masked_setting setting;
  const secure_round round = setting.round();
  const auto upload = setting.upload(round, 2, secrets_of(round, 2));
  const auto term = static_cast<std::uint64_t>(
      std::ldexp(1.0, static_cast<int>(-round.options().average.sums->exponent())));
  CHECK(looks_uniform(upload));
  CHECK_FALSE(looks_uniform(std::vector<std::uint64_t>(4000, term)));

  // A curious server that has all pairwise keys, as of a client that dropped out and sends late, still
  // lacks the self mask.
  auto late = upload;
  for (const std::uint64_t other : {0u, 1u, 3u, 4u}) {
    late = without(late, support::pair_key(2, other), other > 2);
  }
  CHECK(looks_uniform(late));
  CHECK(without(late, support::self_key(2), true) == std::vector<std::uint64_t>(4000, term));

  // With the self mask and all pairwise keys but one, the pair's mask covers everything.
  for (const std::uint64_t kept : {0u, 1u, 3u, 4u}) {
    auto open = without(upload, support::self_key(2), true);
    for (const std::uint64_t other : {0u, 1u, 3u, 4u}) {
      if (other != kept) open = without(open, support::pair_key(2, other), other > 2);
    }
    CHECK(looks_uniform(open));
    CHECK(without(open, support::pair_key(2, kept), kept > 2) ==
          std::vector<std::uint64_t>(4000, term));
  }
}

TEST_CASE("the sum of two uploads hides both of them") {
  const masked_setting setting;
  const secure_round round = setting.round();
  const auto a = setting.upload(round, 0, secrets_of(round, 0));
  const auto b = setting.upload(round, 1, secrets_of(round, 1));
  std::vector<std::uint64_t> sum(a.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
  CHECK(looks_uniform(sum));
}

TEST_CASE("no two words of a round are hidden by one word of a stream") {
  // The same parameter in two uploads, and two parameters of one: differences are random too.
  const masked_setting setting(100);
  const secure_round round = setting.round();
  std::vector<std::vector<std::uint64_t>> uploads;
  for (std::uint64_t c = 0; c < 5; ++c) {
    uploads.push_back(setting.upload(round, c, secrets_of(round, c)));
  }
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) {
      for (const std::size_t shift : {0u, 1u, 100u}) {
        if (a == b && shift == 0) continue;
        std::vector<std::uint64_t> difference;
        for (std::size_t i = 0; i + shift < uploads[a].size() && i < uploads[b].size(); ++i) {
          difference.push_back(uploads[a][i + shift] - uploads[b][i]);
        }
        CHECK(looks_uniform(difference));
      }
    }
  }
}

TEST_CASE("all 256 bits of a key matter") {
  // Folded to 32 bits by exclusive or, these two are equal.
  const masked_setting setting;
  const secure_round round = setting.round();
  const mask_secrets usual = secrets_of(round, 2);
  std::vector<std::vector<std::uint64_t>> uploads;
  mask_key zeros_but_last;
  zeros_but_last.bytes[31] = 1;
  mask_key twice = zeros_but_last;
  twice.bytes[0] = twice.bytes[4] = 1;
  for (const mask_key& self : {zeros_but_last, twice}) {
    mask_secrets secrets = usual;
    secrets.self = self;
    uploads.push_back(setting.upload(round, 2, secrets));
  }
  std::vector<std::uint64_t> difference;
  for (std::size_t i = 0; i < 4000; ++i) difference.push_back(uploads[0][i] - uploads[1][i]);
  CHECK(looks_uniform(difference));
  for (std::size_t bit = 0; bit < 256; bit += 17) {
    mask_secrets secrets = usual;
    secrets.self.bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CHECK(setting.upload(round, 2, secrets)[0] != setting.upload(round, 2, usual)[0]);
  }
}

TEST_CASE("keys that are missing, zero, equal, there twice or of others are refused") {
  const masked_setting setting;
  const mask_secrets good = secrets_of(setting.round(), 2);
  CHECK(setting.refusal(good) == "nothing was thrown");
  mask_secrets bad = good;
  bad.self = {};
  CHECK(setting.refusal(bad) == "subfed: secure: the key of the self mask of client 2 is zero");
  bad = good;
  bad.pairs[0].key = {};
  CHECK(setting.refusal(bad) == "subfed: secure: the key of the pair of clients 2 and 4 is zero");
  bad = good;
  bad.pairs.pop_back();
  CHECK(setting.refusal(bad) == "subfed: secure: client 2 has no key for client 0");
  bad = good;
  bad.pairs.push_back({3, support::key_number(99)});
  CHECK(setting.refusal(bad) ==
        "subfed: secure: there is a second key of the pair of clients 2 and 3");
  bad = good;
  bad.pairs.push_back({2, support::key_number(99)});
  CHECK(setting.refusal(bad) ==
        "subfed: secure: there is a second key of the pair of clients 2 and 2");
  bad = good;
  bad.pairs.push_back({17, support::key_number(99)});
  CHECK(setting.refusal(bad) == "subfed: secure: client 17 does not take part in the round");
  bad = good;
  bad.pairs[0].key = bad.pairs[2].key;
  CHECK(setting.refusal(bad) == "subfed: secure: client 2 has one key twice");
  bad = good;
  bad.pairs[0].key = bad.self;
  CHECK(setting.refusal(bad) == "subfed: secure: client 2 has one key twice");
}

TEST_CASE("values that fixed point cannot have never leave the client") {
  masked_setting setting;
  const secure_round round = setting.round();
  const mask_secrets secrets = secrets_of(round, 0);
  for (const float x : {4.5f, -1e30f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    setting.ones[77] = x;
    const std::string found = message_of([&] { setting.upload(round, 0, secrets); });
    CHECK(found.starts_with("subfed: secure: client 0 "));
    CHECK(found.find("in tensor 'w', at global element (77,), beyond the bound") !=
          std::string::npos);
  }
  setting.ones[77] = 4;
  CHECK(setting.upload(round, 0, secrets).size() == 4000);

  subfed::secure_options clips = round.options();
  clips.average.sums->on_out_of_bound = subfed::out_of_bound::clip;
  const secure_round clipped(setting.all, clips);
  const auto expected = setting.upload(clipped, 0, secrets);
  setting.ones[77] = 1000;
  CHECK(setting.upload(clipped, 0, secrets) == expected);
  setting.ones[77] = std::numeric_limits<float>::quiet_NaN();
  CHECK(message_of([&] { setting.upload(clipped, 0, secrets); }) != "nothing was thrown");
}

TEST_CASE("what is not floating point is not sent, or refused") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g});
  const auto steps = net.tensor("steps", {1}, subfed::role::counter);
  net.tensor("own", {g}, subfed::role::local);
  const auto round_of = [&] {
    std::vector<secure_participant> all;
    for (std::uint64_t c = 0; c < 3; ++c) {
      all.push_back({submodel(net, {index_set::full(3)}, {.client = c})});
    }
    return secure_round(
        all, {.average = {.sums = subfed::fixed_point{.bound = 4, .clients = 3}}, .threshold = 2});
  };
  const float w[3] = {1, 2, 3};
  const std::int64_t step[1] = {7};
  const subfed::tensor_views<const void> views{tensor_view<const float>(w, {3}),
                                               tensor_view<const std::int64_t>(step, {1}),
                                               tensor_view<const float>(w, {0})};
  const secure_round round = round_of();
  CHECK(masked_update<void>(round, 1, views, secrets_of(round, 1), chacha20{}).size() == 3);
  CHECK(subfed::upload_words(round, 1) == 3);
  net.mark(steps, subfed::role::parameter);
  const secure_round integers = round_of();
  CHECK(message_of([&] {
          masked_update<void>(integers, 1, views, secrets_of(integers, 1), chacha20{});
        }) ==
        "subfed: secure: tensor 'steps' has integers, which are not summed behind masks; mark it "
        "role::counter or role::local");
}

TEST_CASE("wrong shapes and labels are refused") {
  masked_setting setting;
  const secure_round round = setting.round();
  const float x[3] = {};
  CHECK(message_of([&] {
          masked_update<float>(round, 0, {tensor_view<const float>(x, {3})}, secrets_of(round, 0),
                               chacha20{});
        }).find("tensor 'w'") != std::string::npos);
  CHECK(message_of([&] {
          masked_update<float>(round, 9, {tensor_view<const float>(x, {3})}, secrets_of(round, 0),
                               chacha20{});
        }) == "subfed: secure: client 9 does not take part in the round");
  const auto refusal = [&](std::vector<subfed::group_id> rows, std::vector<row_labels> labels) {
    subfed::secure_options options = round.options();
    options.private_rows = std::move(rows);
    const secure_round own(setting.all, options);
    return message_of([&] {
      masked_update<float>(own, 0, {tensor_view<const float>(setting.ones.data(), {4000})},
                           secrets_of(own, 0), chacha20{}, labels);
    });
  };
  const index_set some(4000, {1, 5});
  CHECK(refusal({}, {{setting.g, some}}) ==
        "subfed: secure: labels are given for group 'g', whose rows are not private");
  CHECK(refusal({setting.g}, {}) ==
        "subfed: secure: client 0 gives no labels for group 'g', whose rows are private");
  CHECK(refusal({setting.g}, {{setting.g, some}, {setting.g, some}}) ==
        "subfed: secure: labels are given twice for group 'g'");
  CHECK(refusal({setting.g}, {{setting.g, some}}) == "nothing was thrown");
}

TEST_CASE("rows without data are hidden as well as those with it") {
  masked_setting setting;
  subfed::secure_options options = setting.round().options();
  options.private_rows = {setting.g};
  const secure_round round(setting.all, options);
  const std::vector<row_labels> labels{{setting.g, index_set::window(4000, 0, 2000)}};
  const auto words =
      masked_update<float>(round, 1, {tensor_view<const float>(setting.ones.data(), {4000})},
                           secrets_of(round, 1), chacha20{}, labels);
  REQUIRE(words.size() == 8000);
  // Client 1 and all others are of one class, whose rows follow the elements in the streams.
  const auto without_self_mask = without(words, support::self_key(1), true);
  for (const std::size_t begin : {0u, 2000u, 4000u, 6000u}) {
    CHECK(looks_uniform(std::span(words).subspan(begin, 2000)));
    CHECK(looks_uniform(std::span(without_self_mask).subspan(begin, 2000)));
  }
}
