// SPDX-License-Identifier: MIT
/// subfed_trainer: federated training on clients of different capacity, several methods side by side.
#include <fmt/format.h>

#include <common/program.hpp>
#include <common/wrapped.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "federation.hpp"
#include "folder.hpp"
#include "interruption.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "report.hpp"
#include "seeds.hpp"
#include "text_data.hpp"

namespace trainer {
namespace {

std::string described(const options& settings) {
  if (data_of(settings.model) == data_kind::text) {
    std::string network = settings.model == model_kind::char_lstm
                              ? "character LSTM"
                              : fmt::format("Transformer, {} words", settings.vocabulary);
    if (settings.width != 1) network += fmt::format(", {} times as wide", settings.width);
    return fmt::format("{}, {}, {} clients of capacity {}",
                       std::filesystem::path(settings.data).filename().string(), network,
                       settings.cohort.clients, settings.mix);
  }
  const std::string labels = settings.dirichlet
                                 ? fmt::format("labels by Dirichlet {}{}", *settings.dirichlet,
                                               settings.split_by_class ? " a class" : "")
                                 : fmt::format("{} labels each", settings.labels);
  std::string model = settings.model == model_kind::lenet          ? ", LeNet"
                      : settings.model == model_kind::cnn          ? ", the CNN of [Cheng]"
                      : settings.model == model_kind::pre_resnet18 ? ", PreResNet18"
                                                                   : "";
  if (settings.width != 1) model += fmt::format(", {} times as wide", settings.width);
  return fmt::format("Fashion-MNIST{}, {} clients of capacity {}, {}", model,
                     settings.cohort.clients, settings.mix, labels);
}

/// Says which methods start over although the run is to continue.
void print_missing_checkpoints(const options& settings) {
  if (!settings.resume) return;
  for (const std::string& name : settings.methods) {
    const auto checkpoint = std::filesystem::path(settings.out) / (name + ".safetensors");
    if (std::filesystem::exists(checkpoint)) continue;
    fmt::print(stderr, "subfed_trainer: {} has no checkpoint of {}, which starts over.\n",
               settings.out, name);
  }
}

/// Text of any length in lines of a terminal.
void print_wrapped(const std::string& text) { fmt::print("{}\n", common::wrapped(text)); }

/// A folder that a run will write to, and nobody else.
class claimed_folder {
 public:
  explicit claimed_folder(const options& settings) : settings_(settings) {
    lock_.take(settings_.out);
    check_no_earlier_run(settings_, known_);
  }
  void begin() {
    prepare_folder(settings_.out);
    lock_.take(settings_.out);
    check_no_earlier_run(settings_, known_);  // one that was faster
    if (settings_.overwrite) {
      for (const std::string& name : files_of_runs(settings_.out, known_)) {
        std::filesystem::remove(std::filesystem::path(settings_.out) / name);
      }
    }
    common::write_file(std::filesystem::path(settings_.out) / "config.json", settings_.config);
  }

