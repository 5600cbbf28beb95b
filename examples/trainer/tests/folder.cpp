// SPDX-License-Identifier: MIT
#include "folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

namespace {

const trainer::method_name two[] = {{"one", "."}, {"other", "."}};

void touch(const std::filesystem::path& file) { std::ofstream(file).put('x'); }

}  // namespace

TEST_CASE("one run at a time has a folder") {
  const temporary_folder folder;
  trainer::folder_lock nothing;
  nothing.take(folder.path() / "none");
  {
    trainer::folder_lock first, second;
    first.take(folder.path());
    first.take(folder.path());  // has it already
    CHECK(message_of([&] { second.take(folder.path()); }) ==
          "Another run is using the folder " + folder.path().string() + "; --out names another.");
  }
  trainer::folder_lock third;
  CHECK(message_of([&] { third.take(folder.path()); }) == "(no failure)");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("an earlier run is refused unless it is continued or overwritten") {
  const temporary_folder folder;
  trainer::options settings;
  settings.out = folder.path().string();
  touch(folder.path() / "notes.txt");
  CHECK(trainer::files_of_runs(folder.path(), two).empty());
  CHECK(message_of([&] { trainer::check_no_earlier_run(settings, two); }) == "(no failure)");
  for (const char* file : {"one.csv", "one-nodes.csv", "one-clients.csv", "one-capacities.csv",
                           "one-keep.csv", "one.safetensors", "other.csv", "config.json",
                           "costs.csv", "picture.gp", "picture.svg", "summary.csv"}) {
    touch(folder.path() / file);
    CHECK(trainer::files_of_runs(folder.path(), two) == std::vector<std::string>{file});
    CHECK(message_of([&] { trainer::check_no_earlier_run(settings, two); }) ==
          "The folder " + settings.out + " holds an earlier run (" + file +
              "): --resume continues it, --overwrite removes it and starts over, and --out names "
              "another folder.");
    for (bool trainer::options::*flag : {&trainer::options::resume, &trainer::options::overwrite}) {
      trainer::options with = settings;
      with.*flag = true;
      CHECK(message_of([&] { trainer::check_no_earlier_run(with, two); }) == "(no failure)");
    }
    std::filesystem::remove(folder.path() / file);
  }
  touch(folder.path() / "other.safetensors");
  touch(folder.path() / "one.csv");
  CHECK(trainer::files_of_runs(folder.path(), two) ==
        std::vector<std::string>{"one.csv", "other.safetensors"});
  CHECK(trainer::other_methods(folder.path(), two, std::vector<std::string>{"one"}) ==
        std::vector<std::string>{"other"});
  CHECK(
      trainer::other_methods(folder.path(), two, std::vector<std::string>{"one", "other"}).empty());
}
