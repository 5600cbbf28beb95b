// SPDX-License-Identifier: MIT
#include "simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "expectation.hpp"
#include "report.hpp"

using coverage_tool::expectation;
using coverage_tool::options;
using coverage_tool::parse_scheme;
using coverage_tool::repetition;

namespace {

options setting(const char* scheme, std::vector<std::int64_t> widths) {
  options o;
  o.on = coverage_tool::perceptron(widths);
  o.schemes = {parse_scheme(scheme)};
  o.cohort.clients = 30;
  o.cohort.participation = 0.1;
  o.cohort.capacities = subfed::capacity_assignment::redrawn;
  o.cohort.seed = 20;
  o.rounds = 8;
  o.times = 1;
  o.repetitions = 150;
  o.threads = 2;
  return o;
}

void mix(options& o, const std::vector<subfed::capacity_class>& classes) {
  o.cohort.mix.classes = classes;
  o.class_names.assign(classes.size(), "");
}

/// |measured - expected| below 6 standard errors of the runs: with some 40 comparisons of nearly
/// normal means of 150 runs a false alarm below 1e-6, and the seed is fixed.
template <class Get>
void compare(const char* what, const std::vector<repetition>& runs, Get&& get,
             const std::optional<double>& expected) {
  INFO(what);
  REQUIRE(expected.has_value());
  std::vector<double> values;
  for (const repetition& r : runs) values.push_back(get(r));
  const auto e = coverage_tool::estimate_of(values);
  // Where nearly all runs are alike, their spread says too little: then that of a share.
  const double share = *expected < 1 ? std::sqrt(*expected / static_cast<double>(runs.size())) : 0;
  CHECK(std::fabs(e.mean - *expected) <=
        6 * std::max(e.error, share) + 1e-9 * std::fabs(*expected));
}

}  // namespace

TEST_CASE("simulated random and rolling sets are what theory expects") {
  const std::vector<subfed::capacity_class> three = {{0.5, 1}, {0.2, 2}, {0.05, 3}};
  for (const char* scheme : {"random", "rolling:backward", "static"}) {
    for (const double dropout : {0.0, 0.3}) {
      for (const std::size_t classes : {1u, 3u}) {
        INFO(scheme, ", dropout ", dropout, ", classes ", classes);
        options o = setting(scheme, {23, 7});
        o.cohort.dropout = dropout;
        mix(o, {three.begin(), three.begin() + static_cast<std::ptrdiff_t>(classes)});
        const auto results = coverage_tool::simulate(o, [](const auto&) {});
        const expectation e = coverage_tool::expect(o, o.schemes[0], 23);
        const auto& runs = results[0].runs;
        compare(
            "mean", runs, [](const auto& r) { return r.widest.mean; }, e.mean);
        compare(
            "unseen", runs, [](const auto& r) { return r.widest.unseen_share; }, e.unseen_share);
        if (e.variance) {
          compare(
              "variance", runs, [](const auto& r) { return r.widest.variance; }, e.variance);
        }
        // With drawn capacities the expected coefficient is a quotient of expectations.
        if (e.gini && classes == 1 && dropout == 0) {
          compare(
              "gini", runs, [](const auto& r) { return r.widest.gini; }, e.gini);
        }
        CHECK(e.variance.has_value() ==
              (std::string(scheme) == "random" || (classes == 1 && dropout == 0)));
      }
    }
  }
}

TEST_CASE("rounds until the first full cover are distributed as theory says") {
  for (const char* scheme : {"random", "rolling", "static"}) {
    INFO(scheme);
    options o = setting(scheme, {17});
    o.rounds = 45;
    mix(o, {{1.0, 5}, {0.5, 20}, {0.3, 30}});
    const auto results = coverage_tool::simulate(o, [](const auto&) {});
    const expectation e = coverage_tool::expect(o, o.schemes[0], 17);
    REQUIRE(e.cover_beyond.has_value());
    REQUIRE(e.cover.has_value());
    compare(
        "cover", results[0].runs,
        [](const auto& r) { return static_cast<double>(r.widest_cover.value()); }, e.cover->mean);
    // Dvoretzky, Kiefer, Wolfowitz: P(distance > d) <= 2 exp(-2 n d^2), 2e-8 for d = 0.248.
    for (std::int64_t round = 0; round <= 45; ++round) {
      double later = 0;
      for (const repetition& r : results[0].runs) later += r.widest_cover.value() > round;
      CHECK(std::fabs(later / 150 - e.cover_beyond->after(round)) < 0.248);
    }
  }
}

