// SPDX-License-Identifier: MIT
#include <subfed/secure/masked_sum.hpp>

#include <subfed/messages/partial_average.hpp>
#include <subfed/secure/masked_update.hpp>
#include <subfed/tensors.hpp>
#include <support/average_properties.hpp>
#include <support/secure_rounds.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using subfed::fixed_point;
using subfed::index_set;
using subfed::masked_sum;
using subfed::masked_update;
using subfed::row_labels;
using subfed::secure_options;
using subfed::secure_participant;
using subfed::secure_round;
using subfed::selective_average;
using subfed::submodel;
using subfed::survivor_list;
using subfed::tensor_view;
using subfed::tensor_views;
using support::chacha20;
using support::message_of;
using support::pair_key;
using support::secrets_of;
using support::seeded;
using support::self_key;

namespace {

constexpr fixed_point sums_for_tests{.bound = 16, .clients = 64};

/// One group of four nodes; `copies` clients each hold {0, 1, 2, 3}, {0, 1} and {0}.
struct nested_clients {
  subfed::model net;
  subfed::group_id g = net.group("g", 4);
  subfed::tensor_id w = net.tensor("w", {g});
  std::vector<secure_participant> all;
  std::vector<std::vector<float>> values;

  explicit nested_clients(std::uint64_t copies) {
    for (std::uint64_t c = 0; c < 3 * copies; ++c) {
      const std::vector<std::vector<float>> own{{10, 20, 30, 40}, {1, 2}, {5}};
      values.push_back(own[c % 3]);
      const auto held = static_cast<std::int64_t>(values.back().size());
      all.push_back({submodel(net, {index_set::prefix(4, held)}, {.client = 100 + c})});
    }
  }
  secure_round round(secure_options options = {}) const {
    options.average.sums = fixed_point{.bound = 64, .clients = 64};
    if (options.threshold == 0) options.threshold = static_cast<std::int64_t>(all.size()) / 2 + 1;
    return secure_round(all, options);
  }
  std::vector<std::uint64_t> upload(const secure_round& round, std::size_t c) const {
    const auto held = static_cast<std::int64_t>(values[c].size());
    return masked_update<float>(round, 100 + c,
                                {tensor_view<const float>(values[c].data(), {held})},
                                secrets_of(round, 100 + c), chacha20{});
  }
};

double masked_value(seeded& random) {
  const auto exponent = static_cast<int>(random.between(-30, 1));
  return std::ldexp(static_cast<double>(random.between(-1000003, 1000003)) / 1000003, exponent);
}

/// What a round without masks gives: the updates of the survivors, added one by one.
template <class T>
selective_average<T> plain_average(const subfed::model& net, const subfed::average_options& options,
                                   const std::vector<subfed::update<T>>& updates,
                                   const std::vector<std::uint64_t>& survivors) {
  selective_average<T> out(net, options);
  for (std::size_t i = updates.size(); i-- > 0;) {  // in another order
    const auto& u = updates[i];
    if (!std::binary_search(survivors.begin(), survivors.end(), u.sub.origin().client)) continue;
    out.add(u.sub, u.tensors, u.weight);
  }
  return out;
}

}  // namespace

TEST_CASE("of three nested clients each sends what others have too") {
  const nested_clients clients(1);
  const secure_round round = clients.round();
  masked_sum sum(round);
  for (std::size_t c = 0; c < 3; ++c) {
    const auto words = clients.upload(round, c);
    CHECK(words.size() == 1);  // node 0 alone has three holders
    sum.add(100 + c, words);
  }
  support::remove_masks(sum, sum.close());
  std::vector<float> global{-1, -2, -3, -4};
  const auto report = sum.open<float>().finish({tensor_view<float>(global.data(), {4})});
  CHECK(global == std::vector<float>{16.f / 3, -2, -3, -4});
  CHECK(report.held == 1);
  CHECK(report.unheld == 3);
}

TEST_CASE("uploads have the size of the submodels where all of them is summed") {
  const nested_clients clients(3);
  const secure_round round = clients.round();
  masked_sum sum(round);
  for (std::size_t c = 0; c < 9; ++c) {
    const auto words = clients.upload(round, c);
    CHECK(words.size() == clients.values[c].size());
    sum.add(100 + c, words);
  }
  support::remove_masks(sum, sum.close());
  std::vector<float> global(4);
  sum.open<float>().finish({tensor_view<float>(global.data(), {4})});
  CHECK(global == std::vector<float>{48.f / 9, 66.f / 6, 30, 40});  // 3 x 16, 22, 30, 40
}

