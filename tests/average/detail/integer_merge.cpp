// SPDX-License-Identifier: MIT
#include <subfed/average/detail/integer_merge.hpp>

#include <subfed/subfed.hpp>

#include <support/checks.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace integers {

using subfed::average_options;
using subfed::average_report;
using subfed::content;
using subfed::integer_rule;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;

constexpr std::initializer_list<std::int64_t> scalar{};

/// A table of 8 x 8 floats that random halves of its rows and columns are cut from, so that weights are
/// kept for every element after a few clients, beside one number and one for each row.
struct table {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 8), columns = net.group("columns", 8);
  subfed::tensor_id weights = net.tensor("weights", {rows, columns});
  subfed::tensor_id number =
      net.tensor("number", std::initializer_list<subfed::dimension>{}, subfed::role::counter);
  subfed::tensor_id marks = net.tensor("marks", {rows}, subfed::role::counter);

  subfed::submodel part(std::uint64_t client) const {
    return subfed::draw(net, subfed::random_subset{},
                        {.seed = 5, .client = client, .capacity = 0.5});
  }
};

/// What a client sends, of integers of type D; marks lie backwards.
template <class D>
struct sent {
  sent(const table& t, std::uint64_t client, D number_is, double weighs = 1)
      : sub(t.part(client)), number{number_is}, weight(weighs) {
    for (int i = 0; i < 4; ++i) marks[i] = static_cast<D>(number_is + static_cast<D>(i % 2));
  }
  subfed::update<void> update() const {
    return {sub,
            {tensor_view<const float>(values.data(), {4, 4}), tensor_view<const D>(number, scalar),
             tensor_view<const D>(marks + 3, {4}, {-1})},
            weight};
  }
  subfed::submodel sub;
  D number[1];
  D marks[4];
  std::vector<float> values = std::vector<float>(16, 1.0f);
  double weight;
};

template <class D>
std::vector<subfed::update<void>> updates_of(const std::vector<sent<D>>& clients) {
  std::vector<subfed::update<void>> out;
  for (const auto& c : clients) out.push_back(c.update());
  return out;
}

enum class form { at_once, one_by_one, shards };

average_report averaged(form how, const subfed::model& net,
                        const std::vector<subfed::update<void>>& updates,
                        const tensor_views<void>& globals, const average_options& options,
                        subfed::held_elements& held) {
  if (how == form::at_once) {
    return subfed::average_cohort<void>(net, updates, globals, held, options);
  }
  const std::size_t shards = how == form::shards ? 3 : 1;
  std::vector<subfed::selective_average<void>> parts(shards,
                                                     subfed::selective_average<void>(net, options));
  for (std::size_t u = 0; u < updates.size(); ++u) {
    parts[u % shards].add(updates[u].sub, updates[u].tensors, updates[u].weight);
  }
  for (std::size_t s = 1; s < shards; ++s) parts[0].merge(parts[s]);
  held = parts[0].held();
  return parts[0].finish(globals);
}

/// Deltas of type D for globals of type G, against a loop.
template <class G, class D>
void check_deltas(integer_rule rule, form how, std::uint64_t clients, std::int64_t old,
                  std::int64_t delta) {
  const table t;
  std::vector<sent<D>> sends;
  for (std::uint64_t c = 0; c < clients; ++c) {
    const std::int64_t own = c % 3 == 0 ? delta : delta / 2;
    sends.emplace_back(t, c, static_cast<D>(own), c % 5 == 4 ? 0.0 : 0.25 + static_cast<double>(c));
  }
  struct element {
    std::int64_t value = 0;
    bool held = false;
  };
  std::vector<element> expected(9);  // the number, then the marks
  const auto take = [&](element& own, std::int64_t x) {
    own.value = !own.held                   ? x
                : rule == integer_rule::sum ? own.value + x
                                            : (std::max)(own.value, x);
    own.held = true;
  };
  for (const auto& s : sends) {
    if (s.weight == 0) continue;
    take(expected[0], static_cast<std::int64_t>(s.number[0]));
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto node = static_cast<std::size_t>(s.sub[t.rows][i]);
      take(expected[node + 1], static_cast<std::int64_t>(s.marks[3 - i]));
    }
  }
  std::vector<float> weights(64, 10.0f);
  std::vector<G> globals(9, static_cast<G>(old));
  subfed::held_elements held;
  const auto report =
      averaged(how, t.net, updates_of(sends),
               {tensor_view<float>(weights.data(), {8, 8}), tensor_view<G>(globals.data(), scalar),
                tensor_view<G>(globals.data() + 8, {8}, {-1})},
               {.divide_by = subfed::divisor::cohort,
                .content = content::deltas,
                .step = 0.5,
                .integers = rule},
               held);
  INFO("clients ", clients, ", form ", static_cast<int>(how), ", rule ", static_cast<int>(rule));
  std::int64_t held_numbers = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const bool takes = expected[i].held && rule != integer_rule::keep;
    held_numbers += takes ? 1 : 0;
    const std::int64_t is = static_cast<std::int64_t>(globals[i == 0 ? 0 : 9 - i]);
    CHECK(is == old + (takes ? expected[i].value : 0));
    const auto at = static_cast<std::int64_t>(i);
    CHECK(held.test(i == 0 ? t.number : t.marks, i == 0 ? 0 : at - 1) == takes);
  }
  CHECK(report.kept == (rule == integer_rule::keep ? 9 : 0));
  CHECK(report.held == held.count(t.weights) + held_numbers);
  CHECK(report.held + report.unheld + report.kept == 73);
}

