// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

trainer::method_result example() {
  trainer::method_result out;
  out.method = "heterofl";
  out.history = {{8, {0.5, 1.25, 0.75}, 0.3}, {16, {0.625, 1, 0.875}, 0.2}};
  out.server_parameters = 1000;
  out.client_parameters = 250;
  out.megabytes_per_round = 0.08;
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
  bound.method = "fedavg-largest";
  bound.is_bound = true;
  bound.by_partial.any_client = false;
  const std::vector<trainer::method_result> results = {example(), bound};
  const std::string table = trainer::table(results);
  CHECK(table.find("heterofl             62.50   87.50      1000      250    0.080        2..3     "
                   "0.0        0..1    50.0\n") != std::string::npos);
  CHECK(table.find("fedavg-largest       62.50   87.50      1000      250    0.080        2..3     "
                   "0.0           -       -\n") != std::string::npos);
}

TEST_CASE("the CSV files hold the rounds and the nodes") {
  const temporary_folder folder;
  trainer::write_csv(example(), folder.path());
  CHECK(text_of(folder.path() / "heterofl.csv") ==
        "round,accuracy,test_loss,local_accuracy,train_loss\n"
        "8,0.500000,1.250000,0.750000,0.300000\n"
        "16,0.625000,1.000000,0.875000,0.200000\n");
  CHECK(text_of(folder.path() / "heterofl-nodes.csv") ==
        "node,held_by_all,held_by_cut\n0,3,1\n1,2,0\n");
}

TEST_CASE("a folder that cannot be written to is refused") {
  const temporary_folder folder;
  std::ofstream(folder.path() / "file").put('x');
  const auto inside = folder.path() / "file" / "out";
  CHECK(message_of([&] { trainer::prepare_folder(inside); }) ==
        "Files cannot be written to the folder " + inside.string() + "; --out takes another.");
  CHECK(message_of([&] { trainer::prepare_folder(folder.path() / "new" / "out"); }) ==
        "(no failure)");
}

TEST_CASE("a quote in the folder's name does not end gnuplot's string") {
  const temporary_folder folder;
  const auto odd = folder.path() / "it's";
  trainer::prepare_folder(odd);
  const std::vector<trainer::method_result> results = {example()};
  const auto picture = trainer::draw_picture(results, "a title", odd);
  CHECK(text_of(odd / "picture.gp").find("it''s/picture.svg'") != std::string::npos);
  // Empty where gnuplot is not installed.
  if (!picture.empty()) CHECK(text_of(picture).find("</svg>") != std::string::npos);
}
