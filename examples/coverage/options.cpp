// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <common/failure.hpp>
#include <common/mix.hpp>
#include <common/text.hpp>
#include <string_view>
#include <thread>

namespace coverage_tool {
namespace {

using common::failure;

void require(bool holds, std::string_view option, std::string_view expected, std::int64_t found) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected.", option, found, expected));
}

void check(const options& o) {
  require(o.rounds >= 1 && o.rounds <= 1'000'000'000, "--rounds", "1 to 10^9", o.rounds);
  require(o.times >= 1 && o.times <= 100'000, "--times", "1 to 100000", o.times);
  require(o.repetitions >= 1 && o.repetitions <= 1'000'000, "--repetitions", "1 to 10^6",
          o.repetitions);
  require(o.threads >= 1 && o.threads <= 1024, "--threads", "1 to 1024", o.threads);
}

}  // namespace

std::optional<options> parse_options(int argc, const char* const* argv) {
  options o;
  o.rounds = 1000;
  o.times = 1;
  o.repetitions = 20;
  o.threads = (std::max)(1u, std::thread::hardware_concurrency());
  o.out = "out/coverage";
  o.cohort.seed = 1;
  std::string model, widths = "512", schemes = "rolling,random,static", mix = "income";
  bool fixed = false;

  CLI::App app(
      "Simulates which nodes of a network the clients of each round hold, and says how evenly they "
      "are trained: in tables beside what theory expects, in CSV files and in pictures. Nothing is "
      "trained.",
      "subfed_coverage");
  app.get_formatter()->column_width(32);
  app.footer(scheme_help());
  app.option_defaults()->always_capture_default();

  auto* const by_model =
      app.add_option("--model", model, "A network of examples/models: " + network_names() + ".");
  app.add_option("--widths", widths, "Instead: widths of the hidden layers of a perceptron.")
      ->excludes(by_model);
  app.add_option("--schemes", schemes, "Which schemes to compare, separated by commas; see below.");
  app.add_option("--mix", mix,
                 "The clients' capacities: income, uniform, two-class:RHO where a share RHO has 1 "
                 "and the rest 1/16, or a list such as 1:0.1,1/16:0.9 with the weight of each.");
  app.add_option("--clients", o.cohort.clients, "How many clients there are.");
  app.add_option("--participation", o.cohort.participation,
                 "Which share of them is asked in a round.");
  app.add_flag("--fixed", fixed,
               "Clients keep their capacity for the whole run, and the classes have exact shares; "
               "otherwise every client draws one in every round.");
  app.add_option("--dropout", o.cohort.dropout,
                 "With which probability a client that is asked does not answer.");
  app.add_option("--rounds", o.rounds, "How many rounds there are.");
  app.add_option("--times", o.times,
                 "How often everything is to be held in the first full cover that is reported.");
  app.add_option("--repetitions", o.repetitions, "How many runs there are, each of another seed.");
  app.add_flag("--parameters", o.parameters,
               "Count parameters too: a weight is trained when the nodes at both of its ends are "
               "held.");
  app.add_option("--seed", o.cohort.seed, "The number that everything random follows from.");
  app.add_option("--threads", o.threads,
                 "How many threads there are; results do not depend on it.");
  app.add_option("--out", o.out, "The folder that the CSV files and pictures are written to.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw failure(fmt::format("{}; --help lists the options.", error.what()));
  }

  if (model.empty()) {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : common::pieces(widths)) {
      const auto width = common::number<std::int64_t>(text);
      if (!width) throw failure(fmt::format("--widths: \"{}\" is no whole number.", text));
      numbers.push_back(*width);
    }
    o.on = perceptron(numbers);
  } else {
    o.on = find_network(model);
  }
  for (const std::string& name : common::pieces(schemes)) {
    for (const named_scheme& s : o.schemes) {
      if (s.name == name) throw failure(fmt::format("The scheme \"{}\" is given twice.", name));
    }
    o.schemes.push_back(parse_scheme(name));
  }
  const common::named_mix mixed = common::parse_mix(mix);
  o.cohort.mix = mixed.mix;
  o.class_names = mixed.names;
  o.cohort.capacities = fixed ? subfed::assignment::fixed : subfed::assignment::redrawn;
  check(o);
  try {
    const subfed::cohort_model probe(o.cohort);
  } catch (const subfed::error& error) {
    throw failure(error.what());
  }
  return o;
}

}  // namespace coverage_tool
