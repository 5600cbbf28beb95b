// SPDX-License-Identifier: MIT
/// The program from outside: killed at any time and gone on with, made again, and refused.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <subfed/adapt/safetensors.hpp>
#include <thread>
#include <vector>

#include <common/tests/temporary_folder.hpp>

#include "child_program.hpp"
#include "idx_files.hpp"
#include "text_files.hpp"

namespace {

using std::filesystem::path;
using words = std::vector<std::string>;

std::string text_of(const path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();  // by blocks; iterators over characters take a quarter of these tests' time
  return std::move(out).str();
}
void write_text(const path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}
words split(const std::string& text, char at) {
  words out;
  std::istringstream in(text);
  for (std::string piece; std::getline(in, piece, at);) out.push_back(piece);
  return out;
}
words operator+(words a, const words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every file of a folder, by name.
std::map<std::string, std::string> files_of(const path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) out[entry.path().filename().string()] = text_of(entry.path());
  }
  return out;
}
/// Those that are to be the same from run to run: the CSV files without the times.
std::map<std::string, std::string> results_in(const path& folder) {
  auto out = files_of(folder);
  std::erase_if(out, [](const auto& file) {
    return !file.first.ends_with(".csv") || file.first == "costs.csv";
  });
  return out;
}

std::size_t count_of(const std::map<std::string, std::string>& files, const std::string& ending) {
  return static_cast<std::size_t>(std::count_if(
      files.begin(), files.end(), [&](const auto& file) { return file.first.ends_with(ending); }));
}

/// Small data, and folders for what the program writes.
struct workplace {
  temporary_folder folder;
  path data = at("data");

  workplace() { write_fashion_mnist(folder.path() / "data", 240, 40); }

  path at(const std::string& name) const { return folder.path() / name; }

  /// Starts the program on few clients and images.
  child_program start(const words& arguments) const {
    const words whole = words{SUBFED_TRAINER_PROGRAM, "--data", data.string()} +
                        split("--clients 6 --participation 0.5 --samples 12 --batch 6", ' ') +
                        arguments;
    return child_program(whole, at("stdout"), at("stderr"));
  }
  int run(const words& arguments) const { return start(arguments).wait(); }
  std::string printed() const { return text_of(at("stdout")); }
  std::string errors() const { return text_of(at("stderr")); }
};

path checkpoint_in(const path& out, const std::string& method) {
  return out / (method + ".safetensors");
}

/// The rounds before a checkpoint; 0 where there is none. Throws for a file that is not whole.
int rounds_in(const path& checkpoint) {
  if (!std::filesystem::exists(checkpoint)) return 0;
  const std::string content = text_of(checkpoint);
  const subfed::safetensors_view view(content);
  for (const auto& [key, text] : view.metadata()) {
    const std::string name = "\"rounds\":";
    const auto where = text.find(name);
    if (key == "progress" && where != std::string::npos) {
      return std::stoi(text.substr(where + name.size()));
    }
  }
  FAIL(checkpoint.string() << " does not tell its rounds");
  return 0;
}

/// What a killed program leaves under a final name is whole.
void check_whole(const path& out, const std::map<std::string, std::string>& expected) {
  if (!std::filesystem::exists(out)) return;
  for (const auto& file : files_of(out)) {  // Clang 14 captures no structured binding
    const auto& name = file.first;
    const auto& content = file.second;
    CAPTURE(name);
    if (name.ends_with(".unfinished")) continue;
    if (name.ends_with(".safetensors")) {
      CHECK_NOTHROW(rounds_in(out / name));
    } else if (name == "config.json") {
      CHECK(content.starts_with('{'));
      CHECK(content.ends_with('}'));
    } else if (name == "costs.csv" || name == "picture.gp") {
      CHECK(content.ends_with('\n'));
    } else {
      REQUIRE(expected.count(name) == 1);
      CHECK(content == expected.at(name));
    }
  }
}

