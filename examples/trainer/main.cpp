// SPDX-License-Identifier: MIT
/// subfed_trainer: federated training on clients of different capacity, several methods side by side.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "failure.hpp"
#include "federation.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace trainer {
namespace {

std::string described(const options& settings) {
  const std::string labels = settings.dirichlet
                                 ? fmt::format("labels by Dirichlet {}", *settings.dirichlet)
                                 : fmt::format("{} labels each", settings.labels);
  return fmt::format("Fashion-MNIST, {} clients of capacity {}, {}", settings.cohort.clients,
                     settings.mix, labels);
}

void run_all(const options& settings) {
  std::vector<const named_method*> methods;
  for (const std::string& name : settings.methods) methods.push_back(&find_method(name));
  const at::Device device = find_device(settings.device);
  const data_split data = load_fashion_mnist(settings.data);
  settle_process();
  const federation all{device, device_data(data.train, device), device_data(data.test, device),
                       partition(data.train.labels, {.seed = settings.seed(),
                                                     .clients = settings.cohort.clients,
                                                     .labels_each = settings.labels,
                                                     .dirichlet = settings.dirichlet,
                                                     .samples_each = settings.samples}),
                       checksum(data)};
  pool workers(static_cast<std::size_t>(settings.threads), settle_thread);
  for (const named_method* m : methods) check(*m, settings, all, workers);
  prepare_folder(settings.out);
  common::write_file(std::filesystem::path(settings.out) / "config.json", settings.config);

  std::vector<method_result> results;
  {
    live_line line(settings.methods, settings.rounds);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      results.push_back(run(*methods[m], settings, all, workers, [&](const round_report& r) {
        if (r.resumed) line.done_before(m, r.round);
        line.show(m, r.round, r.train_loss, r.on_test ? &*r.on_test : nullptr);
      }));
      write_csv(results.back(), settings.out);
    }
  }

  write_costs(results, settings.out);
  const auto picture = draw_picture(results, described(settings), settings.out);

  const subfed::cohort_model cohorts(settings.cohort);
  fmt::print("{}; {} rounds, {} clients a round, seed {}\n\n{}\n", described(settings),
             settings.rounds, cohorts.asked(), settings.seed(), table(results));
  fmt::print(
      "local: the mean over clients, each on the test images of its labels and with its labels to\n"
      "choose from. held: how often a node was part of a client's model, from the node least "
      "often\n"
      "held to the most. never: nodes that no client, or no client that holds a part only, ever "
      "held.\n\n");
  fmt::print(
      "Accuracy over rounds and how often each node was held: {}/<method>.csv and "
      "<method>-nodes.csv.\n",
      settings.out);
  if (picture.empty()) {
    fmt::print(
        "There is no picture, as gnuplot is not installed or failed; {}/picture.gp is its "
        "script.\n",
        settings.out);
  } else {
    fmt::print("The picture: {}.\n", picture.string());
  }
  fmt::print("The run can be made again with --config {}/config.json.\n", settings.out);
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  try {
    const auto settings = trainer::parse_options(argc, argv, trainer::method_names());
    if (settings) trainer::run_all(*settings);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "subfed_trainer: {}\n", error.what());
    return 1;
  }
}
