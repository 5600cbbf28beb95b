// SPDX-License-Identifier: MIT
#include <subfed/average/held_elements.hpp>
#include <subfed/detail/internals.hpp>

#include <support/checks.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

using subfed::held_elements;
using subfed::index_set;
using subfed::submodel;
using support::message_of;

namespace {

struct held_setting {
  subfed::model net;
  subfed::group_id rows = net.group("rows", 100);
  subfed::tensor_id table = net.tensor("table", {rows, 3});
  subfed::tensor_id bias = net.tensor("bias", {rows});
};

}  // namespace

TEST_CASE("what submodels hold, element by element: more than a word, and nodes in any order") {
  const held_setting s;
  const std::vector<submodel> subs{submodel(s.net, {index_set(100, {99, 3, 21})}, {.client = 1}),
                                   submodel(s.net, {index_set::window(100, 40, 50)})
                                       .restricted(s.rows, index_set::window(100, 60, 40))};
  const held_elements held(s.net, subs);
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < 100; ++n) {
    const bool by_any = n == 99 || n == 3 || n == 21 || (n >= 60 && n < 90);
    count += by_any ? 1 : 0;
    CHECK(held.test(s.bias, n) == by_any);
    for (std::int64_t i = 0; i < 3; ++i) CHECK(held.test(s.table, 3 * n + i) == by_any);
  }
  CHECK(held.count(s.bias) == count);
  CHECK(held.count(s.table) == 3 * count);
  CHECK(held.count() == 4 * count);
  const auto words = held.words(s.bias);
  REQUIRE(words.size() == 2);
  CHECK(words[0] ==
        ((std::uint64_t{1} << 3) | (std::uint64_t{1} << 21) | (std::uint64_t{15} << 60)));
  CHECK(words[1] == (((std::uint64_t{1} << 26) - 1) | (std::uint64_t{1} << 35)));
}

TEST_CASE("nothing is held at first; equal are those of one model with the same bits") {
  const held_setting s;
  held_elements none(s.net);
  CHECK(none.count() == 0);
  const std::vector<submodel> all{submodel::full(s.net)};
  const held_elements full(s.net, all);
  CHECK(full.count() == 400);
  CHECK_FALSE(none == full);
  for (std::int64_t n = 0; n < 100; ++n) subfed::detail::internals::add(none, 1, n, 1, 1);
  subfed::detail::internals::add(none, 0, 0, 2, 150);
  subfed::detail::internals::add(none, 0, 1, 2, 150);
  CHECK(none == full);
  CHECK(held_elements().count() == 0);
}

TEST_CASE("elements outside a tensor and submodels of another model are refused by name") {
  const held_setting s;
  const held_elements held(s.net);
  CHECK(message_of([&] { held.test(s.bias, 100); }) ==
        "subfed: held_elements: tensor 'bias' has no element 100, it has 100");
  CHECK(message_of([&] { held.test(s.table, -1); }) ==
        "subfed: held_elements: tensor 'table' has no element -1, it has 300");
  subfed::model other;
  other.group("rows", 100);
  const std::vector<submodel> foreign{submodel(other, {index_set::full(100)}, {.client = 6})};
  CHECK(message_of([&] { held_elements(s.net, foreign); }) ==
        "subfed: held_elements: the submodel of client 6 is of another model");
}