/// A run with a checkpoint in each round and an evaluation in every second.
struct long_run {
  const workplace& place;
  words methods;
  int rounds;  // even
  words settings;
  std::map<std::string, std::string> expected = {};  // of a run that nobody killed

  words arguments(const std::string& out, int checkpoints = 1) const {
    std::string names;
    for (const std::string& m : methods) names += (names.empty() ? "" : ",") + m;
    const words own = {"--method", names, "--out", place.at(out).string()};
    return own + settings + words{"--rounds", std::to_string(rounds), "--eval-every",
                                  "2",        "--checkpoint-every",   std::to_string(checkpoints)};
  }
  void run_unbroken() {
    REQUIRE(place.run(arguments("unbroken", 0)) == 0);
    expected = results_in(place.at("unbroken"));
    REQUIRE(count_of(expected, "-nodes.csv") == methods.size());
  }
  /// Runs the rest: all that checkpoints have is not trained again, and nothing is different.
  void finish(const std::string& out, const words& more = {}) const {
    std::map<std::string, int> before;
    for (const std::string& m : methods) before[m] = rounds_in(checkpoint_in(place.at(out), m));
    REQUIRE(place.run(arguments(out) + words{"--resume"} + more) == 0);
    const words lines = split(place.errors(), '\n');
    for (const std::string& m : methods) {
      CAPTURE(m);
      const auto own = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(m + " (");
      });
      // One that tells of the checkpoint, where it has an evaluation, and one an evaluation. From 4
      // rounds on that is less than a run from the start has.
      CHECK(own == (before[m] >= 2 ? 1 : 0) + rounds / 2 - before[m] / 2);
      CHECK(rounds_in(checkpoint_in(place.at(out), m)) == rounds);
    }
    CHECK(results_in(place.at(out)) == expected);
    for (const auto& file : files_of(place.at(out))) CHECK(!file.first.ends_with(".unfinished"));
  }
};

/// Kills a run once a method has a checkpoint of some rounds, but not yet its last. When it was too
/// late for that, it begins anew.
void kill_behind(const long_run& run, const std::string& out, const std::string& method,
                 int rounds) {
  const path checkpoint = checkpoint_in(run.place.at(out), method);
  for (int attempt = 0; attempt < 100; ++attempt) {
    {
      child_program program = run.place.start(run.arguments(out) + words{"--resume"});
      while (rounds_in(checkpoint) < rounds && !program.has_ended()) usleep(200);
      program.kill();
    }
    check_whole(run.place.at(out), run.expected);
    const int done = rounds_in(checkpoint);
    REQUIRE(done >= rounds);
    if (done < run.rounds) return;
    std::filesystem::remove(checkpoint);
  }
  FAIL("no run could be killed before its end");
}

/// Has a run killed while it writes a method's next checkpoint, by a limit on the size of files.
void kill_in_the_midst_of(const long_run& run, const std::string& out, const std::string& method) {
  const path folder = run.place.at(out), checkpoint = checkpoint_in(folder, method);
  const std::string before = text_of(checkpoint);
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  rlimit lower = limit;
  lower.rlim_cur = before.size() / 2;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &lower) == 0);
  child_program program = run.place.start(run.arguments(out) + words{"--resume"});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(program.wait() == -1);

  CHECK(text_of(checkpoint) == before);
  std::size_t unfinished = 0;
  for (const auto& file : files_of(folder)) {
    if (!file.first.ends_with(".unfinished")) continue;
    CHECK(file.first.starts_with(checkpoint.filename().string() + "."));
    CHECK(file.second.size() == before.size() / 2);
    ++unfinished;
  }
  CHECK(unfinished == 1);
  check_whole(folder, run.expected);
}

words all_methods(const workplace& place) {
  REQUIRE(place.run({"--help"}) == 0);
  words out;
  bool behind_title = false;
  for (const std::string& line : split(place.printed(), '\n')) {
    if (behind_title && line.size() > 4 && line[4] != ' ')
      out.push_back(line.substr(4, line.find(' ', 4) - 4));
    behind_title = behind_title || line.starts_with("The methods");
  }
  REQUIRE(std::count(out.begin(), out.end(), "fedrolex") == 1);
  REQUIRE(std::count(out.begin(), out.end(), "fedavg-smallest") == 1);
  return out;
}

