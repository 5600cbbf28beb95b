// SPDX-License-Identifier: MIT
/// subfed_trainer: federated training on clients of different capacity, several methods side by side.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "failure.hpp"
#include "federation.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace trainer {
namespace {

std::string capacity_list(const options& settings) {
  std::string out;
  for (const share& s : settings.capacities) out += (out.empty() ? "" : ", ") + s.text;
  return out;
}

void run_all(const options& settings) {
  const at::Device device = find_device(settings.device);
  const data_split data = load_fashion_mnist(settings.data);
  settle_process();
  federation all{device, device_data(data.train, device), device_data(data.test, device),
                 partition(data.train.labels, {.seed = settings.seed,
                                               .clients = settings.clients,
                                               .labels_each = settings.labels,
                                               .samples_each = settings.samples,
                                               .capacities = settings.capacity_values()})};
  prepare_folder(settings.out);
  pool workers(static_cast<std::size_t>(settings.threads), settle_thread);

  std::vector<method_result> results;
  {
    live_line line(settings.methods, settings.capacity_values(), settings.rounds);
    for (std::size_t m = 0; m < settings.methods.size(); ++m) {
      results.push_back(
          run(settings.methods[m], settings, all, workers, [&](const round_report& r) {
            line.show(m, r.round, r.train_loss, r.on_test ? &*r.on_test : nullptr);
          }));
    }
  }

  for (const method_result& r : results) write_csv(r, settings.out);
  const std::string setting =
      fmt::format("Fashion-MNIST, {} clients of capacity {}, {} labels each", settings.clients,
                  capacity_list(settings), settings.labels);
  const auto picture = draw_picture(results, setting, settings.out);

  fmt::print("{}; {} rounds, {} clients a round, seed {}\n\n{}\n", setting, settings.rounds,
             cohort_size(settings.clients, settings.participation), settings.seed, table(results));
  fmt::print(
      "local: the mean over clients, each on the test images of its labels and with its labels to\n"
      "choose from. held: how often a node was part of a client's model, from the node least "
      "often\n"
      "held to the most. never: nodes that no client, or no client of capacity below 1, ever "
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

  seconds_spent sum;
  for (const method_result& r : results) {
    sum.cutting += r.seconds.cutting;
    sum.training += r.seconds.training;
    sum.averaging += r.seconds.averaging;
    sum.evaluating += r.seconds.evaluating;
  }
  fmt::print(stderr,
             "Wall time: {:.2f} s cutting sub-models, {:.2f} s averaging them, {:.1f} s training, "
             "{:.1f} s evaluating.\n",
             sum.cutting, sum.averaging, sum.training, sum.evaluating);
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  try {
    const auto settings = trainer::parse_options(argc, argv);
    if (settings) trainer::run_all(*settings);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "subfed_trainer: {}\n", error.what());
    return 1;
  }
}