TEST_CASE_TEMPLATE("the sum has the bits of the fixed-point average of the survivors", T, float,
                   double, subfed::half) {
  int whole = 0, partly = 0, refused = 0;
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("number ", n);
    seeded random(n);
    const support::cohort<T> group{
        random, support::random_network(random), random.between(3, 12),
        [](seeded& r) { return T(masked_value(r)); },
        [](seeded& r) { return static_cast<double>(r.between(1, 99)) / 50; }};
    const auto updates = group.updates();
    secure_options options{.average = {.sums = sums_for_tests}};
    if (n % 2 == 0) options.average.round = 0;
    if (n % 3 == 0) options.average.content = subfed::content::deltas;
    options.threshold = static_cast<std::int64_t>(updates.size()) / 2 + 1;
    options.expected_dropouts = static_cast<std::int64_t>(n % 3);
    const secure_round round(support::participants_of(updates), options);
    masked_sum sum(round);
    for (const auto& u : updates) {
      const std::uint64_t client = u.sub.origin().client;
      if (n % 4 != 0 && random.one_in(5)) continue;  // drops out after keys were agreed on
      sum.add(client, masked_update<T>(round, client, tensor_views<const T>(u.tensors),
                                       secrets_of(round, client), chacha20{}));
    }
    survivor_list list;
    const std::string refusal = message_of([&] { list = sum.close(); });
    if (refusal != "nothing was thrown") {  // too few have survived
      ++refused;
      continue;
    }
    support::remove_masks(sum, list);
    const auto secure = sum.open<T>();
    const auto plain = plain_average<T>(group.net, options.average, updates, list.survivors);
    if (round.released() == subfed::held_elements(group.net, [&] {
          std::vector<submodel> subs;
          for (const auto& u : updates) subs.push_back(u.sub);
          return subs;
        }())) {
      ++whole;
      CHECK(secure.report() == plain.report());
      CHECK(secure.held() == plain.held());
    } else {
      ++partly;
    }
    support::cohort<T> one = group, two = group;
    secure.finish(tensor_views<T>(one.global_views()));
    plain.finish(tensor_views<T>(two.global_views()));
    for (std::size_t t = 0; t < group.globals.size(); ++t) {
      const auto found = one.globals[t].elements(), expected = two.globals[t].elements(),
                 before = group.globals[t].elements();
      for (std::size_t i = 0; i < found.size(); ++i) {
        const bool is_released =
            round.released().test(subfed::tensor_id(t), static_cast<std::int64_t>(i));
        const T wanted = is_released ? expected[i] : before[i];
        CHECK(support::same_bits(std::vector<T>{found[i]}, std::vector<T>{wanted}));
      }
    }
  }
  CHECK(whole > 3);
  CHECK(partly > 10);
  CHECK(refused > 3);
}

TEST_CASE("an opened sum is an average as any other: written, it has the same bytes") {
  const nested_clients clients(3);
  const secure_round round = clients.round();
  masked_sum sum(round);
  selective_average<float> plain(clients.net, round.options().average);
  for (std::size_t c = 0; c < 9; ++c) {
    const auto held = static_cast<std::int64_t>(clients.values[c].size());
    sum.add(100 + c, clients.upload(round, c));
    plain.add(clients.all[c].sub, {tensor_view<const float>(clients.values[c].data(), {held})});
  }
  support::remove_masks(sum, sum.close());
  CHECK(write_partial_average(sum.open<float>()) == write_partial_average(plain));
}