/// Fails with one line that holds a text, and prints nothing else.
void check_refused(const workplace& place, const words& arguments, const std::string& why) {
  CHECK(place.run(words{"--rounds", "2"} + arguments) == 1);
  const std::string errors = place.errors();
  CAPTURE(errors);
  CHECK(errors.starts_with("subfed_trainer: "));
  CHECK(errors.find(why) != std::string::npos);
  CHECK(errors.find('\n') == errors.size() - 1);
  CHECK(place.printed().empty());
}

}  // namespace

TEST_CASE("a run that is killed after a checkpoint of each method continues to the same results") {
  const workplace place;
  long_run run{place, {"fedrolex", "scaffold", "feddrop"}, 16, {"--server-optimizer", "yogi"}};
  run.run_unbroken();
  kill_behind(run, "out", "fedrolex", 2);
  kill_behind(run, "out", "scaffold", 3);
  kill_in_the_midst_of(run, "out", "scaffold");
  kill_behind(run, "out", "feddrop", 4);
  run.finish("out");
}

TEST_CASE("so does one that weighs elements by how often they were sent") {
  const workplace place;
  long_run run{place, {"fedrolex"}, 40, {"--weighting", "both", "--weight-each", "element"}};
  run.run_unbroken();
  kill_behind(run, "out", "fedrolex", 4);
  kill_in_the_midst_of(run, "out", "fedrolex");
  run.finish("out", {"--threads", "1"});
}

TEST_CASE("and one of all methods that is killed at any time, again and again") {
  const workplace place;
  long_run run{place, all_methods(place), 4, {"--server-optimizer", "adam"}};
  const auto begin = std::chrono::steady_clock::now();
  run.run_unbroken();
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);

  std::mt19937 random(std::random_device{}());
  for (int kills = 0; kills < 4; ++kills) {
    child_program program = place.start(run.arguments("out") + words{"--resume"});
    std::this_thread::sleep_for(took * (random() % 1000) / 1000);
    program.kill();
    check_whole(place.at("out"), run.expected);
  }
  run.finish("out");
}

TEST_CASE("every method makes a line of the table, and config.json makes the run again") {
  const workplace place;
  const words methods = all_methods(place);
  std::string names;
  for (const std::string& m : methods) names += (names.empty() ? "" : ",") + m;
  const std::string out = place.at("out").string(), other = place.at("other").string();
  REQUIRE(place.run({"--method", names, "--rounds", "1", "--dirichlet", "0.5", "--seed", "7",
                     "--lr", "0.1", "--capacity-mix", "1:0.5,1/8:0.5", "--out", out}) == 0);
  const words lines = split(place.printed(), '\n');
  for (const std::string& m : methods) {
    CAPTURE(m);
    CHECK(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
            return line.starts_with(m + " ");
          }) == 3);  // of accuracy, of costs, and of times
  }
  const auto results = results_in(out);
  for (const char* ending : {"-nodes.csv", "-clients.csv", "-capacities.csv"}) {
    CHECK(count_of(results, ending) == methods.size());
  }
  CHECK(count_of(results, "-keep.csv") == 2);  // of FedDrop and UniDrop

  // Nothing but the program's name: all else is in the file.
  REQUIRE(child_program({SUBFED_TRAINER_PROGRAM, "--config", out + "/config.json", "--out", other},
                        place.at("stdout"), place.at("stderr"))
              .wait() == 0);
  CHECK(results_in(other) == results);
  std::string config = text_of(path(out) / "config.json");
  const auto where = config.find('"' + out + '"');
  REQUIRE(where != std::string::npos);
  config.replace(where, out.size() + 2, '"' + other + '"');
  CHECK(text_of(path(other) / "config.json") == config);
}

