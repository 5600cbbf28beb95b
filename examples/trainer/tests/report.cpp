// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <common/files.hpp>
#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

namespace {

trainer::method_result example() {
  trainer::method_result out;
  out.method = "heterofl";
  out.history = {{8, {0.5, 1.25, 0.75}, 0.3, 100, 7000}, {16, {0.625, 1, 0.875}, 0.2, 200, 14000}};
  out.clients = {{0, 1, 0.5, 0.25}, {1, 0.0625, 0.75, 0.125}};
  out.capacities = {{1, 1, 1000, {0.5, 1.5, 0.25}}, {0.0625, 1, 10, {0.25, 2, 0.125}}};
  out.server_parameters = 1000;
  out.each = {250, 8000, 1.5e6};
  out.megabytes_per_round = 0.08;
  out.rounds = 16;
  out.seconds = {0.04, 3.25, 0.08, 1};
  out.drawn_group = "stream2";
  out.by_all = {true, {}, {3, 2}};
  out.by_all.summary.min = 2;
  out.by_all.summary.max = 3;
  out.by_partial = {true, {}, {1, 0}};
  out.by_partial.summary.max = 1;
  out.by_partial.summary.unseen_share = 0.5;
  return out;
}

}  // namespace

TEST_CASE("the table has a line a method, with a dash where no client is cut") {
  trainer::method_result bound = example();
  bound.method = "fedavg";
  bound.is_bound = true;
  bound.by_partial.any_client = false;
  const std::vector<trainer::method_result> results = {example(), bound};
  const std::string table = trainer::table(results);
  CHECK(table.find(
            "\nheterofl             62.50   87.50        2..3      0.0        0..1     50.0\n") !=
        std::string::npos);
  CHECK(table.find(
            "\nfedavg               62.50   87.50        2..3      0.0           -        -\n") !=
        std::string::npos);
}

TEST_CASE("a method whose training diverged is named, with the round") {
  const double nan = -std::numeric_limits<double>::quiet_NaN();
  trainer::method_result lost = example();
  lost.method = "unidrop";
  lost.history[0].on_test.loss = lost.history[1].on_test.loss = lost.history[1].train_loss = nan;
  trainer::method_result back = example();
  back.history[0].on_test.loss = nan;  // and finite again
  const std::vector<trainer::method_result> results = {example(), lost, back};
  const std::string table = trainer::table(results);
  const std::string said =
      "\nunidrop diverged: no finite loss after round 8. Try a lower --lr.\n\n";
  CHECK(table.find(said) != std::string::npos);
  CHECK(table.find("diverged") == table.rfind("diverged"));

  const temporary_folder folder;
  trainer::write_csv(lost, folder.path());
  CHECK(common::read_file(folder.path() / "unidrop.csv").find("16,0.625000,nan,0.875000,nan,") !=
        std::string::npos);
}

TEST_CASE("below it costs and times have a line a method each") {
  trainer::method_result untrained = example();
  untrained.method = "fjord";
  untrained.rounds = 0;
  untrained.seconds = {};
  const std::vector<trainer::method_result> results = {example(), untrained};
  const std::string table = trainer::table(results);
  CHECK(table.find("\nheterofl                1000       250      0.008     0.080     1.500\n") !=
        std::string::npos);
  CHECK(table.find("\nheterofl                2.50      5.00         3.2        1.0\n") !=
        std::string::npos);
  CHECK(table.find("\nfjord                   1000       250      0.008     0.080     1.500\n") !=
        std::string::npos);
  CHECK(table.find("\nfjord                   0.00      0.00         0.0        0.0\n") !=
        std::string::npos);
}

TEST_CASE("the table fits 80 columns, whatever the numbers") {
  trainer::method_result large = example();
  large.method = "federated-dropout";
  large.server_parameters = 11172170;
  large.each = {11172170, 2 * 4 * 11172170.0, 2.4e9};
  large.megabytes_per_round = 8937.736;
  large.seconds = {20, 86400, 20, 1};
  large.by_all.summary.min = large.by_all.summary.max = 19200;
  large.by_all.summary.unseen_share = 1;
  const std::string table = trainer::table(std::vector<trainer::method_result>{large});
  for (std::size_t from = 0; from < table.size();) {
    const std::size_t end = table.find('\n', from);
    CHECK(end - from <= 80);
    from = end + 1;
  }
}

