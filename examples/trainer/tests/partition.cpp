// SPDX-License-Identifier: MIT
#include "partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
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
  return out;
}

trainer::partition_plan dirichlet_plan(double alpha, std::int64_t clients, std::int64_t samples) {
  trainer::partition_plan out;
  out.seed = 7;
  out.clients = clients;
  out.dirichlet = alpha;
  out.samples_each = samples;
  return out;
}

/// How many samples of each label a client has.
std::vector<double> counts(const trainer::client& c, const std::vector<std::uint8_t>& labels) {
  std::vector<double> out(10, 0.0);
  for (const std::int64_t s : c.samples) ++out[labels[static_cast<std::size_t>(s)]];
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
  CHECK(message_of([] {
          trainer::partition(labels_of(9), plan(11));
        }).starts_with("--labels is 11,"));
}

TEST_CASE("by Dirichlet no sample is dealt twice, and labels are those of a client's samples") {
  const auto labels = labels_of(100);
  // 25 clients ask for all samples there are: all labels run out.
  for (const double alpha : {1e-320, 1e-9, 0.01, 0.5, 1.0, 100.0, 1e300}) {
    CAPTURE(alpha);
    std::set<std::int64_t> dealt;
    for (const trainer::client& c : trainer::partition(labels, dirichlet_plan(alpha, 25, 40))) {
      CHECK(c.samples.size() == 40);
      std::set<std::int64_t> met;
      for (const std::int64_t s : c.samples) met.insert(labels[static_cast<std::size_t>(s)]);
      CHECK(c.labels == std::vector<std::int64_t>(met.begin(), met.end()));
      dealt.insert(c.samples.begin(), c.samples.end());
    }
    CHECK(dealt.size() == 1000);
  }
}

TEST_CASE("where samples are scarce all clients have as many, but for one") {
  const auto labels = labels_of(9);
  for (const trainer::client& c : trainer::partition(labels, dirichlet_plan(0.1, 20, 40))) {
    CHECK((c.samples.size() == 4 || c.samples.size() == 5));
  }
}

TEST_CASE("a large alpha gives all labels alike, a small one a label nearly alone") {
  const auto labels = labels_of(4000);
  for (const trainer::client& c : trainer::partition(labels, dirichlet_plan(1000, 20, 1000))) {
    for (const double n : counts(c, labels)) CHECK(std::abs(n - 100) < 50);  // 5 deviations
  }
  int alone = 0;
  for (const trainer::client& c : trainer::partition(labels, dirichlet_plan(0.01, 100, 100))) {
    const auto own = counts(c, labels);
    alone += *std::max_element(own.begin(), own.end()) >= 95;
  }
  CHECK(alone >= 75);
  for (const trainer::client& c : trainer::partition(labels, dirichlet_plan(1e-320, 100, 100))) {
    CHECK(c.labels.size() == 1);
  }
}

TEST_CASE("counts of labels have the mean and the variance of a Dirichlet mixture") {
  // n draws by proportions from Dir(alpha, .. alpha) on 10 labels: mean n / 10, and with A =
  // 10 alpha variance n 0.1 0.9 (n + A) / (1 + A).
  const auto labels = labels_of(14000);
  const std::int64_t clients = 2000;
  const double n = 50;
  for (const double alpha : {0.05, 0.3, 0.9, 1.0, 4.0, 1000.0}) {
    CAPTURE(alpha);
    const double variance = n * 0.09 * (n + 10 * alpha) / (1 + 10 * alpha);
    std::vector<double> sums(10, 0.0);
    double squares = 0;
    for (const trainer::client& c :
         trainer::partition(labels, dirichlet_plan(alpha, clients, static_cast<std::int64_t>(n)))) {
      const auto own = counts(c, labels);
      for (std::size_t k = 0; k < 10; ++k) {
        sums[k] += own[k];
        squares += (own[k] - n / 10) * (own[k] - n / 10);
      }
    }
    const double deviation_of_mean = std::sqrt(variance / double(clients));
    for (const double sum : sums) {
      CHECK(std::abs(sum / double(clients) - n / 10) < 4 * deviation_of_mean);
    }
    CHECK(squares / double(10 * clients) == doctest::Approx(variance).epsilon(0.05));
  }
}

TEST_CASE("labels split over clients go to one client each sample, and leave none without") {
  const auto labels = labels_of(100);
  for (const double alpha : {1e-320, 0.05, 0.5, 50.0}) {
    CAPTURE(alpha);
    trainer::partition_plan plan = dirichlet_plan(alpha, 20, 40);
    plan.by_class = true;
    std::set<std::int64_t> given;
    std::vector<double> of_label(10, 0.0);
    std::size_t total = 0, most = 0, least = 1000;
    for (const trainer::client& c : trainer::partition(labels, plan)) {
      given.insert(c.samples.begin(), c.samples.end());
      total += c.samples.size();
      most = (std::max)(most, c.samples.size());
      least = (std::min)(least, c.samples.size());
      const auto own = counts(c, labels);
      for (std::size_t k = 0; k < 10; ++k) {
        of_label[k] += own[k];
        const bool is_listed =
            std::count(c.labels.begin(), c.labels.end(), static_cast<std::int64_t>(k)) == 1;
        CHECK(is_listed == (own[k] > 0));
      }
    }
    CHECK(given.size() == total);
    CHECK(total == 800);  // 40 a client on average
    CHECK(of_label == std::vector<double>(10, 80));
    CHECK(least >= 1);
    CHECK(most > 40);  // sizes differ
  }
  trainer::partition_plan all = dirichlet_plan(0.5, 20, std::int64_t{1} << 62);
  all.by_class = true;
  std::size_t total = 0;
  for (const trainer::client& c : trainer::partition(labels, all)) total += c.samples.size();
  CHECK(total == labels.size());
  all.clients = 1001;
  CHECK(message_of([&] { trainer::partition(labels, all); }).find("gets no sample") !=
        std::string::npos);
}

TEST_CASE("a client's part of a label has the mean and the variance of a Dirichlet share") {
  // A share of Dir(alpha, .. alpha) on C clients: mean 1 / C, variance (1 / C) (1 - 1 / C) / (C
  // alpha + 1).
  const auto labels = labels_of(6000);
  const std::int64_t clients = 200;
  for (const double alpha : {0.1, 0.5, 1.0, 5.0}) {
    CAPTURE(alpha);
    const double c = double(clients), n = 6000;
    double squares = 0;
    int seeds = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed, ++seeds) {
      trainer::partition_plan plan = dirichlet_plan(alpha, clients, 300);
      plan.by_class = true;
      plan.seed = seed;
      for (const trainer::client& own : trainer::partition(labels, plan)) {
        for (const double k : counts(own, labels)) squares += (k / n - 1 / c) * (k / n - 1 / c);
      }
    }
    const double variance = 1 / c * (1 - 1 / c) / (c * alpha + 1);
    CHECK(squares / (10 * c * seeds) == doctest::Approx(variance).epsilon(0.1));
  }
}

TEST_CASE("an alpha that is not positive and too few samples to draw are refused") {
  for (const double alpha : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK(message_of([&] {
            trainer::partition(labels_of(9), dirichlet_plan(alpha, 4, 4));
          }).find("a positive number is expected") != std::string::npos);
  }
  CHECK(message_of([] { trainer::partition(labels_of(1), dirichlet_plan(1, 11, 4)); }) ==
        "Client 10 of 11 gets no sample: 10 training samples are too few for that many clients.");
}