TEST_CASE("several seeds are the runs of each alone, and continue where they were killed") {
  const workplace place;
  const words settings = split("--method fedrolex,feddrop --eval-every 2", ' ');
  const auto to = [&](const std::string& out) { return words{"--out", place.at(out).string()}; };
  const words four = {"--rounds", "4"};
  REQUIRE(place.run(settings + four + to("alone") + words{"--seed", "7"}) == 0);
  const words several = settings + to("all") + words{"--seeds", "3,7", "--checkpoint-every", "1"};
  const path last = checkpoint_in(place.at("all") / "seed-7", "fedrolex");
  {
    child_program program = place.start(several + four);
    while (rounds_in(last) < 1 && !program.has_ended()) usleep(200);
    program.kill();
  }
  check_refused(place, several, "holds an earlier run");
  REQUIRE(place.run(several + four + words{"--resume"}) == 0);
  CHECK(results_in(place.at("all") / "seed-7") == results_in(place.at("alone")));
  CHECK(results_in(place.at("all") / "seed-3") != results_in(place.at("alone")));
  const words summary = split(text_of(place.at("all") / "summary.csv"), '\n');
  REQUIRE(summary.size() == 3);
  CHECK(summary[1].starts_with("fedrolex,2,0."));
  CHECK(place.printed().find("seeds 3, 7\n") != std::string::npos);
  CHECK(place.errors().find("feddrop, seed 7 (4 of 4)") != std::string::npos);
  for (const std::string& line : split(place.printed(), '\n')) {
    CAPTURE(line);
    CHECK((line.size() <= 80 || line.find(place.at("all").string()) != std::string::npos));
  }
  // From its file, somewhere else.
  REQUIRE(
      child_program({SUBFED_TRAINER_PROGRAM, "--config", (place.at("all") / "config.json").string(),
                     "--out", place.at("again").string()},
                    place.at("stdout"), place.at("stderr"))
          .wait() == 0);
  CHECK(results_in(place.at("again")) == results_in(place.at("all")));
  CHECK(results_in(place.at("again") / "seed-3") == results_in(place.at("all") / "seed-3"));
}

TEST_CASE("texts are trained by the methods that can, made again, and made longer") {
  workplace place;
  place.data = place.at("text");
  write_text(place.data, "A title\n" + verses_text(3, 60));
  for (const std::string model : {"char-lstm", "transformer"}) {
    CAPTURE(model);
    // Between them all methods but fedavg and fedavg-smallest, of which fedprox is a kind.
    const std::string methods = model == "transformer" ? "fedrolex,heterofl,fjord,scaffold"
                                                       : "federated-dropout,fjord,ensemble,fedprox";
    const auto to = [&](const std::string& out, const char* rounds) {
      words all = {"--model",
                   model,
                   "--method",
                   methods,
                   "--rounds",
                   rounds,
                   "--lr-schedule",
                   "constant",
                   "--distillation",
                   "--capacity-mix",
                   "1:0.5,1/8:0.5",
                   "--out",
                   place.at(out + model).string()};
      return model == "transformer" ? all + words{"--vocabulary", "8"} : all;
    };
    REQUIRE(place.run(to("out", "2")) == 0);
    CHECK(place.printed().find("sequence") != std::string::npos);
    CHECK(place.printed().find("image") == std::string::npos);
    const auto results = results_in(place.at("out" + model));
    CHECK(count_of(results, "-capacities.csv") == 4);
    for (const auto& file : results) {
      CAPTURE(file.first);
      CHECK(file.second.find("nan") == std::string::npos);
    }
    // Each takes as long as the run: one of them for each model.
    if (model == "char-lstm") {
      REQUIRE(child_program({SUBFED_TRAINER_PROGRAM, "--config",
                             (place.at("out" + model) / "config.json").string(), "--threads", "1",
                             "--out", place.at("again" + model).string()},
                            place.at("stdout"), place.at("stderr"))
                  .wait() == 0);
      CHECK(results_in(place.at("again" + model)) == results);
    } else {
      REQUIRE(place.run(to("longer", "1")) == 0);
      REQUIRE(place.run(to("longer", "2") + words{"--resume"}) == 0);
      CHECK(results_in(place.at("longer" + model)) == results);
    }
  }
  const words text = {"--model", "char-lstm", "--out", place.at("refused").string()};
  check_refused(place, text + words{"--method", "fedavg,feddrop"}, "feddrop scales channels");
  check_refused(place, text + words{"--method", "fedavg,unidrop"}, "unidrop scales channels");
  const words words_of = {"--model", "transformer", "--out", place.at("refused").string()};
  check_refused(place, words_of + words{"--vocabulary", "99"},
                "the text has only 10 different words");
  write_text(place.data, verses_text(1, 10));
  check_refused(place, text, "--clients is too large for this text");
  write_text(place.data, verses_text(1, 3));
  check_refused(place, text, "which cannot be halved");
  place.data = place.at("none");
  check_refused(place, text, "apt-get install bible-kjv-text");
  CHECK(!std::filesystem::exists(place.at("refused")));
}