 private:
  const options& settings_;
  std::vector<method_name> known_ = method_names();
  folder_lock lock_;
};

/// A run of all methods with one seed.
struct run_with_seed {
  options settings;
  federation all;
};

/// A run for each seed. `data`: of images or of a text; `deal`: its clients, by a run's options.
template <class Data, class Deal>
std::vector<run_with_seed> runs_with(const options& settings, const Data& data, at::Device device,
                                     const Deal& deal) {
  const device_data train(data.train, device), test(data.test, device);
  const std::string sum = checksum(data);
  std::vector<run_with_seed> out;
  const auto add = [&](options one) {
    std::vector<client> clients = deal(one);
    out.push_back({std::move(one), {device, train, test, std::move(clients), sum}});
  };
  for (const run_of_seed& one : settings.runs) add(settings.of(one));
  if (settings.runs.empty()) add(settings);
  return out;
}

std::vector<run_with_seed> runs_of(const options& settings, at::Device device) {
  if (data_of(settings.model) == data_kind::images) {
    data_split data;
    ranks::together([&] { data = load_fashion_mnist(settings.data); });
    return runs_with(settings, data, device, [&](const options& one) {
      return partition(data.train.labels, {.seed = one.seed(),
                                           .clients = one.cohort.clients,
                                           .labels_each = one.labels,
                                           .dirichlet = one.dirichlet,
                                           .by_class = one.split_by_class,
                                           .samples_each = one.samples});
    });
  }
  text_split data;
  ranks::together([&] {
    const std::vector<book> books = deal_books(read_books(settings.data), settings.cohort.clients);
    data = settings.model == model_kind::char_lstm ? cut_characters(books)
                                                   : cut_words(books, settings.vocabulary);
  });
  return runs_with(settings, data, device,
                   [&](const options& one) { return text_clients(data, one.seed(), one.samples); });
}

/// What the column "local" has.
std::string about_local(const options& settings) {
  return data_of(settings.model) == data_kind::text
             ? "local: the mean over clients, each on its own test sequences."
             : "local: the mean over clients, each on the test images of its labels and choosing "
               "only "
               "among its labels.";
}
/// What the column "MFLOPs" has.
std::string about_flops(std::span<const method_result> results) {
  return fmt::format("MFLOPs: multiply-adds of the forward passes that clients made, per {}.",
                     results.front().sample);
}

/// The lines around the table.
void print_title(const options& settings) {
  const subfed::cohort_model cohorts(settings.cohort);
  std::string seeds = fmt::format("seed {}", settings.seed());
  if (!settings.runs.empty()) {
    seeds = settings.runs.size() == 1 ? "seed" : "seeds";
    for (const run_of_seed& one : settings.runs) {
      seeds += fmt::format("{}{}", &one == &settings.runs.front() ? " " : ", ", one.seed);
    }
  }
  print_wrapped(fmt::format("{}; {} rounds, {} clients per round, {}", described(settings),
                            settings.rounds, cohorts.asked(), seeds));
}
void print_where(const options& settings, const std::filesystem::path& picture) {
  print_wrapped(picture.empty()
                    ? fmt::format("There is no picture, as gnuplot is not installed or failed; "
                                  "{}/picture.gp is its script.",
                                  settings.out)
                    : fmt::format("The picture: {}.", picture.string()));
  for (const std::string& name : other_methods(settings.out, method_names(), settings.methods)) {
    print_wrapped(fmt::format("The files of {} are from an earlier run.", name));
  }
  print_wrapped(fmt::format("To repeat the run: --config {}/config.json.", settings.out));
}

void report_one(std::span<const method_result> results, const options& settings,
                const std::filesystem::path& picture) {
  print_title(settings);
  fmt::print("\n{}\n", table(results));
  print_wrapped(about_local(settings) +
                " held: how often a node was part of a client's model, from the least to the most "
                "often held node. never: nodes that no client ever held, or none that holds only a "
                "part. " +
                about_flops(results));
  fmt::print("\n");
  print_wrapped(
      fmt::format("Accuracy over rounds and how often each node was held: {}/<method>.csv and "
                  "<method>-nodes.csv. Of clients, and of models by capacity: <method>-clients.csv "
                  "and <method>-capacities.csv.",
                  settings.out));
  print_where(settings, picture);
}

void report_seeds(std::span<const std::vector<method_result>> by_seed, const options& settings) {
  write_summary(by_seed, settings.out);
  const auto picture = draw_seeds(by_seed, described(settings), settings.out);
  print_title(settings);
  fmt::print("\n{}\n", table_of_seeds(by_seed));
  print_wrapped(
      "Means over the seeds. In parentheses: the standard deviation of a seed's accuracy, and the "
      "standard error of the mean difference between methods, taken seed by seed. " +
      about_local(settings) + " never: nodes that no client held that holds only a part. " +
      about_flops(by_seed.front()));
  fmt::print("\n");
  print_wrapped(fmt::format(
      "The same as numbers: {0}/summary.csv; each seed's run: {0}/seed-<seed>.", settings.out));
  print_where(settings, picture);
}

/// `folder`: where the run is that is under way.
void run_all(const options& settings, std::string& folder) {
  std::vector<const named_method*> methods;
  for (const std::string& name : settings.methods) methods.push_back(&find_method(name));
  const bool is_one = settings.runs.empty();
  std::list<options> of_folders = {settings};
  for (const run_of_seed& one : settings.runs) of_folders.push_back(settings.of(one));
  std::list<claimed_folder> folders;
  ranks::on_first([&] {
    for (const options& own : of_folders) folders.emplace_back(own);
  });
  const at::Device device = find_device(settings.device);
  make_process_repeatable();
  const std::vector<run_with_seed> runs = runs_of(settings, device);
  pool workers(static_cast<std::size_t>(settings.threads), make_thread_repeatable);
  ranks::together([&] {
    for (const run_with_seed& one : runs) {
      for (const named_method* m : methods) check(*m, one.settings, one.all, workers);
    }
  });
  ranks::on_first([&] {
    for (claimed_folder& own : folders) own.begin();
    for (const std::string& note : settings.notes) fmt::print(stderr, "subfed_trainer: {}\n", note);
    for (const run_with_seed& one : runs) print_missing_checkpoints(one.settings);
  });

  std::vector<std::vector<method_result>> by_seed;
  std::filesystem::path picture;
  {
    const stop_on_signals signals;
    std::vector<std::string> names;
    for (const run_with_seed& one : runs) {
      for (const std::string& name : settings.methods) {
        names.push_back(is_one ? name : fmt::format("{}, seed {}", name, one.settings.seed()));
      }
    }
    std::optional<live_line> line;
    if (ranks::is_first()) line.emplace(names, settings.rounds);
    for (const run_with_seed& one : runs) {
      folder = one.settings.out;
      std::vector<method_result>& results = by_seed.emplace_back();
      for (std::size_t m = 0; m < methods.size(); ++m) {
        const std::size_t number = (by_seed.size() - 1) * methods.size() + m;
        results.push_back(run(*methods[m], one.settings, one.all, workers, [&](const auto& r) {
          if (!line) return;
          if (r.resumed) line->done_before(r.before.sum());
          line->show(number, r.round, r.train_loss, r.on_test ? &*r.on_test : nullptr);
        }));
        ranks::on_first([&] { write_csv(results.back(), one.settings.out); });
      }
      if (!ranks::is_first()) continue;
      write_costs(results, one.settings.out);
      picture = draw_picture(results, described(one.settings), one.settings.out);
    }
  }
  if (!ranks::is_first()) return;
  if (is_one) {
    report_one(by_seed.front(), settings, picture);
  } else {
    report_seeds(by_seed, settings);
  }
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
        trainer::run_all(*settings, out);
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
