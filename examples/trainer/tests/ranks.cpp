// SPDX-License-Identifier: MIT
/// Runs on several ranks: the results of one process, to the bit; killed and gone on with.
#include "ranks.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <common/tests/temporary_folder.hpp>

#include "child_program.hpp"
#include "idx_files.hpp"

namespace {

namespace ranks = trainer::ranks;
using std::filesystem::path;

constexpr std::string_view mpirun = SUBFED_MPIRUN;

std::string content_of(const path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();  // by blocks; iterators over characters take a quarter of these tests' time
  return std::move(out).str();
}

/// The process that has words on its command line, but not mpirun's; 0 where there is none. The
/// largest number: the last rank.
pid_t process_with(const std::string& words) {
  pid_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string line = content_of(entry.path() / "cmdline");
    if (line.find(words) == std::string::npos) continue;
    if (!line.starts_with(SUBFED_TRAINER_PROGRAM)) continue;
    found = std::max(found, static_cast<pid_t>(std::stoi(name)));
  }
  return found;
}

struct federation_of_ranks {
  temporary_folder folder;

  federation_of_ranks() { write_fashion_mnist(folder.path() / "data", 240, 40); }
  path at(const std::string& name) const { return folder.path() / name; }

  /// 0 ranks: without mpirun.
  child_program start(int count, const std::vector<std::string>& more) const {
    std::vector<std::string> words;
    if (count > 0) words = {std::string(mpirun), "-n", std::to_string(count)};
    for (const char* word : {SUBFED_TRAINER_PROGRAM, "--clients", "6", "--participation", "0.8",
                             "--samples", "12", "--batch", "6", "--threads", "1", "--eval-every",
                             "1", "--checkpoint-every", "1", "--data"}) {
      words.emplace_back(word);
    }
    words.push_back(at("data").string());
    words.insert(words.end(), more.begin(), more.end());
    return {words, at("stdout"), at("stderr")};
  }
  int run(int count, const std::vector<std::string>& more) const {
    return start(count, more).wait();
  }
  std::string errors() const { return content_of(at("stderr")); }

  /// The files of results, without times; and the table that was printed, as far as it has none.
  std::map<std::string, std::string> results(const std::string& out) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(at(out))) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".csv") && name != "costs.csv") all[name] = content_of(entry.path());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("the most expensive clients are dealt out first, each to the rank with the least to do") {
  const std::vector<double> costs{1, 8, 2, 4, 1, 4};
  CHECK(ranks::deal(costs, 1) == std::vector<int>(6, 0));
  CHECK(ranks::deal(costs, 2) == std::vector<int>{1, 0, 0, 1, 1, 1});
  CHECK(ranks::deal(costs, 3) == std::vector<int>{2, 0, 1, 1, 2, 2});
  CHECK(ranks::deal({}, 4).empty());
}

TEST_CASE("one rank, without mpirun: everything is called once, and failures pass as they are") {
  CHECK(ranks::count() == 1);
  CHECK(ranks::is_first());
  int calls = 0;
  ranks::together([&] { ++calls; });
  ranks::on_first([&] { ++calls; });
  CHECK(calls == 2);
  CHECK_THROWS_WITH_AS(ranks::together([] { throw trainer::failure("so"); }), "so",
                       trainer::failure);
}

TEST_CASE("the results on 1, 2 and 4 ranks are those of one process, to the bit") {
  if (mpirun.empty()) return;
  const federation_of_ranks place;
  // Methods that average alone, and those that keep something of each client.
  for (const std::string sums : {"fixed-point", "double"}) {
    CAPTURE(sums);
    const std::vector<std::string> settings{
        "--method", "fedrolex,scaffold,feddrop", "--rounds", "2", "--sums", sums};
    const auto with = [&](const std::string& out) {
      auto all = settings;
      all.insert(all.end(), {"--out", place.at(out).string()});
      return all;
    };
    REQUIRE(place.run(0, with("none-" + sums)) == 0);
    const auto expected = place.results("none-" + sums);
    CHECK(expected.size() == 3 * 4 + 1);
    for (const int count : {1, 2, 4}) {
      if (count != 2 && sums == "double") continue;
      CAPTURE(count);
      const std::string out = fmt::format("{}-{}", count, sums);
      const int status = place.run(count, with(out));
      CAPTURE(place.errors());
      REQUIRE(status == 0);
      CHECK(place.results(out) == expected);
    }
  }
}

TEST_CASE("a rank is killed: a sentence, and --resume continues to the same results") {
  if (mpirun.empty()) return;
  const federation_of_ranks place;
  const auto with = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.end(), {"--method", "fedrolex", "--rounds", "6", "--sums", "fixed-point",
                             "--out", place.at(out).string()});
    return more;
  };
  REQUIRE(place.run(0, with("whole", {})) == 0);
  for (const int count : {2, 3}) {
    CAPTURE(count);
    const std::string out = fmt::format("killed-{}", count);
    {
      child_program run = place.start(count, with(out, {}));
      const path kept = place.at(out) / "fedrolex.safetensors";
      while (!std::filesystem::exists(kept) && !run.has_ended()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      const pid_t last = process_with(place.at(out).string());
      REQUIRE(last > 0);
      CHECK(::kill(last, SIGKILL) == 0);
      CHECK(run.wait() != 0);
    }
    CAPTURE(place.errors());
    CHECK(place.errors().find("with --resume the same command continues") != std::string::npos);
    REQUIRE(place.run(count, with(out, {"--resume"})) == 0);
    CHECK(place.results(out) == place.results("whole"));
  }
}

TEST_CASE("what is wrong on all ranks is said once, and all of them end") {
  if (mpirun.empty()) return;
  const federation_of_ranks place;
  const auto count_of = [&](const std::string& words) {
    int found = 0;
    const std::string text = place.errors();
    for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      ++found;
    return found;
  };
  CHECK(place.run(2, {"--rounds", "0"}) != 0);
  CHECK(count_of("--rounds is 0, but at least 1 is expected.") == 1);
  CHECK(place.run(2, {"--rounds", "1", "--method", "fedrolex", "--sums", "fixed-point",
                      "--sums-bound", "0.0001", "--out", place.at("bound").string()}) != 0);
  CHECK(count_of("out of bound") + count_of("bound") >= 1);
  CHECK(count_of("subfed_trainer: ") == 1);
}

TEST_CASE("mpirun of a program that was built without MPI is refused in a sentence") {
  if (!mpirun.empty()) return;
  const federation_of_ranks place;
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  CHECK(place.run(0, {"--rounds", "1", "--out", place.at("out").string()}) == 1);
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  CHECK(place.errors().find("built without MPI") != std::string::npos);
}
