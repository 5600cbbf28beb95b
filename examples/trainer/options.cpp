// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <common/text.hpp>
#include <thread>

#include "failure.hpp"
#include "partition.hpp"

namespace trainer {
namespace {

using common::number;
using common::pieces;

void require(bool holds, std::string_view option, std::string_view expected, double found) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected.", option, found, expected));
}

void check(const options& o) {
  const auto at_least_one = [](std::string_view option, std::int64_t value) {
    require(value >= 1, option, "at least 1", static_cast<double>(value));
  };
  at_least_one("--rounds", o.rounds);
  at_least_one("--clients", o.clients);
  at_least_one("--samples", o.samples);
  at_least_one("--batch", o.batch);
  at_least_one("--local-epochs", o.local_epochs);
  at_least_one("--threads", o.threads);
  at_least_one("--eval-every", o.eval_every);
  require(o.threads <= 1024, "--threads", "at most 1024", static_cast<double>(o.threads));
  require(o.clients <= 1'000'000, "--clients", "at most 1000000", static_cast<double>(o.clients));
  require(o.rounds <= 10'000'000, "--rounds", "at most 10000000", static_cast<double>(o.rounds));
  require(o.labels >= 1 && o.labels <= 10, "--labels", "1 to 10", static_cast<double>(o.labels));
  // Written so that NaN is refused too.
  require(o.participation > 0 && o.participation <= 1, "--participation",
          "more than 0 and at most 1", o.participation);
  require(o.lr > 0 && std::isfinite(o.lr), "--lr", "a positive number", o.lr);
  require(o.momentum >= 0 && o.momentum < 1, "--momentum", "at least 0 and below 1", o.momentum);
  require(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "--weight-decay",
          "a number that is not negative", o.weight_decay);
  for (const double at : o.decay_at) {
    require(at >= 0 && at <= 1, "--decay-at", "0 to 1", at);
  }
  cohort_size(o.clients, o.participation);
}

}  // namespace

std::vector<subfed::capacity> options::capacity_values() const {
  std::vector<subfed::capacity> values;
  for (const share& s : capacities) values.push_back(s.capacity);
  return values;
}

std::optional<options> parse_options(int argc, const char* const* argv) {
  options o;
  o.threads = (std::max)(1u, std::thread::hardware_concurrency());
  std::string capacities = "1,1/2,1/4,1/8,1/16";
  std::string methods;
  for (const method& m : all_methods()) methods += (methods.empty() ? "" : ",") + m.name;
  std::string decay_at = "0.5,0.75";

  CLI::App app(
      "Trains one model on clients of different capacity, by several methods, on Fashion-MNIST, "
      "and "
      "compares them in a table, in CSV files and in a picture.",
      "subfed_trainer");
  app.get_formatter()->column_width(32);
  std::string footer = "Methods:\n";
  for (const method& m : all_methods()) footer += fmt::format("  {:<29} {}\n", m.name, m.about);
  app.footer(footer);
  app.option_defaults()->always_capture_default();

  app.add_option("--methods", methods, "Which methods to run, separated by commas, in this order.");
  app.add_option("--capacities", capacities,
                 "Which shares of the channels the clients can hold, separated by commas; as many "
                 "clients have the one as the other.");
  app.add_option(
      "--labels", o.labels,
      "How many of the 10 labels each client has: 2 makes very different clients, 5 less "
      "so, 10 none.");
  app.add_option("--clients", o.clients, "How many clients there are.");
  app.add_option("--participation", o.participation, "Which share of them takes part in a round.");
  app.add_option("--samples", o.samples, "How many training images a client has at most.");
  app.add_option("--rounds", o.rounds, "How many rounds of training there are.");
  app.add_option("--local-epochs", o.local_epochs,
                 "How often a client goes through its images in a round.");
  app.add_option("--batch", o.batch, "How many images make a batch.");
  app.add_option("--lr", o.lr, "The learning rate of the first rounds.");
  app.add_option("--decay-at", decay_at,
                 "After which shares of the rounds the learning rate is multiplied by 0.1.");
  app.add_option("--momentum", o.momentum, "The momentum of a client's SGD.");
  app.add_option("--weight-decay", o.weight_decay, "The weight decay of a client's SGD.");
  app.add_option("--eval-every", o.eval_every,
                 "After how many rounds the model is evaluated; after the last it always is.");
  app.add_option("--seed", o.seed,
                 "The number that everything random follows from; results depend on it and on the "
                 "options above, but not on --threads.");
  app.add_option("--threads", o.threads, "How many clients are trained at a time.");
  app.add_option("--device", o.device, "Where clients are trained: cpu or cuda.")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--data", o.data, "The folder with the four gzip'd files of Fashion-MNIST.");
  app.add_option("--out", o.out, "The folder that the CSV files and the picture are written to.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw failure(fmt::format("{}; --help lists the options.", error.what()));
  }

  for (const std::string& text : pieces(capacities)) {
    o.capacities.push_back({text, parse_capacity(text)});
  }
  for (const std::string& name : pieces(methods)) {
    for (const method& m : o.methods) {
      if (m.name == name) throw failure(fmt::format("The method \"{}\" is given twice.", name));
    }
    o.methods.push_back(find_method(name));
  }
  o.decay_at.clear();
  for (const std::string& text : pieces(decay_at)) {
    if (text.empty()) continue;
    const auto at = number<double>(text);
    if (!at) throw failure(fmt::format("--decay-at: \"{}\" is no number.", text));
    o.decay_at.push_back(*at);
  }
  check(o);
  return o;
}

}  // namespace trainer
