// SPDX-License-Identifier: MIT
#include "seeds.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <common/files.hpp>
#include <common/tests/temporary_folder.hpp>

#include "report.hpp"

namespace {

trainer::method_result of_seed(const std::string& method, double accuracy, std::int64_t held) {
  trainer::method_result out;
  out.method = method;
  out.history = {{8, {accuracy / 2, 2, 0.5}, 1, 100, 1000},
                 {16, {accuracy, 1, 0.75}, 0.5, 200, 2000}};
  out.server_parameters = 1000;
  out.each = {250, 2000, 1.5e6};
  out.rounds = 16;
  out.drawn_group = "stream2";
  out.by_all = {true, {}, {held, 2 * held}};
  out.by_partial = {true, {}, {held, held}};
  out.by_partial.summary.unseen_share = accuracy;
  out.by_all.summary.min = held;
  out.by_all.summary.max = 2 * held;
  return out;
}

/// Two methods, three seeds: 40, 50, 60 and 43, 52, 64 %.
std::vector<std::vector<trainer::method_result>> three_seeds() {
  return {{of_seed("fedrolex", 0.4, 1), of_seed("heterofl", 0.43, 2)},
          {of_seed("fedrolex", 0.5, 2), of_seed("heterofl", 0.52, 3)},
          {of_seed("fedrolex", 0.6, 6), of_seed("heterofl", 0.64, 4)}};
}

}  // namespace

TEST_CASE("the spread of numbers is the deviation of what they were drawn from") {
  const common::spread s = common::spread_of(std::vector<double>{2, 4, 9});
  CHECK(s.mean == 5);
  CHECK(s.deviation == doctest::Approx(std::sqrt((9 + 1 + 16) / 2.0)));
  const common::spread one = common::spread_of(std::vector<double>{7});
  CHECK(one.mean == 7);
  CHECK(std::isnan(one.deviation));
}

TEST_CASE("methods are compared seed by seed with the first") {
  const auto summaries = trainer::summarise(three_seeds());
  REQUIRE(summaries.size() == 2);
  CHECK(summaries[0].method == "fedrolex");
  CHECK(summaries[0].seeds == 3);
  CHECK(summaries[0].accuracy.mean == doctest::Approx(0.5));
  CHECK(summaries[0].accuracy.deviation == doctest::Approx(0.1));
  CHECK(summaries[0].local_accuracy.deviation == 0);
  CHECK(summaries[0].to_first.mean == 0);
  // Differences of 3, 2 and 4 points: 1 point apart, over the root of 3.
  CHECK(summaries[1].to_first.mean == doctest::Approx(0.03));
  CHECK(summaries[1].error_of_mean == doctest::Approx(0.01 / std::sqrt(3.0)));
}

TEST_CASE("the table of seeds has spread in parentheses, and no spread of one seed") {
  const std::string table = trainer::table_of_seeds(three_seeds());
  CHECK(table.find(
            "\nfedrolex            50.00 (10.00)   75.00 (0.00)               -        50.0\n") !=
        std::string::npos);
  CHECK(table.find(
            "\nheterofl            53.00 (10.54)   75.00 (0.00)     3.00 (0.58)        53.0\n") !=
        std::string::npos);
  CHECK(table.find("difference to") != std::string::npos);
  CHECK(table.find("\nfedrolex                1000       250      0.002") != std::string::npos);
  for (std::size_t from = 0; from < table.size();) {
    const std::size_t end = table.find('\n', from);
    CHECK(end - from <= 80);
    from = end + 1;
  }
  const auto all = three_seeds();
  const std::string of_one =
      trainer::table_of_seeds(std::vector<std::vector<trainer::method_result>>{all.front()});
  CHECK(of_one.find(
            "\nheterofl                    43.00          75.00            3.00        43.0\n") !=
        std::string::npos);
}

TEST_CASE("a method that diverges with one seed is named") {
  auto runs = three_seeds();
  CHECK(trainer::table_of_seeds(runs).find("diverged") == std::string::npos);
  runs[1][1].history.back().on_test.loss = std::numeric_limits<double>::quiet_NaN();
  CHECK(trainer::table_of_seeds(runs).find("\nheterofl diverged: no finite loss after round 16.") !=
        std::string::npos);
}

TEST_CASE("means of histories are over the rounds that all seeds have") {
  auto all = three_seeds();
  const auto means = trainer::means_of(all);
  REQUIRE(means[0].history.size() == 2);
  CHECK(means[0].history[0].on_test.accuracy == doctest::Approx(0.25));
  CHECK(means[0].history[1].flops == 2000);
  CHECK(means[0].by_all.nodes == std::vector<std::int64_t>{3, 6});
  CHECK(means[0].by_all.summary.min == 1);
  CHECK(means[0].by_all.summary.max == 12);
  all[1][0].history.erase(all[1][0].history.begin());
  REQUIRE(trainer::means_of(all)[0].history.size() == 1);
  CHECK(trainer::means_of(all)[0].history[0].round == 16);
}

TEST_CASE("summary.csv and the picture have means and spread") {
  const temporary_folder folder;
  trainer::write_summary(three_seeds(), folder.path());
  CHECK(common::read_file(folder.path() / "summary.csv") ==
        "method,seeds,accuracy,accuracy_deviation,local_accuracy,local_accuracy_deviation,"
        "difference_to_first,difference_error\n"
        "fedrolex,3,0.500000,0.100000,0.750000,0.000000,0.000000,0.000000\n"
        "heterofl,3,0.530000,0.105357,0.750000,0.000000,0.030000,0.005774\n");
  const auto picture = trainer::draw_seeds(three_seeds(), "a title", folder.path());
  const std::string script = common::read_file(folder.path() / "picture.gp");
  CHECK(script.find("8 25.0000 5.0000\n16 50.0000 10.0000\n") != std::string::npos);
  CHECK(script.find("with filledcurves linecolor rgb '#0072B2' fillstyle") != std::string::npos);
  if (!picture.empty()) CHECK(common::read_file(picture).find("</svg>") != std::string::npos);
}