TEST_CASE("where nothing is known nothing is claimed, and static small clients never cover") {
  options o = setting("random:pool=3", {16});
  mix(o, {{0.5, 1}, {0.25, 1}});
  CHECK_FALSE(coverage_tool::expect(o, o.schemes[0], 16).mean.has_value());
  o.schemes = {parse_scheme("static")};
  CHECK(coverage_tool::expect(o, o.schemes[0], 16).never_covered);
  o.schemes = {parse_scheme("random")};
  o.cohort.capacities = subfed::capacity_assignment::fixed;
  CHECK(coverage_tool::expect(o, o.schemes[0], 16).mean.has_value());
  CHECK_FALSE(coverage_tool::expect(o, o.schemes[0], 16).variance.has_value());
}

TEST_CASE("results depend on the seed and not on the number of threads") {
  options o = setting("random", {31, 9});
  mix(o, {{0.5, 1}, {0.125, 3}});
  o.rounds = 250;
  o.repetitions = 3;
  o.parameters = true;
  const auto run = [&](std::int64_t threads, std::uint64_t seed) {
    o.threads = threads;
    o.cohort.seed = seed;
    double done = 0;
    const auto results = coverage_tool::simulate(o, [&](const coverage_tool::news& n) {
      CHECK(n.done >= done);
      done = n.done;
    });
    CHECK(done == doctest::Approx(1));
    return results;
  };
  const auto one = run(1, 5), three = run(3, 5), other = run(1, 6);
  CHECK(one[0].counts == three[0].counts);
  CHECK(one[0].heat == three[0].heat);
  CHECK(one[0].counts != other[0].counts);
  CHECK(one[0].history.size() == 100);
  CHECK(one[0].history.back().round == 250);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(one[0].runs[r].node_cover == three[0].runs[r].node_cover);
    CHECK(one[0].runs[r].parameter_cover == three[0].runs[r].parameter_cover);
    CHECK(one[0].runs[r].parameters->gini == three[0].runs[r].parameters->gini);
    if (r > 0) CHECK(one[0].runs[r].widest.variance != one[0].runs[0].widest.variance);
  }
  std::vector<std::int64_t> sum(31, 0);
  for (const auto& column : one[0].heat) {
    for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += column[n];
  }
  CHECK(sum == one[0].counts);
}

TEST_CASE("the history is a mean over the runs in their order, whichever thread was faster") {
  options o = setting("rolling", {31, 9});
  mix(o, {{0.5, 1}, {0.125, 3}});
  o.rounds = 2;  // so that runs end in another order than they begin
  o.repetitions = 400;
  const auto history = [&](std::int64_t threads) {
    o.threads = threads;
    return coverage_tool::simulate(o, [](const auto&) {})[0].history;
  };
  const auto one = history(1);
  for (int again = 0; again < 5; ++again) {
    const auto four = history(4);
    REQUIRE(four.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      CHECK(four[i].gini == one[i].gini);
      CHECK(four[i].unseen_share == one[i].unseen_share);
    }
  }
}

TEST_CASE("the share of parameters that are never held is what theory says") {
  options o = setting("random", {20, 20});
  mix(o, {{0.5, 1}, {0.25, 3}});
  o.parameters = true;
  o.rounds = 5;
  o.repetitions = 60;
  for (const double dropout : {0.0, 0.4}) {
    o.cohort.dropout = dropout;
    const auto results = coverage_tool::simulate(o, [](const auto&) {});
    const auto e = coverage_tool::expect_parameters(o, o.schemes[0]);
    compare(
        "unseen", results[0].runs, [](const auto& r) { return r.parameters->unseen_share; },
        e.unseen_share);
    CHECK_FALSE(e.limit.has_value());
  }
  // In 400 rounds of three clients, windows of the largest capacity have been everywhere.
  o.cohort.dropout = 0;
  o.rounds = 400;
  o.repetitions = 1;
  for (const char* scheme : {"rolling", "static"}) {
    INFO(scheme);
    o.schemes = {parse_scheme(scheme)};
    const auto results = coverage_tool::simulate(o, [](const auto&) {});
    const auto e = coverage_tool::expect_parameters(o, o.schemes[0]);
    CHECK(results[0].runs[0].parameters->unseen_share == doctest::Approx(e.limit.value()));
    CHECK(*e.limit > 0);
  }
  o.on = coverage_tool::find_network("char_lstm");
  CHECK_FALSE(coverage_tool::expect_parameters(o, o.schemes[0]).limit.has_value());
}