TEST_CASE("private rows: the bits of an average to which each client adds its labels alone") {
  int compared = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    INFO("number ", n);
    seeded random(n);
    subfed::model net;
    const auto hidden = net.group("hidden", 6);
    const auto classes = net.group("classes", 5, subfed::cut::never);
    net.tensor("fc1.weight", {hidden, 3});
    net.tensor("fc2.weight", {classes, hidden.block(2)});
    net.tensor("fc2.bias", {classes});
    const auto marks = net.group("marks", 3, subfed::cut::never);
    net.tensor("marks.scale", {marks});
    secure_options options{.average = {.sums = sums_for_tests}, .private_rows = {classes, marks}};
    struct labelled {
      submodel sub;
      index_set labels, marks;
      std::vector<std::vector<float>> values;
      std::vector<tensor_view<const float>> views;
      double weight;
    };
    std::vector<labelled> clients;
    std::vector<secure_participant> participants;
    for (std::uint64_t c = 0; c < 11; ++c) {
      const std::int64_t width = c == 10 ? 1 : c % 2 == 0 ? 6 : 3;  // 10 has columns of its own
      const submodel sub(net, {index_set::prefix(6, width), index_set::full(5), index_set::full(3)},
                         {.client = c});
      std::vector<std::int64_t> labels;
      for (std::int64_t l = 0; l < 4; ++l) {
        if (random.one_in(2)) labels.push_back(l);  // nobody has label 4
      }
      clients.push_back({sub,
                         index_set(5, labels),
                         index_set(3, {static_cast<std::int64_t>(c) % 3}),
                         {},
                         {},
                         1 + static_cast<double>(c % 3)});
      for (std::size_t t = 0; t < 4; ++t) {
        const auto shape = sub.extents(subfed::tensor_id(t));
        std::vector<float> values(static_cast<std::size_t>(support::elements_of(shape)));
        for (float& x : values) x = static_cast<float>(masked_value(random));
        clients.back().values.push_back(std::move(values));
      }
      for (std::size_t t = 0; t < 4; ++t) {
        clients.back().views.emplace_back(clients.back().values[t].data(),
                                          sub.extents(subfed::tensor_id(t)));
      }
      participants.push_back({sub, clients.back().weight});
    }
    options.threshold = 6;
    const secure_round round(participants, options);
    masked_sum sum(round);
    selective_average<float> plain(net, options.average), rest(net, options.average);
    for (std::uint64_t c = 0; c < 11; ++c) {
      if (n % 2 == 1 && random.one_in(6)) continue;
      const labelled& own = clients[c];
      const std::vector<row_labels> labels{{marks, own.marks}, {classes, own.labels}};
      const auto words = masked_update<float>(round, c, tensor_views<const float>(own.views),
                                              secrets_of(round, c), chacha20{}, labels);
      const auto elements = static_cast<std::size_t>(own.sub.size());
      // One word a row; client 10's class is too small, and it sends no rows at all.
      CHECK(words.size() == (c == 10 ? 3 : elements + 5 + 3));
      sum.add(c, words);
      plain.add(own.sub.restricted(classes, c == 10 ? index_set(5, {}) : own.labels)
                    .restricted(marks, c == 10 ? index_set(3, {}) : own.marks),
                tensor_views<const float>(own.views), own.weight);
    }
    survivor_list list;
    if (message_of([&] { list = sum.close(); }) != "nothing was thrown") continue;
    ++compared;
    support::remove_masks(sum, list);
    subfed::tensors<float> one(net), two(net);
    std::fill(one.elements().begin(), one.elements().end(), 7.f);
    std::fill(two.elements().begin(), two.elements().end(), 7.f);
    const auto found = sum.open<float>().finish(one);
    const auto expected = plain.finish(two);
    CHECK(found.held == expected.held);
    CHECK(std::equal(one.elements().begin(), one.elements().end(), two.elements().begin()));
  }
  CHECK(compared > 25);
}