constexpr form forms[] = {form::at_once, form::one_by_one, form::shards};

const std::string nothing = "nothing was thrown";

/// One number, and its deltas. Returns the error's message.
template <class G, class D>
std::string outcome(form how, G& global, std::vector<D> deltas, integer_rule rule) {
  subfed::model net;
  net.tensor("steps", std::initializer_list<subfed::dimension>{}, subfed::role::counter);
  net.tensor("bias", {1});
  const float one = 1;
  float bias = 5;
  std::vector<subfed::update<void>> updates;
  for (const D& d : deltas) {
    updates.push_back({subfed::submodel::full(net),
                       {tensor_view<const D>(&d, scalar), tensor_view<const float>(&one, {1})}});
  }
  subfed::held_elements held;
  const std::string message = message_of([&] {
    averaged(how, net, updates, {tensor_view<G>(&global, scalar), tensor_view<float>(&bias, {1})},
             {.content = content::deltas, .integers = rule}, held);
  });
  CHECK(bias == (message == nothing ? 6 : 5));
  return message;
}

}  // namespace integers

}  // namespace

TEST_CASE("deltas of integers are added to the old value: their sum, or the largest") {
  using namespace integers;
  for (const form how : forms) {
    struct row {
      integer_rule rule;
      std::vector<std::int64_t> deltas;
      std::int64_t expected;
    };
    for (const row& r : {row{integer_rule::sum, {3, 5}, 108}, row{integer_rule::max, {3, 5}, 105},
                         row{integer_rule::max, {3}, 103}, row{integer_rule::keep, {3, 5}, 100},
                         row{integer_rule::max, {-3, -5}, 97}, row{integer_rule::sum, {}, 100}}) {
      std::int64_t global = 100;
      if (r.deltas.empty()) {
        subfed::model net;
        net.tensor("steps", std::initializer_list<subfed::dimension>{});
        subfed::held_elements held;
        averaged(how, net, {}, {tensor_view<std::int64_t>(&global, scalar)},
                 {.content = content::deltas, .integers = r.rule}, held);
      } else {
        CHECK(outcome(how, global, r.deltas, r.rule) == nothing);
      }
      CHECK(global == r.expected);
    }
  }
}

TEST_CASE("deltas of integers of any type follow the rule, beside dense weights and in shards") {
  using namespace integers;
  const table t;
  subfed::selective_average<void> dense(t.net);
  for (std::uint64_t c = 0; c < 12; ++c) {
    const sent<std::int8_t> s(t, c, 1);
    dense.add(s.sub, s.update().tensors);
  }
  REQUIRE(dense.has_dense_weights());
  for (const integer_rule rule : {integer_rule::keep, integer_rule::max, integer_rule::sum}) {
    for (const form how : forms) {
      for (const std::uint64_t clients : {0u, 1u, 2u, 12u}) {
        check_deltas<std::int64_t, std::int64_t>(rule, how, clients, 100, -7);
        check_deltas<std::int8_t, std::int8_t>(rule, how, clients, -20, 4);
        check_deltas<std::uint8_t, std::int8_t>(rule, how, clients, 100, -7);
        check_deltas<std::uint64_t, std::int32_t>(rule, how, clients, 100, -7);
        check_deltas<std::int16_t, std::uint32_t>(rule, how, clients, -100, 9);
      }
    }
  }
}

