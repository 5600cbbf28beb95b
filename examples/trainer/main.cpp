// SPDX-License-Identifier: MIT
/// subfed_trainer: federated training on clients of different capacity, several methods side by side.
#include <fmt/format.h>

#include <common/program.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "failure.hpp"
#include "federation.hpp"
#include "folder.hpp"
#include "interruption.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "report.hpp"
#include "wrapped.hpp"

namespace trainer {
namespace {

std::string described(const options& settings) {
  const std::string labels = settings.dirichlet
                                 ? fmt::format("labels by Dirichlet {}{}", *settings.dirichlet,
                                               settings.split_by_class ? " a class" : "")
                                 : fmt::format("{} labels each", settings.labels);
  return fmt::format("Fashion-MNIST, {} clients of capacity {}, {}", settings.cohort.clients,
                     settings.mix, labels);
}

/// What is worth knowing before the first round.
void print_notes(const options& settings) {
  for (const std::string& note : settings.notes) fmt::print(stderr, "subfed_trainer: {}\n", note);
  if (!settings.resume) return;
  for (const std::string& name : settings.methods) {
    const auto checkpoint = std::filesystem::path(settings.out) / (name + ".safetensors");
    if (std::filesystem::exists(checkpoint)) continue;
    fmt::print(stderr, "subfed_trainer: {} has no checkpoint of {}, which starts over.\n",
               settings.out, name);
  }
}

/// Text of any length in lines of a terminal.
void print_wrapped(const std::string& text) { fmt::print("{}\n", wrapped(text)); }

void run_all(const options& settings) {
  const std::vector<method_name> known = method_names();
  std::vector<const named_method*> methods;
  for (const std::string& name : settings.methods) methods.push_back(&find_method(name));
  folder_lock lock;
  ranks::on_first([&] {
    lock.take(settings.out);
    check_no_earlier_run(settings, known);
  });
  const at::Device device = find_device(settings.device);
  data_split data;
  ranks::together([&] { data = load_fashion_mnist(settings.data); });
  make_process_repeatable();
  const federation all{device, device_data(data.train, device), device_data(data.test, device),
                       partition(data.train.labels, {.seed = settings.seed(),
                                                     .clients = settings.cohort.clients,
                                                     .labels_each = settings.labels,
                                                     .dirichlet = settings.dirichlet,
                                                     .by_class = settings.split_by_class,
                                                     .samples_each = settings.samples}),
                       checksum(data)};
  pool workers(static_cast<std::size_t>(settings.threads), make_thread_repeatable);
  ranks::together([&] {
    for (const named_method* m : methods) check(*m, settings, all, workers);
  });
  ranks::on_first([&] {
    prepare_folder(settings.out);
    lock.take(settings.out);
    check_no_earlier_run(settings, known);  // one that was faster
    if (settings.overwrite) {
      for (const std::string& name : files_of_runs(settings.out, known)) {
        std::filesystem::remove(std::filesystem::path(settings.out) / name);
      }
    }
    common::write_file(std::filesystem::path(settings.out) / "config.json", settings.config);
    print_notes(settings);
  });

  std::vector<method_result> results;
  {
    const stop_on_signals signals;
    std::optional<live_line> line;
    if (ranks::is_first()) line.emplace(settings.methods, settings.rounds);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      results.push_back(run(*methods[m], settings, all, workers, [&](const round_report& r) {
        if (!line) return;
        if (r.resumed) line->done_before(r.before.sum());
        line->show(m, r.round, r.train_loss, r.on_test ? &*r.on_test : nullptr);
      }));
      ranks::on_first([&] { write_csv(results.back(), settings.out); });
    }
  }
  if (!ranks::is_first()) return;

  write_costs(results, settings.out);
  const auto picture = draw_picture(results, described(settings), settings.out);

  const subfed::cohort_model cohorts(settings.cohort);
  print_wrapped(fmt::format("{}; {} rounds, {} clients per round, seed {}", described(settings),
                            settings.rounds, cohorts.asked(), settings.seed()));
  fmt::print("\n{}\n", table(results));
  print_wrapped(
      "local: the mean over clients, each on the test images of its labels and choosing only among "
      "its labels. held: how often a node was part of a client's model, from the least to the most "
      "often held node. never: nodes that no client ever held, or none that holds only a part. "
      "MFLOPs: multiply-adds of the forward passes that clients made, per image.");
  fmt::print("\n");
  print_wrapped(
      fmt::format("Accuracy over rounds and how often each node was held: {}/<method>.csv and "
                  "<method>-nodes.csv.",
                  settings.out));
  print_wrapped(picture.empty()
                    ? fmt::format("There is no picture, as gnuplot is not installed or failed; "
                                  "{}/picture.gp is its script.",
                                  settings.out)
                    : fmt::format("The picture: {}.", picture.string()));
  for (const std::string& name : other_methods(settings.out, known, settings.methods)) {
    print_wrapped(fmt::format("The files of {} are from an earlier run.", name));
  }
  print_wrapped(fmt::format("To repeat the run: --config {}/config.json.", settings.out));
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  namespace ranks = trainer::ranks;
  return common::run_program("subfed_trainer", [&] {
    std::string out;
    ranks::start(argc, argv);
    try {
      std::optional<trainer::options> settings;
      ranks::together(
          [&] { settings = trainer::parse_options(argc, argv, trainer::method_names()); });
      if (settings) {
        out = settings->out;
        trainer::run_all(*settings);
      }
    } catch (const trainer::interruption& stopped) {
      fmt::print(stderr, "subfed_trainer: {}\n", trainer::text_of(stopped, out));
      trainer::end_by_signal();
    } catch (const ranks::common_failure&) {
      const bool speaks = ranks::is_first();
      ranks::finish();
      if (speaks) throw;
      return 1;
    } catch (const std::exception& error) {
      if (ranks::count() > 1) ranks::abandon(error.what());
      ranks::finish();
      throw;
    }
    ranks::finish();
    return 0;
  });
}
