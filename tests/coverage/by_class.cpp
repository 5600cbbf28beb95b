// SPDX-License-Identifier: MIT
#include <subfed/coverage/by_class.hpp>

#include <subfed/coverage/text.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <vector>

using subfed::coverage;
using subfed::coverage_by_class;
using support::message_of;

TEST_CASE("each class is counted on its own, and all of them together") {
  subfed::model net;
  const auto g = net.group("g", 4);
  coverage_by_class seen(net, 2);
  for (std::uint64_t j = 0; j < 6; ++j) {
    seen.record(subfed::draw(net, subfed::prefix{}, {.round = j}), 0);
    seen.record(subfed::draw(net, subfed::prefix{}, {.round = j, .capacity = 0.5}), 1);
    seen.end_round();
  }
  CHECK(seen.classes() == 2);
  CHECK(seen.in_all().summary(g).min == 6);
  CHECK(seen.in_all().summary(g).max == 12);
  CHECK(seen.of_class(0).summary(g).gini == 0);
  CHECK(seen.of_class(1).summary(g).unseen == 2);
  CHECK(seen.of_class(1).clients() == 6);
  CHECK(seen.in_all().clients() == 12);
}

TEST_CASE("classes and shards give what separate coverages give") {
  subfed::model net;
  net.group("g", 11);
  coverage all(net, 2), large(net, 2), small(net, 2);
  coverage_by_class one(net, 2, 2), front(net, 2, 2), back(net, 2, 2), central(net, 2, 2);
  for (std::uint64_t j = 0; j < 9; ++j) {
    coverage_by_class shard(net, 2, 2);
    for (std::uint64_t c = 0; c < 5; ++c) {
      const std::size_t own = c % 3 == 0 ? 0 : 1;
      const auto sub = subfed::draw(net, subfed::rolling{.client_phase = 2},
                                    {.round = j, .client = c, .capacity = own == 0 ? 0.5 : 0.1});
      all.record(sub);
      (own == 0 ? large : small).record(sub);
      one.record(sub, own);
      (j < 4 ? front : back).record(sub, own);
      (c < 2 ? central : shard).record(sub, own);
    }
    for (auto* each : {&all, &large, &small}) each->end_round();
    one.end_round();
    (j < 4 ? front : back).end_round();
    central.merge(shard);
    central.end_round();
  }
  CHECK(to_text(one.in_all()) == to_text(all));
  CHECK(to_text(one.of_class(0)) == to_text(large));
  CHECK(to_text(one.of_class(1)) == to_text(small));
  front.append(back);
  CHECK(to_text(front) == to_text(one));
  CHECK(to_text(central) == to_text(one));
}

TEST_CASE("a class that is not there is refused, and nothing is counted") {
  subfed::model net;
  net.group("g", 2);
  coverage_by_class seen(net, 2);
  CHECK(message_of([&] { seen.record(subfed::submodel::full(net), 2); }) ==
        "subfed: coverage: class number 2 is asked for, but there are 2 classes");
  CHECK(message_of([&] { seen.of_class(7); }) ==
        "subfed: coverage: class number 7 is asked for, but there are 2 classes");
  CHECK(message_of([&] { seen.append(coverage_by_class(net, 3)); }) ==
        "subfed: coverage: the coverage to join has 3 classes, expected 2");
  CHECK(message_of([&] { seen.merge(coverage_by_class(net, 0)); }) ==
        "subfed: coverage: the coverage to join has 0 classes, expected 2");
  seen.end_round();
  CHECK(seen.in_all().clients() == 0);
}
