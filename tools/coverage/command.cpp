// SPDX-License-Identifier: MIT
/// subfed coverage: how evenly schemes train the nodes and parameters of a network, measured by
/// simulation and expected by theory.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <common/failure.hpp>
#include <common/rewritten_line.hpp>
#include <common/wrapped.hpp>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command.hpp"
#include "expectation.hpp"
#include "options.hpp"
#include "pictures.hpp"
#include "ranks.hpp"
#include "report.hpp"
#include "simulation.hpp"

namespace coverage_tool {
namespace {

/// Reports now and then how far the work is; seldom when stderr is not a terminal.
class progress {
 public:
  explicit progress(const options& settings) : settings_(settings) {}

  void show(const news& n) {
    using seconds = std::chrono::duration<double>;
    const auto now = std::chrono::steady_clock::now();
    if (seconds(now - shown_).count() < (line_.on_terminal() ? 0.2 : 10)) return;
    shown_ = now;
    const double left = seconds(now - start_).count() * (1 - n.done) / n.done;
    const auto whole = std::llround(std::ceil(left));
    line_.show(fmt::format("{} ({} of {}){}  {:.0f} % done  {}:{:02} left",
                           settings_.schemes[n.scheme].name, n.scheme + 1, settings_.schemes.size(),
                           n.parameters ? "  parameters" : "", 100 * n.done, whole / 60,
                           whole % 60));
  }

 private:
  const options& settings_;
  common::rewritten_line line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
};

/// On the first rank alone. All know whether it went well.
void prepare(const options& settings) {
  std::exception_ptr wrong;
  try {
    if (ranks::number() == 0) prepare_folder(settings.out);
  } catch (...) {
    wrong = std::current_exception();
  }
  bool is_well = !wrong;
  ranks::broadcast(std::as_writable_bytes(std::span<bool>(&is_well, 1)), 0);
  if (wrong) std::rethrow_exception(wrong);
  if (!is_well) throw common::failure("The first rank has failed.");
}

/// The simulation on all ranks.
std::vector<scheme_result> simulate_together(const options& settings) {
  progress line(settings);
  try {
    return simulate(settings, [&](const news& n) { line.show(n); });
  } catch (const std::exception& error) {
    if (ranks::count() == 1) throw;
    fmt::print(stderr, "subfed: {}\n", error.what());
    ranks::abandon();
  }
}

void run(const options& settings) {
  prepare(settings);
  const std::vector<scheme_result> results = simulate_together(settings);
  const bool is_first = ranks::number() == 0;
  ranks::finish();
  if (!is_first) return;
  std::vector<expectation> expected;
  for (const named_scheme& s : settings.schemes) {
    expected.push_back(expect(settings, s, settings.on.net[settings.on.widest].extent));
  }
  write_csv(settings, results, expected);
  const auto pictures = draw_pictures(settings, results, expected);

  const subfed::cohort_model cohort(settings.cohort);
  std::string mix;
  for (std::size_t c = 0; c < settings.class_names.size(); ++c) {
    mix += fmt::format("{}{} ({:.3g} %)", c == 0 ? "" : ", ", settings.class_names[c],
                       100 * cohort.share(c));
  }
  const auto print_wrapped = [](const std::string& text) {
    fmt::print("{}\n", common::wrapped(text));
  };
  print_wrapped(
      fmt::format("{}: {} parameters; {} of {} clients per round, {} rounds, {} runs, seed {}",
                  settings.on.name, settings.on.net.size(), cohort.asked(), settings.cohort.clients,
                  settings.rounds, settings.repetitions, settings.cohort.seed));
  print_wrapped(fmt::format("Capacities {}{}{}\n", mix,
                            settings.class_names.size() == 1 ? ""
                            : settings.cohort.capacities == subfed::capacity_assignment::fixed
                                ? ", fixed"
                                : ", redrawn every round",
                            settings.cohort.dropout > 0
                                ? fmt::format("; {:.3g} % drop out", 100 * settings.cohort.dropout)
                                : ""));
  fmt::print("{}\n{}\n", node_table(settings, results, expected), whole_table(settings, results));
  if (settings.class_names.size() > 1) fmt::print("{}\n", class_table(settings, results));
  fmt::print("{}\n", verdicts(settings, results));
  fmt::print("Numbers of each run, of each node and over rounds: {}/*.csv.\n", settings.out);
  if (pictures.empty()) {
    fmt::print(
        "There are no pictures, as gnuplot is not installed or failed; {}/*.gp are their "
        "scripts.\n",
        settings.out);
  } else {
    std::string list;
    for (const auto& p : pictures) list += (list.empty() ? "" : ", ") + p.filename().string();
    fmt::print("Pictures: {} in {}.\n", list, settings.out);
  }
}

}  // namespace

int run_coverage(int argc, const char* const* argv) {
  ranks::start();
  try {
    const auto settings = parse_options(argc, argv);
    if (settings) run(*settings);
  } catch (...) {
    ranks::finish();
    throw;
  }
  ranks::finish();
  return 0;
}

}  // namespace coverage_tool