TEST_CASE(
    "rows that few have data of are found by a round of their own, and then left out by all") {
  subfed::model counted;
  const auto rows = counted.group("classes", 4, subfed::cut::never);
  counted.tensor("has", {rows});
  const std::vector<std::vector<std::int64_t>> labels{{0, 1}, {0}, {0, 1}, {1, 2}, {0, 2}};
  std::vector<secure_participant> all;
  for (std::uint64_t c = 0; c < 5; ++c) {
    all.push_back({submodel(counted, {index_set::full(4)}, {.client = c})});
  }
  const secure_round first(all, {.average = {.sums = fixed_point{.clients = 5}}, .threshold = 3});
  masked_sum sum(first);
  for (std::uint64_t c = 0; c < 5; ++c) {
    float has[4] = {};
    for (const std::int64_t l : labels[c]) has[l] = 1;
    sum.add(c, masked_update<float>(first, c, {tensor_view<const float>(has, {4})},
                                    secrets_of(first, c), chacha20{}));
  }
  support::remove_masks(sum, sum.close());
  float share[4] = {};  // of the five clients
  sum.open<float>().finish({tensor_view<float>(share, {4})});
  std::vector<std::int64_t> open;
  for (std::int64_t row = 0; row < 4; ++row) {
    if (share[row] * 5 > 2.5f) open.push_back(row);
  }
  CHECK(open == std::vector<std::int64_t>{0, 1});

  subfed::model net;
  const auto classes = net.group("classes", 4, subfed::cut::never);
  net.tensor("fc", {classes, 3});
  all.clear();
  for (std::uint64_t c = 0; c < 5; ++c) {
    const submodel sub(net, {index_set::full(4)}, {.client = c});
    all.push_back({sub.restricted(classes, index_set(4, open))});
  }
  const secure_round second(all, {.average = {.sums = fixed_point{.bound = 4, .clients = 5}},
                                  .threshold = 3,
                                  .private_rows = {classes}});
  masked_sum values(second);
  const std::vector<float> twos(12, 2);
  for (std::uint64_t c = 0; c < 5; ++c) {
    const std::vector<row_labels> own{{classes, index_set(4, labels[c])}};
    const auto words =
        masked_update<float>(second, c, {tensor_view<const float>(twos.data(), {4, 3})},
                             secrets_of(second, c), chacha20{}, own);
    CHECK(words.size() == 2 * 3 + 2);
    CHECK(subfed::upload_words(second, c) == words.size());
    values.add(c, words);
  }
  support::remove_masks(values, values.close());
  std::vector<float> global(12, 7);
  values.open<float>().finish({tensor_view<float>(global.data(), {4, 3})});
  CHECK(global == std::vector<float>{2, 2, 2, 2, 2, 2, 7, 7, 7, 7, 7, 7});
}

TEST_CASE("private rows that are concatenated with others leave the weights of those alone") {
  subfed::model net;
  const auto classes = net.group("classes", 3, subfed::cut::never);
  const auto boxes = net.group("boxes", 2);
  net.tensor("head", {subfed::concat({1, classes.block(2), boxes}), 2});
  std::vector<secure_participant> all;
  for (std::uint64_t c = 0; c < 3; ++c) {
    all.push_back({submodel(net, {index_set::full(3), index_set::full(2)}, {.client = c})});
  }
  const secure_round round(all, {.average = {.sums = fixed_point{.bound = 4, .clients = 3}},
                                 .threshold = 2,
                                 .private_rows = {classes}});
  const std::vector<std::int64_t> labels[] = {{0, 1}, {0}, {0, 1}};
  masked_sum sum(round);
  const std::vector<float> twos(18, 2);
  for (std::uint64_t c = 0; c < 3; ++c) {
    const std::vector<row_labels> own{{classes, index_set(3, labels[c])}};
    sum.add(c, masked_update<float>(round, c, {tensor_view<const float>(twos.data(), {9, 2})},
                                    secrets_of(round, c), chacha20{}, own));
  }
  support::remove_masks(sum, sum.close());
  std::vector<float> global(18, 7);
  sum.open<float>().finish({tensor_view<float>(global.data(), {9, 2})});
  std::vector<float> expected(18, 2);
  std::fill_n(expected.begin() + 10, 4, 7.f);  // nobody has label 2
  CHECK(global == expected);
}

