// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <doctest/doctest.h>

#include <common/files.hpp>
#include <common/tests/temporary_folder.hpp>
#include <string>
#include <vector>

#include "pictures.hpp"

using coverage_tool::deviation;
using coverage_tool::estimate;
using coverage_tool::estimate_of;

namespace {

coverage_tool::options small() {
  coverage_tool::options o;
  o.on = coverage_tool::perceptron(std::vector<std::int64_t>{4});
  o.schemes = {coverage_tool::parse_scheme("static"), coverage_tool::parse_scheme("rolling")};
  o.cohort.clients = 1;
  o.cohort.participation = 1;
  o.cohort.mix.classes = {{0.5, 1}};
  o.class_names = {"0.5"};
  o.rounds = 6;
  o.times = 1;
  o.repetitions = 2;
  o.parameters = true;
  o.threads = 1;
  return o;
}

}  // namespace

TEST_CASE("the standard error of 1, 2, 6 is the square root of 7/3") {
  const std::vector<double> values = {1, 2, 6};
  const estimate e = estimate_of(values);
  CHECK(e.mean == doctest::Approx(3));
  CHECK(e.error == doctest::Approx(std::sqrt(7.0 / 3)));
  CHECK(estimate_of(std::vector<double>{0.1, 0.1, 0.1}).error == 0);
  CHECK(estimate_of(std::vector<double>{5}).error == 0);
  CHECK(deviation({3, 0.5}, 2.0, false) == "2.00");
  CHECK(deviation({3, 0}, 3.0, false) == "equal");
  CHECK(deviation({3, 0}, 3.1, true) == "differs");
  CHECK(deviation({3, 0}, 3.1, false) == "-");  // runs that are alike by chance
  CHECK(deviation({3, 0.5}, std::nullopt, false) == "-");
}

TEST_CASE("a small run by hand: tables, sentences, files, pictures") {
  const temporary_folder folder;
  coverage_tool::options o = small();
  o.out = folder.path().string();
  const auto results = coverage_tool::simulate(o, [](const auto&) {});
  std::vector<coverage_tool::expectation> expected;
  for (const auto& s : o.schemes) expected.push_back(coverage_tool::expect(o, s, 4));

  const std::string nodes = coverage_tool::node_table(o, results, expected);
  CHECK(nodes.find("never held, share                  0.5000          0       0.5000     equal") !=
        std::string::npos);
  CHECK(nodes.find(" over 6        never         -\n") != std::string::npos);
  CHECK(nodes.find("rounds until all held once         3.0000          0       3.0000     equal") !=
        std::string::npos);
  // The output layer's bias is held by all; of the other 4 * 43 parameters a half.
  CHECK(results[0].runs[0].parameters->unseen == 2 * 43);
  const std::string whole = coverage_tool::whole_table(o, results);
  CHECK(whole.find("rolling                     0.000  ") != std::string::npos);
  CHECK(coverage_tool::verdicts(o, results) ==
        "static STARVES 2 of 4 nodes: no client held 2 to 3 of layer1 in 6 rounds.\n"
        "rolling starves no node in 6 rounds of 2 runs.\n");

  coverage_tool::write_csv(o, results, expected);
  CHECK(common::read_file(folder.path() / "static-nodes.csv") ==
        "node,held_in_first_run\n0,6\n1,6\n2,0\n3,0\n");
  CHECK(common::read_file(folder.path() / "evenness.csv").find("rolling,4,0,0\n") !=
        std::string::npos);
  CHECK(common::read_file(folder.path() / "cover.csv").find("rolling,2,1,1\nrolling,3,0,0\n") !=
        std::string::npos);
  CHECK(common::read_file(folder.path() / "runs.csv").find("static,1,3,9,0,6,0.5,") !=
        std::string::npos);
  for (const auto& picture : coverage_tool::draw_pictures(o, results, expected)) {
    CHECK(common::read_file(picture).find("</svg>") != std::string::npos);
  }
  CHECK(coverage_tool::file_stem("rolling:step=4/x") == "rolling-step-4-x");
}