TEST_CASE("what cannot be meant is refused in a line, before anything is trained or written") {
  const workplace place;
  const path out = place.at("out");
  const words to = {"--out", out.string()};
  check_refused(place, to + words{"--method", "fedsomething"}, "no method \"fedsomething\"");
  check_refused(place, to + words{"--nonsense"}, "--nonsense");
  // The second method cannot: the first is not trained.
  check_refused(place, to + words{"--method", "fedavg,ensemble", "--members", "5"}, "5 members");
  check_refused(place, to + words{"--method", "fedavg,fjord", "--widths", "1/2,1"},
                "can hold none");
  check_refused(place, to + words{"--config", place.at("none.json").string()}, "none.json");
  std::filesystem::rename(place.at("data"), place.at("elsewhere"));
  check_refused(place, to, "is missing");
  std::filesystem::rename(place.at("elsewhere"), place.at("data"));
  CHECK(!std::filesystem::exists(out));
  write_text(out, "a file");
  check_refused(place, to, "cannot be written");
  check_refused(place, {"--out", (out / "below").string()}, "cannot be written");
  CHECK(text_of(out) == "a file");
}

TEST_CASE("checkpoints that are damaged or of another run are refused, and all files stay") {
  const workplace place;
  const path out = place.at("out"), checkpoint = checkpoint_in(out, "heterofl");
  // The first of the methods has nothing to continue from.
  const words both = {"--method", "fedavg,heterofl", "--out", out.string(), "--resume"};
  REQUIRE(place.run({"--method", "heterofl", "--out", out.string(), "--rounds", "2"}) == 0);
  const auto before = files_of(out);

  check_refused(place, both + words{"--seed", "2"}, "another --seed (1) than this run has (2)");
  CHECK(files_of(out) == before);

  const std::string whole = text_of(checkpoint);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, 1000), whole.substr(0, whole.size() - 1),
        std::string(100'000, '\xAB')}) {
    write_text(checkpoint, damaged);
    check_refused(place, both, checkpoint.string());
    CHECK(text_of(checkpoint) == damaged);
    write_text(checkpoint, whole);
    CHECK(files_of(out) == before);
  }
}

TEST_CASE(
    "an earlier run is not overwritten without a word, and no file of it passes for the new") {
  const workplace place;
  const path out = place.at("out");
  const words to = {"--out", out.string()}, two = to + words{"--rounds", "2"};
  REQUIRE(place.run(two + words{"--method", "heterofl,fedavg"}) == 0);
  const auto before = files_of(out);
  check_refused(place, to + words{"--method", "fedavg"},
                "holds an earlier run (config.json, ..): "
                "--resume continues it, --overwrite removes it");
  CHECK(files_of(out) == before);
  // Whatever is wrong is found before the earlier run is gone.
  check_refused(place, to + words{"--method", "ensemble", "--members", "5", "--overwrite"},
                "5 members");
  CHECK(files_of(out) == before);

  write_text(out / "notes.txt", "mine");
  REQUIRE(place.run(two + words{"--method", "fedavg", "--overwrite", "--seed", "2"}) == 0);
  auto after = files_of(out);
  CHECK(after.count("heterofl.csv") == 0);
  CHECK(after.count("heterofl.safetensors") == 0);
  CHECK(after.at("notes.txt") == "mine");
  CHECK(after.at("fedavg.csv") != before.at("fedavg.csv"));

  // A method beside: what is of the run before is said.
  REQUIRE(place.run(two + words{"--method", "heterofl", "--resume", "--seed", "2"}) == 0);
  CHECK(place.errors().find("has no checkpoint of heterofl, which starts over.\n") !=
        std::string::npos);
  CHECK(place.printed().find("The files of fedavg are from an earlier run.\n") !=
        std::string::npos);
  CHECK(results_in(out).at("fedavg.csv") == after.at("fedavg.csv"));
}