TEST_CASE("what does not belong into a sum is refused, and the sum is as before") {
  const nested_clients clients(3);
  const secure_round round = clients.round();
  masked_sum sum(round);
  const auto words = clients.upload(round, 0);
  CHECK(message_of([&] { sum.add(7, words); }) ==
        "subfed: secure: client 7 does not take part in the round");
  CHECK(message_of([&] { sum.add(101, words); }) ==
        "subfed: secure: client 101 has sent 4 words, expected 2");
  CHECK(message_of([&] { sum.add(100, std::span(words).subspan(1)); }) ==
        "subfed: secure: client 100 has sent 3 words, expected 4");
  CHECK(message_of([&] { sum.remove_self_mask(100, self_key(100), chacha20{}); }) ==
        "subfed: secure: the survivors are not fixed yet");
  CHECK(message_of([&] { sum.open<float>(); }) ==
        "subfed: secure: the survivors are not fixed yet");
  CHECK(message_of([&] { sum.close(); }) ==
        "subfed: secure: 0 clients survive, expected at least 5");
  for (std::size_t c = 0; c < 9; ++c) {
    if (c != 1 && c != 5) sum.add(100 + c, clients.upload(round, c));
  }
  CHECK(message_of([&] { sum.add(100, words); }) ==
        "subfed: secure: client 100 has sent an upload already");
  const survivor_list list = sum.close();
  CHECK(list.dropped == std::vector<std::uint64_t>{101, 105});
  CHECK(sum.close() == list);
  CHECK(sum.survivors() == list.survivors);
  CHECK(message_of([&] { sum.add(101, clients.upload(round, 1)); }) ==
        "subfed: secure: client 101 is late: the survivors are fixed");
  CHECK(message_of([&] { sum.remove_self_mask(101, self_key(101), chacha20{}); }) ==
        "subfed: secure: client 101 has dropped out: its self mask stays closed");
  CHECK(message_of([&] { sum.remove_pairwise_mask(100, 102, pair_key(100, 102), chacha20{}); }) ==
        "subfed: secure: client 100 has survived: its pairwise masks stay closed");
  CHECK(message_of([&] { sum.remove_pairwise_mask(101, 105, pair_key(101, 105), chacha20{}); }) ==
        "subfed: secure: client 105 has dropped out: it has added no mask");
  CHECK(message_of([&] { sum.remove_self_mask(100, {}, chacha20{}); }) ==
        "subfed: secure: the key of the self mask of client 100 is zero");
  CHECK(message_of([&] { sum.remove_pairwise_mask(101, 100, {}, chacha20{}); }) ==
        "subfed: secure: the key of the pair of clients 100 and 101 is zero");
  CHECK(message_of([&] { sum.open<float>(); }) ==
        "subfed: secure: client 100's self mask has not been removed");
  for (const std::uint64_t s : list.survivors) sum.remove_self_mask(s, self_key(s), chacha20{});
  CHECK(message_of([&] { sum.remove_self_mask(100, self_key(100), chacha20{}); }) ==
        "subfed: secure: client 100's self mask has been removed already");
  for (const std::uint64_t d : list.dropped) {
    CHECK(message_of([&] { sum.open<float>(); }) ==
          "subfed: secure: the mask of the pair of clients 100 and " + std::to_string(d) +
              " has not been removed");
    for (const std::uint64_t s : list.survivors) {
      sum.remove_pairwise_mask(d, s, pair_key(d, s), chacha20{});
    }
  }
  CHECK(message_of([&] { sum.remove_pairwise_mask(101, 100, pair_key(101, 100), chacha20{}); }) ==
        "subfed: secure: the mask of the pair of clients 100 and 101 has been removed already");
  std::vector<float> global(4);
  sum.open<float>().finish({tensor_view<float>(global.data(), {4})});
  CHECK(global == std::vector<float>{42.f / 7, 64.f / 5, 30, 40});
}

TEST_CASE("a mask that is left opens nothing") {
  // A wrong key leaves 64 random bits in each of the elements. Half of them look possible here, none of
  // sixteen do.
  subfed::model net;
  const auto g = net.group("g", 16);
  net.tensor("w", {g});
  std::vector<secure_participant> all;
  for (std::uint64_t c = 0; c < 4; ++c)
    all.push_back({submodel(net, {index_set::full(16)}, {.client = c})});
  const secure_round round(all, {.average = {.sums = sums_for_tests}, .threshold = 3});
  const std::vector<float> values(16, 1);
  const tensor_view<const float> view(values.data(), {16});
  masked_sum sum(round);
  for (std::uint64_t c = 0; c < 3; ++c) {
    sum.add(c, masked_update<float>(round, c, {view}, secrets_of(round, c), chacha20{}));
  }
  const survivor_list list = sum.close();
  masked_sum other = sum;
  auto key = self_key(1);
  key.bytes[31] ^= 0x80;
  for (const std::uint64_t s : list.survivors) {
    sum.remove_self_mask(s, s == 1 ? key : self_key(s), chacha20{});
    sum.remove_pairwise_mask(3, s, pair_key(3, s), chacha20{});
  }
  const std::string found = message_of([&] { sum.open<float>(); });
  CHECK(found.find("subfed: secure: the sum of tensor 'w' at global element (") == 0);
  CHECK(found.find("a key is wrong, or an update is") != std::string::npos);
  support::remove_masks(other, list);
  std::vector<float> global(16);
  other.open<float>().finish({tensor_view<float>(global.data(), {16})});
  CHECK(global == values);
}