TEST_CASE("an integer that would not fit with its deltas is refused before anything is written") {
  using namespace integers;
  for (const form how : forms) {
    for (const integer_rule rule : {integer_rule::max, integer_rule::sum}) {
      std::int8_t small = 100;
      CHECK(outcome(how, small, std::vector<std::int8_t>{28}, rule) ==
            "subfed: average: with its deltas an element of tensor 'steps' does not fit its type, "
            "which holds -128 to 127");
      CHECK(small == 100);
      CHECK(outcome(how, small, std::vector<std::int8_t>{27}, rule) == nothing);
      CHECK(small == 127);
      std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
      CHECK(outcome(how, most, std::vector<std::uint64_t>{1}, rule) ==
            "subfed: average: with its deltas an element of tensor 'steps' does not fit its type, "
            "which holds 0 to 18446744073709551615");
      CHECK(outcome(how, most, std::vector<std::int64_t>{-1}, rule) == nothing);
      CHECK(most == std::numeric_limits<std::uint64_t>::max() - 1);
      std::uint16_t least = 2;
      CHECK(outcome(how, least, std::vector<std::int64_t>{-3}, rule) != nothing);
      CHECK(least == 2);
      std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
      CHECK(outcome(how, lowest, std::vector<std::int64_t>{-1}, rule) != nothing);
      CHECK(outcome(how, lowest, std::vector<std::int64_t>{0}, rule) == nothing);
    }
    // The sum fits though no delta alone would, and the deltas together are over 2^64.
    std::int64_t global = -7;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    CHECK(outcome(how, global, std::vector<std::int64_t>{least, least, least, most, most, most, 3},
                  integer_rule::sum) == nothing);
    CHECK(global == -7);
  }
}

TEST_CASE("the error about an integer that does not fit names its tensor") {
  using namespace integers;
  subfed::model net;
  net.tensor("steps", std::initializer_list<subfed::dimension>{});
  for (const content what : {content::parameters, content::deltas}) {
    std::int8_t global = 100;
    const std::int8_t own = 90;
    const subfed::update<void> u{subfed::submodel::full(net),
                                 {tensor_view<const std::int8_t>(&own, scalar)}};
    try {
      subfed::average_cohort<void>(net, std::vector{u, u},
                                   {tensor_view<std::int8_t>(&global, scalar)},
                                   {.content = what, .integers = integer_rule::sum});
      FAIL("not refused");
    } catch (const subfed::error& e) {
      CHECK(e.tensor() == "steps");
    }
    CHECK(global == 100);
  }
}

TEST_CASE(
    "a flag takes deltas of signed integers, and refuses what makes it neither true nor false") {
  using namespace integers;
  for (const form how : forms) {
    bool flag = true;
    CHECK(outcome(how, flag, std::vector<std::int8_t>{-1}, integer_rule::sum) == nothing);
    CHECK_FALSE(flag);
    CHECK(outcome(how, flag, std::vector<std::int8_t>{1, 0}, integer_rule::max) == nothing);
    CHECK(flag);
    CHECK(outcome(how, flag, std::vector<std::int8_t>{1}, integer_rule::max) != nothing);
    CHECK(flag);
  }
}

TEST_CASE("types of integers differ between deltas and what they change, not between values") {
  using namespace integers;
  subfed::model net;
  net.tensor("steps", std::initializer_list<subfed::dimension>{});
  const auto full = subfed::submodel::full(net);
  const std::int32_t narrow = 3;
  const std::int64_t wide = 4;
  const float number = 1;
  const tensor_view<const std::int32_t> a(&narrow, scalar);
  const tensor_view<const std::int64_t> b(&wide, scalar);
  std::uint8_t global = 200;
  const tensor_views<void> globals{tensor_view<std::uint8_t>(&global, scalar)};
  const std::vector<subfed::update<void>> both{{full, {a}}, {full, {b}}};

  CHECK(message_of([&] { subfed::average_cohort<void>(net, both, globals); }) != nothing);
  subfed::selective_average<void> values(net, {.integers = integer_rule::sum});
  values.add(full, {a});
  CHECK(message_of([&] { values.add(full, {b}); }) != nothing);
  CHECK(message_of([&] { values.finish(globals); }) != nothing);

  const average_options deltas{.content = content::deltas, .integers = integer_rule::sum};
  subfed::selective_average<void> mean(net, deltas);
  mean.add(full, {a});
  mean.add(full, {b});
  CHECK(message_of([&] { mean.add(full, {tensor_view<const float>(&number, scalar)}); }) !=
        nothing);
  mean.finish(globals);
  CHECK(global == 207);
  subfed::average_cohort<void>(net, both, globals, deltas);
  CHECK(global == 214);
  CHECK(message_of([&] {
          subfed::average_cohort<void>(net,
                                       std::vector<subfed::update<void>>{
                                           {full, {tensor_view<const float>(&number, scalar)}}},
                                       globals, deltas);
        }) != nothing);
  float floating = 1;
  CHECK(message_of([&] {
          subfed::average_cohort<void>(net, both, {tensor_view<float>(&floating, scalar)}, deltas);
        }) != nothing);
}
