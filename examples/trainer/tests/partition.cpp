// SPDX-License-Identifier: MIT
#include "partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include <common/tests/message_of.hpp>
#include "data.hpp"

namespace {

/// `each` samples of every label, mixed.
std::vector<std::uint8_t> labels_of(std::size_t each) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < 10 * each; ++i) out.push_back(std::uint8_t(i * 7 % 10));
  return out;
}

trainer::partition_plan plan(std::int64_t labels_each) {
  trainer::partition_plan out;
  out.seed = 3;
  out.clients = 20;
  out.labels_each = labels_each;
  out.samples_each = 40;
  out.capacities = {1.0, 0.5, 0.25};
  return out;
}

}  // namespace

TEST_CASE("each client has its number of labels, and samples of these alone") {
  const auto labels = labels_of(100);
  for (const std::int64_t each : {1, 2, 3, 5, 10}) {
    for (const trainer::client& c : trainer::partition(labels, plan(each))) {
      const std::set<std::int64_t> own(c.labels.begin(), c.labels.end());
      CHECK(own.size() == static_cast<std::size_t>(each));
      CHECK(std::is_sorted(c.labels.begin(), c.labels.end()));
      CHECK(!c.samples.empty());
      CHECK(c.samples.size() <= 40);
      std::set<std::int64_t> met;
      for (const std::int64_t s : c.samples) met.insert(labels[static_cast<std::size_t>(s)]);
      CHECK(met == own);
    }
  }
}

TEST_CASE("labels are shared evenly and samples go to one client") {
  const auto labels = labels_of(100);
  for (const std::int64_t each : {1, 2, 3, 5, 10}) {
    std::vector<std::int64_t> holders(10, 0);
    std::set<std::int64_t> dealt;
    std::size_t samples = 0;
    for (const trainer::client& c : trainer::partition(labels, plan(each))) {
      for (const std::int64_t label : c.labels) ++holders[static_cast<std::size_t>(label)];
      dealt.insert(c.samples.begin(), c.samples.end());
      samples += c.samples.size();
    }
    CHECK(dealt.size() == samples);
    const auto [least, most] = std::minmax_element(holders.begin(), holders.end());
    CHECK(*most - *least <= 1);
  }
}

TEST_CASE("capacities are shared evenly") {
  const auto clients = trainer::partition(labels_of(100), plan(2));
  CHECK(clients[0].capacity.value() == 1.0);
  CHECK(clients[1].capacity.value() == 0.5);
  CHECK(clients[5].capacity.value() == 0.25);
}

TEST_CASE("the seed alone decides") {
  const auto labels = labels_of(100);
  const auto a = trainer::partition(labels, plan(2));
  const auto b = trainer::partition(labels, plan(2));
  auto other_plan = plan(2);
  other_plan.seed = 4;
  const auto other = trainer::partition(labels, other_plan);
  bool differs = false;
  for (std::size_t c = 0; c < a.size(); ++c) {
    CHECK(a[c].labels == b[c].labels);
    CHECK(a[c].samples == b[c].samples);
    differs = differs || a[c].samples != other[c].samples;
  }
  CHECK(differs);
}

TEST_CASE("too few samples and too many labels are refused") {
  CHECK(message_of([] { trainer::partition(labels_of(1), plan(2)); }).find("gets no sample") !=
        std::string::npos);
  CHECK(message_of([] { trainer::partition(labels_of(9), plan(11)); }).starts_with("11 labels"));
}

TEST_CASE("a cohort is a subset without repetition, and each client's turn comes") {
  std::set<std::uint64_t> met;
  for (std::uint64_t round = 0; round < 100; ++round) {
    const auto cohort = trainer::draw_cohort(1, round, 50, 0.2);
    CHECK(cohort.size() == 10);
    CHECK(std::is_sorted(cohort.begin(), cohort.end()));
    CHECK(std::adjacent_find(cohort.begin(), cohort.end()) == cohort.end());
    CHECK(cohort == trainer::draw_cohort(1, round, 50, 0.2));
    met.insert(cohort.begin(), cohort.end());
  }
  CHECK(met.size() == 50);
  CHECK(*met.rbegin() == 49);
}

TEST_CASE("an empty cohort is refused") {
  CHECK(trainer::cohort_size(100, 0.1) == 10);
  CHECK(trainer::cohort_size(100, 1) == 100);
  CHECK(message_of([] { trainer::cohort_size(100, 0.004); }).find("leaves every cohort empty") !=
        std::string::npos);
}