TEST_CASE("a second run in a folder is refused at once, and the first continues") {
  const workplace place;
  const words run = {"--method",           "fedavg", "--rounds", "400",
                     "--checkpoint-every", "1",      "--out",    place.at("out").string()};
  child_program first(
      words{SUBFED_TRAINER_PROGRAM, "--data", place.at("data").string(), "--clients", "6",
            "--participation", "0.5", "--samples", "12", "--batch", "6"} +
          run,
      place.at("stdout1"), place.at("stderr1"));
  while (rounds_in(checkpoint_in(place.at("out"), "fedavg")) < 1 && !first.has_ended())
    usleep(1000);
  for (const char* how : {"--resume", "--overwrite"}) {
    CHECK(place.run(run + words{how}) == 1);
    CHECK(place.errors() == "subfed_trainer: Another run is using the folder " +
                                place.at("out").string() + "; --out names another.\n");
  }
  CHECK(!first.has_ended());
  CHECK(first.end_by(SIGTERM) == SIGTERM);
}

TEST_CASE("Ctrl-C and SIGTERM end a run with one sentence, and it continues from there") {
  const workplace place;
  long_run run{place, {"scaffold"}, 40, {"--server-optimizer", "yogi"}};
  run.run_unbroken();
  for (const int signal : {SIGINT, SIGTERM}) {
    const path checkpoint = checkpoint_in(place.at("out"), "scaffold");
    // No checkpoint is due: what there is of it afterwards has been written for the signal.
    child_program program = place.start(run.arguments("out", 1000) + words{"--resume"});
    const auto has_begun = [&] {
      return place.errors().find("scaffold (1 of 1)") != std::string::npos;
    };
    while (!has_begun() && !program.has_ended()) usleep(500);
    CHECK(program.end_by(signal) == signal);
    const int done = rounds_in(checkpoint);
    CHECK(done >= 2);
    REQUIRE(done < 40);
    const words lines = split(place.errors(), '\n');
    CHECK(lines.back() == "subfed_trainer: Stopped after round " + std::to_string(done) +
                              " of scaffold; with --resume the same command continues from the "
                              "checkpoint in " +
                              place.at("out").string() + ".");
    CHECK(place.printed().empty());
  }
  run.finish("out");
  // A shell sees 130.
  child_program program = place.start(run.arguments("none", 0));
  while (place.errors().find("scaffold (") == std::string::npos && !program.has_ended())
    usleep(500);
  CHECK(program.end_by(SIGINT) == SIGINT);
  CHECK(place.errors().ends_with("nothing of it is kept, as --checkpoint-every is 0.\n"));
  CHECK(results_in(place.at("none")).empty());
}

