// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <common/failure.hpp>
#include <common/mix.hpp>
#include <common/text.hpp>
#include <common/wrapped.hpp>
#include <string_view>
#include <thread>

#include "number_option.hpp"

namespace coverage_tool {
namespace {

using common::failure;

template <class T>
void require(bool holds, std::string_view option, std::string_view expected, T found) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected.", option, found, expected));
}

/// First covers are kept for every node, class and thread, and all of it is written to.
void check_memory(const options& o) {
  double nodes = 0;
  for (const auto& group : o.on.net.groups()) nodes += static_cast<double>(group.extent);
  const double copies = static_cast<double>(o.class_names.size() + 1) *
                        static_cast<double>(1 + (std::min)(o.threads, o.rounds * o.repetitions));
  const double bytes = nodes * (24 + 8 * static_cast<double>(o.times)) * copies;
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (there > 0 && bytes > there) {
    throw failure(fmt::format(
        "First covers of {} times for {} nodes and {} classes on {} threads take {:.0f} GB of "
        "memory, but there are {:.0f}; fewer --times, fewer --threads or a smaller network reduce "
        "it.",
        o.times, nodes, o.class_names.size(), o.threads, bytes / 1e9, there / 1e9));
  }
}

void check(const options& o) {
  require(o.cohort.clients >= 1 && o.cohort.clients <= std::int64_t{1} << 31, "--clients",
          "1 to 2^31", o.cohort.clients);
  require(o.cohort.participation > 0 && o.cohort.participation <= 1, "--participation",
          "more than 0 and at most 1", o.cohort.participation);
  require(o.cohort.dropout >= 0 && o.cohort.dropout < 1, "--dropout", "at least 0 and less than 1",
          o.cohort.dropout);
  require(o.rounds >= 1 && o.rounds <= 1'000'000'000, "--rounds", "1 to 10^9", o.rounds);
  require(o.times >= 1 && o.times <= 100'000, "--times", "1 to 100000", o.times);
  require(o.repetitions >= 1 && o.repetitions <= 1'000'000, "--repetitions", "1 to 10^6",
          o.repetitions);
  require(o.threads >= 1 && o.threads <= 1024, "--threads", "1 to 1024", o.threads);
  if (o.out.empty()) throw failure("--out is empty, but a folder is expected.");
  check_memory(o);
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
  bool redrawn = false;

  CLI::App app(
      "Simulates which nodes of a network the clients of each round hold, and says how evenly they "
      "are trained: in tables beside what theory expects, in CSV files and in pictures. Nothing is "
      "trained.",
      "subfed coverage");
  app.get_formatter()->column_width(32);
  app.footer(scheme_help());
  app.option_defaults()->always_capture_default();

  auto* const by_model =
      app.add_option("--model", model, "A network of examples/models: " + network_names() + ".");
  app.add_option("--widths", widths, "Instead: widths of the hidden layers of a perceptron.")
      ->excludes(by_model);
  app.add_option("--schemes", schemes, "Which schemes to compare, separated by commas; see below.");
  app.add_option(
      "--mix", mix,
      "The clients' capacities: income, uniform, two-class:RHO where a share RHO has 1 and "
      "the rest 1/16, or a list such as 1:0.1,1/16:0.9 with a weight for each.");
  add_number(app, "--clients", o.cohort.clients, "The number of clients.");
  add_number(app, "--participation", o.cohort.participation,
             "The share of the clients that is asked in a round.");
  app.add_flag("--redraw-capacities", redrawn,
               "Every client draws a new capacity in every round; otherwise it keeps its capacity, "
               "and the shares of the mix are exact, as in the trainer.");
  add_number(app, "--dropout", o.cohort.dropout,
             "The probability that a client that is asked does not answer.");
  add_number(app, "--rounds", o.rounds, "The number of rounds.");
  add_number(app, "--times", o.times,
             "How often everything is held in the first full cover that is reported.");
  add_number(app, "--repetitions", o.repetitions, "The number of runs, each with another seed.");
  app.add_flag("--parameters", o.parameters,
               "Count parameters too: a weight is trained when the nodes at both of its ends are "
               "held.");
  add_number(app, "--seed", o.cohort.seed, "The seed of everything random.");
  add_number(app, "--threads", o.threads,
             "The number of threads; results do not depend on it, nor on the number of ranks under "
             "mpirun, which share the clients of each round.");
  app.add_option("--out", o.out, "The folder for the CSV files and pictures.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", common::wrapped(app.help()));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw failure(fmt::format("{}; --help lists the options.", error.what()));
  }

  if (model.empty()) {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : common::pieces(widths)) {
      const auto width = common::number<std::int64_t>(text);
      if (!width) throw failure(fmt::format("--widths: \"{}\" is not a whole number.", text));
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
  o.cohort.capacities =
      redrawn ? subfed::capacity_assignment::redrawn : subfed::capacity_assignment::fixed;
  check(o);
  try {
    const subfed::cohort_model probe(o.cohort);
  } catch (const subfed::error& error) {
    throw failure(error.what());
  }
  return o;
}

}  // namespace coverage_tool