TEST_CASE("costs.csv has them in whole units") {
  const temporary_folder folder;
  trainer::write_costs(std::vector<trainer::method_result>{example()}, folder.path());
  CHECK(
      common::read_file(folder.path() / "costs.csv") ==
      "method,server_parameters,client_parameters,client_bytes,bytes_per_round,client_flops,rounds,"
      "seconds_cutting,seconds_averaging,seconds_training,seconds_evaluating\n"
      "heterofl,1000,250.0,8000.0,80000.0,1500000.0,16,0.040000,0.080000,3.250000,1.000000\n");
}

TEST_CASE(
    "eleven methods look different in the picture, and the bounds are not in its right half") {
  const temporary_folder folder;
  std::vector<trainer::method_result> results(11, example());
  for (std::size_t m = 0; m < results.size(); ++m) {
    results[m].method = "m" + std::to_string(m);
    results[m].is_bound = m >= 7;
  }
  static_cast<void>(trainer::draw_picture(results, "a title", folder.path()));
  const std::string script = common::read_file(folder.path() / "picture.gp");
  std::set<std::string> looks;
  std::size_t steps = 0;
  for (std::size_t at = script.find("linecolor rgb '", script.find("plot $history0"));
       at != std::string::npos; at = script.find("linecolor rgb '", at + 1)) {
    const std::size_t end = script.find_first_of(",\n", at);
    const std::string look = script.substr(at, end - at);
    const std::size_t title = look.find(" title");
    if (title != std::string::npos) looks.insert(look.substr(0, title));
    steps += title == std::string::npos && look.find("dashtype") != std::string::npos;
  }
  CHECK(looks.size() == 11);
  CHECK(steps == 7);
}

TEST_CASE("the CSV files hold the rounds and the nodes") {
  const temporary_folder folder;
  trainer::write_csv(example(), folder.path());
  CHECK(common::read_file(folder.path() / "heterofl.csv") ==
        "round,accuracy,test_loss,local_accuracy,train_loss,bytes,flops\n"
        "8,0.500000,1.250000,0.750000,0.300000,800,7000\n"
        "16,0.625000,1.000000,0.875000,0.200000,1600,14000\n");
  CHECK(common::read_file(folder.path() / "heterofl-nodes.csv") ==
        "node,held_by_all,held_by_cut\n0,3,1\n1,2,0\n");
  CHECK(common::read_file(folder.path() / "heterofl-clients.csv") ==
        "client,capacity,local_accuracy,own_accuracy\n"
        "0,1,0.500000,0.250000\n"
        "1,0.0625,0.750000,0.125000\n");
  CHECK(common::read_file(folder.path() / "heterofl-capacities.csv") ==
        "capacity,clients,parameters,accuracy,test_loss,local_accuracy\n"
        "1,1,1000,0.500000,1.500000,0.250000\n"
        "0.0625,1,10,0.250000,2.000000,0.125000\n");
  CHECK(!std::filesystem::exists(folder.path() / "heterofl-keep.csv"));
}

TEST_CASE("keep probabilities are counted in bins that are named by their upper ends") {
  const temporary_folder folder;
  trainer::method_result result = example();
  for (trainer::history_entry& e : result.history) e.keep.assign(trainer::keep_bins, e.round);
  trainer::write_csv(result, folder.path());
  CHECK(common::read_file(folder.path() / "heterofl-keep.csv") ==
        "round,0.05,0.10,0.15,0.20,0.25,0.30,0.35,0.40,0.45,0.50,0.55,0.60,0.65,0.70,0.75,0.80,"
        "0.85,0.90,0.95,1.00\n"
        "8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8\n"
        "16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16\n");
}

TEST_CASE("a folder that cannot be written to is refused") {
  const temporary_folder folder;
  std::ofstream(folder.path() / "file").put('x');
  const auto inside = folder.path() / "file" / "out";
  CHECK(message_of([&] { trainer::prepare_folder(inside); }) ==
        "Files cannot be written to the folder " + inside.string() +
            ": Not a directory; --out names another.");
  CHECK(message_of([&] { trainer::prepare_folder(folder.path() / "new" / "out"); }) ==
        "(no failure)");
}

TEST_CASE("a quote in the folder's name does not end gnuplot's string") {
  const temporary_folder folder;
  const auto odd = folder.path() / "it's";
  trainer::prepare_folder(odd);
  const std::vector<trainer::method_result> results = {example()};
  const auto picture = trainer::draw_picture(results, "a title", odd);
  CHECK(common::read_file(odd / "picture.gp").find("it''s/picture.svg'") != std::string::npos);
  // Empty where gnuplot is not installed.
  if (!picture.empty()) CHECK(common::read_file(picture).find("</svg>") != std::string::npos);
}