TEST_CASE("a finished run gets longer with the files of a straight one, to the byte") {
  const workplace place;
  const auto to = [&](const char* out, const char* rounds) {
    return words{"--method", "fedrolex", "--lr-schedule",
                 "constant", "--out",    place.at(out).string(),
                 "--rounds", rounds};
  };
  REQUIRE(place.run(to("straight", "6")) == 0);
  REQUIRE(place.run(to("out", "3")) == 0);
  REQUIRE(place.run(to("out", "6") + words{"--resume"}) == 0);
  CHECK(results_in(place.at("out")) == results_in(place.at("straight")));
  REQUIRE(place.run(to("out", "8") + words{"--resume", "--eval-every", "7", "--threads", "1",
                                           "--checkpoint-every", "3"}) == 0);
  CHECK(place.run({"--method", "fedrolex", "--out", place.at("out").string(), "--rounds", "9",
                   "--resume"}) == 1);
  CHECK(place.errors().find("another --lr-schedule (\"constant\") than this run has (\"step\"): "
                            "round 6 of 8, which is finished") != std::string::npos);
}

TEST_CASE("the first line after --resume is the one that the unbroken run had") {
  const workplace place;
  long_run run{place, {"fedrolex"}, 8, {}};
  run.run_unbroken();
  const words lines = split(place.errors(), '\n');
  REQUIRE(place.run(words{"--method", "fedrolex", "--lr-schedule", "constant", "--rounds", "4",
                          "--eval-every", "2", "--out", place.at("out").string()}) == 0);
  REQUIRE(place.run(words{"--method", "fedrolex", "--lr-schedule", "constant", "--rounds", "8",
                          "--eval-every", "2", "--out", place.at("out").string(), "--resume"}) ==
          0);
  const auto without_time = [](const std::string& line) {
    return line.substr(0, line.rfind("  "));
  };
  CHECK(without_time(split(place.errors(), '\n').front()) == without_time(lines.at(1)));
  CHECK(split(place.errors(), '\n').front().find(" 0:00 left") == std::string::npos);
}

TEST_CASE("what is printed fits 80 columns, the line of progress the terminal") {
  const workplace place;
  REQUIRE(place.run({"--help"}) == 0);
  for (const std::string& line : split(place.printed(), '\n')) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  REQUIRE(place.run({"--method", "federated-dropout", "--rounds", "1", "--out",
                     place.at("out").string()}) == 0);
  for (const std::string& line : split(place.printed(), '\n')) {
    CAPTURE(line);
    const bool is_long = line.size() > 80;
    CHECK((!is_long || line.find(' ') == std::string::npos ||
           line.find(place.at("out").string()) != std::string::npos));
  }
  for (const unsigned columns : {0u, 40u}) {  // 0: it does not say
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    REQUIRE(grantpt(terminal) == 0);
    REQUIRE(unlockpt(terminal) == 0);
    const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
    REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
    child_program program(
        words{SUBFED_TRAINER_PROGRAM, "--data", place.at("data").string(), "--clients", "6",
              "--participation", "0.5", "--samples", "12", "--method", "federated-dropout,feddrop",
              "--rounds", "3", "--overwrite", "--out", place.at("out").string()},
        place.at("stdout"), ptsname(terminal));
    std::string shown;
    while (true) {
      const bool ended = program.has_ended();
      pollfd wait{terminal, POLLIN, 0};
      char some[1000];
      if (poll(&wait, 1, 10) == 1 && (wait.revents & POLLIN) != 0) {
        const ssize_t got = read(terminal, some, sizeof some);
        if (got > 0) shown.append(some, static_cast<std::size_t>(got));
      } else if (ended) {
        break;
      }
    }
    close(terminal);
    CHECK(program.wait() == 0);
    CHECK(shown.find("feddrop (2 of 2)  round 3/3") != std::string::npos);
    for (const std::string& line : split(shown, '\r')) {
      CAPTURE(line);
      CHECK(line.size() < (columns == 0 ? 80 : columns));
    }
  }
}

TEST_CASE("what is printed to a full disk fails with a sentence") {
  const workplace place;
  for (const words& arguments : {words{"--help"}, words{"--method", "fedavg", "--rounds", "1",
                                                        "--out", place.at("out").string()}}) {
    child_program program(
        words{SUBFED_TRAINER_PROGRAM, "--data", place.at("data").string()} + arguments, "/dev/full",
        place.at("stderr"));
    CHECK(program.wait() == 1);
    CHECK(place.errors().find(": No space left on device") != std::string::npos);
  }
}
