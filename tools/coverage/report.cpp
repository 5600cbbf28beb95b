// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <common/spread.hpp>
#include <functional>

namespace coverage_tool {
namespace {

using numbers = std::vector<double>;

/// One number of each run.
numbers of_runs(const scheme_result& result, const std::function<double(const repetition&)>& get) {
  numbers out;
  for (const repetition& r : result.runs) out.push_back(get(r));
  return out;
}

/// Rounds until covered, of the runs in which that happened.
numbers covers(const scheme_result& result, std::optional<std::int64_t> repetition::*which) {
  numbers out;
  for (const repetition& r : result.runs) {
    if (r.*which) out.push_back(static_cast<double>(*(r.*which)));
  }
  return out;
}

std::string number(double x) {
  if (x != 0 && std::fabs(x) < 0.001) return fmt::format("{:.2e}", x);
  if (std::fabs(x) >= 1e7) return fmt::format("{:.4e}", x);
  return fmt::format("{:.{}f}", x, std::fabs(x) < 10 ? 4 : std::fabs(x) < 1e5 ? 2 : 1);
}
std::string number(const std::optional<double>& x) { return x ? number(*x) : "-"; }

std::string row(const std::string& what, const estimate& measured,
                const std::optional<double>& expected, bool exact) {
  return fmt::format("  {:<28} {:>12} {:>10} {:>12} {:>9}\n", what, number(measured.mean),
                     measured.error > 0 ? number(measured.error) : "0", number(expected),
                     deviation(measured, expected, exact));
}

std::string cover_cell(const options& settings, const scheme_result& result,
                       std::optional<std::int64_t> repetition::*which) {
  const numbers found = covers(result, which);
  if (found.empty()) return fmt::format("over {}", settings.rounds);
  const std::string mean = number(estimate_of(found).mean);
  if (found.size() == result.runs.size()) return mean;
  return fmt::format("{} in {} of {}", mean, found.size(), result.runs.size());
}

std::string times_text(std::int64_t times) {
  return times == 1 ? "once" : fmt::format("{} times", times);
}

}  // namespace

estimate estimate_of(std::span<const double> values) {
  estimate out;
  if (values.empty()) return out;
  const common::spread found = common::spread_of(values);
  out.mean = found.mean;
  // Below the rounding of the mean itself the values are the same.
  if (values.size() > 1 && found.deviation > 1e-12 * std::fabs(found.mean)) {
    out.error = found.deviation / std::sqrt(static_cast<double>(values.size()));
  }
  return out;
}

std::string deviation(const estimate& measured, const std::optional<double>& expected, bool exact) {
  if (!expected) return "-";
  const double off = measured.mean - *expected;
  if (std::fabs(off) <= 1e-9 * std::fabs(*expected) + 1e-12) return "equal";
  if (exact) return "differs";
  return measured.error > 0 ? fmt::format("{:.2f}", off / measured.error) : "-";
}

std::string node_table(const options& settings, std::span<const scheme_result> results,
                       std::span<const expectation> expected) {
  const auto& group = settings.on.net[settings.on.widest];
  std::string out = fmt::format(
      "The {} nodes of group {}{}\n"
      "  {:<28} {:>12} {:>10} {:>12} {:>9}\n",
      group.extent, group.name, settings.on.net.groups().size() > 1 ? ", the widest" : "", "",
      "measured", "st. error", "expected", "diff./s.e.");
  for (std::size_t s = 0; s < results.size(); ++s) {
    const scheme_result& r = results[s];
    const expectation& e = expected[s];
    const auto each = [&](const std::function<double(const repetition&)>& get) {
      return estimate_of(of_runs(r, get));
    };
    out += r.name + "\n";
    out +=
        row("times held", each([](const repetition& x) { return x.widest.mean; }), e.mean, e.exact);
    out += row("variance of that", each([](const repetition& x) { return x.widest.variance; }),
               e.variance, e.exact);
    out += row("Gini coefficient", each([](const repetition& x) { return x.widest.gini; }), e.gini,
               e.exact);
    out += row("never held, share", each([](const repetition& x) { return x.widest.unseen_share; }),
               e.unseen_share, e.exact);
    out += row("held the round before too",
               each([](const repetition& x) { return x.holders.held_again; }), std::nullopt, false);
    out +=
        row("shared by two clients",
            each([](const repetition& x) { return x.holders.shared_by_two; }), std::nullopt, false);
    const std::string what = fmt::format("rounds until all held {}", times_text(settings.times));
    const numbers found = covers(r, &repetition::widest_cover);
    const std::optional<double> cover = e.cover ? std::optional(e.cover->mean) : std::nullopt;
    if (found.size() == r.runs.size()) {
      out += row(what, estimate_of(found), cover, e.exact);
    } else {
      out += fmt::format("  {:<28} {:>23} {:>12} {:>9}\n", what,
                         cover_cell(settings, r, &repetition::widest_cover),
                         e.never_covered ? "never" : number(cover), "-");
    }
  }
  return out;
}

std::string whole_table(const options& settings, std::span<const scheme_result> results) {
  const std::string until = fmt::format("all {} after", times_text(settings.times));
  std::string out = fmt::format("{:<24} {:^38}", "", "all nodes");
  if (settings.parameters) out += fmt::format("  {:^50}", "all parameters");
  out += fmt::format("\n{:<24} {:>8} {:>7} {:>21}", "", "never, %", "Gini", until);
  if (settings.parameters) {
    out += fmt::format("  {:>8} {:>11} {:>7} {:>21}", "never, %", "expected", "Gini", until);
  }
  out += "\n";
  for (const scheme_result& r : results) {
    const auto each = [&](const std::function<double(const repetition&)>& get) {
      return estimate_of(of_runs(r, get)).mean;
    };
    out += fmt::format("{:<24} {:>8.3f} {:>7.4f} {:>21}", r.name,
                       100 * each([](const repetition& x) { return x.nodes.unseen_share; }),
                       each([](const repetition& x) { return x.nodes.gini; }),
                       cover_cell(settings, r, &repetition::node_cover));
    if (settings.parameters) {
      const named_scheme& scheme = settings.schemes[static_cast<std::size_t>(&r - results.data())];
      const parameter_expectation e = expect_parameters(settings, scheme);
      const std::string theory = e.limit          ? fmt::format(">= {:.3f}", 100 * *e.limit)
                                 : e.unseen_share ? fmt::format("{:.3f}", 100 * *e.unseen_share)
                                                  : "-";
      out += fmt::format("  {:>8.3f} {:>11} {:>7.4f} {:>21}",
                         100 * each([](const repetition& x) { return x.parameters->unseen_share; }),
                         theory, each([](const repetition& x) { return x.parameters->gini; }),
                         cover_cell(settings, r, &repetition::parameter_cover));
    }
    out += "\n";
  }
  if (settings.parameters) {
    out += "(expected: after these rounds; >= is what is never held however long the run)\n";
  }
  return out;
}

std::string class_table(const options& settings, std::span<const scheme_result> results) {
  std::string out = fmt::format("{:<24} {:>9} {:>12} {:>12} {:>10} {:>8}\n", "by class of clients",
                                "capacity", "clients", "times held", "never, %", "Gini");
  for (const scheme_result& r : results) {
    for (std::size_t c = 0; c < settings.class_names.size(); ++c) {
      const auto each = [&](const std::function<double(const class_result&)>& get) {
        return estimate_of(of_runs(r, [&](const repetition& x) { return get(x.classes[c]); })).mean;
      };
      out += fmt::format("{:<24} {:>9} {:>12} {:>12} {:>10.3f} {:>8.4f}\n", c == 0 ? r.name : "",
                         settings.class_names[c],
                         number(each([](const class_result& x) { return double(x.clients); })),
                         number(each([](const class_result& x) { return x.nodes.mean; })),
                         100 * each([](const class_result& x) { return x.nodes.unseen_share; }),
                         each([](const class_result& x) { return x.nodes.gini; }));
    }
  }
  return out;
}

std::string verdicts(const options& settings, std::span<const scheme_result> results) {
  std::string out;
  for (const scheme_result& r : results) {
    if (r.starved.empty()) {
      out += fmt::format("{} starves no node in {} rounds", r.name, settings.rounds);
      out += settings.repetitions > 1 ? fmt::format(" of {} runs.\n", settings.repetitions) : ".\n";
      continue;
    }
    std::int64_t nodes = 0, all = 0;
    std::string list;
    for (std::size_t i = 0; i < r.starved.size(); ++i) {
      const starved_nodes& x = r.starved[i];
      nodes += x.last - x.first + 1;
      if (i >= 4) continue;
      list += fmt::format(
          "{}{} of {}", i == 0 ? "" : ", ",
          x.first == x.last ? fmt::format("{}", x.first) : fmt::format("{} to {}", x.first, x.last),
          x.group);
    }
    for (const auto& group : settings.on.net.groups()) {
      if (group.cut != subfed::cut::never) all += group.extent;
    }
    out +=
        fmt::format("{} STARVES {} of {} nodes: no client held {}{} in {} rounds.\n", r.name, nodes,
                    all, list, r.starved.size() > 4 ? " and others" : "", settings.rounds);
  }
  return out;
}

std::string file_stem(const std::string& scheme) {
  std::string out;
  for (const char c : scheme) {
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '-';
  }
  return out;
}

void write_csv(const options& settings, std::span<const scheme_result> results,
               std::span<const expectation> expected) {
  const std::filesystem::path folder = settings.out;
  const auto cell = [](const std::optional<std::int64_t>& x) {
    return x ? fmt::format("{}", *x) : std::string();
  };
  std::string runs =
      "scheme,run,held_mean,held_variance,held_min,held_max,gini,entropy,unseen_share,first_cover,"
      "held_again,shared_by_two,least_holders,all_gini,all_unseen_share,all_first_cover,"
      "parameter_gini,parameter_unseen_share,parameter_first_cover\n";
  std::string history = "scheme,round,gini,unseen_share\n";
  std::string beyond = "scheme,round,measured_not_covered,expected_not_covered\n";
  for (std::size_t s = 0; s < results.size(); ++s) {
    const scheme_result& r = results[s];
    for (std::size_t i = 0; i < r.runs.size(); ++i) {
      const repetition& x = r.runs[i];
      runs += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", r.name, i,
                          x.widest.mean, x.widest.variance, x.widest.min, x.widest.max,
                          x.widest.gini, x.widest.entropy, x.widest.unseen_share,
                          cell(x.widest_cover), x.holders.held_again, x.holders.shared_by_two,
                          x.holders.least, x.nodes.gini, x.nodes.unseen_share, cell(x.node_cover));
      runs += x.parameters ? fmt::format("{},{},{}\n", x.parameters->gini,
                                         x.parameters->unseen_share, cell(x.parameter_cover))
                           : std::string(",,\n");
    }
    for (const history_entry& h : r.history) {
      history += fmt::format("{},{},{},{}\n", r.name, h.round, h.gini, h.unseen_share);
    }
    std::string nodes = "node,held_in_first_run\n";
    for (std::size_t n = 0; n < r.counts.size(); ++n)
      nodes += fmt::format("{},{}\n", n, r.counts[n]);
    common::write_file(folder / (file_stem(r.name) + "-nodes.csv"), nodes);
    const auto& law = expected[s].cover_beyond;
    if (!law) continue;
    const numbers found = covers(r, &repetition::widest_cover);
    const auto rounds = (std::min)(static_cast<std::int64_t>(law->beyond.size()), settings.rounds);
    for (std::int64_t round = 0; round <= rounds; ++round) {
      const auto later =
          static_cast<double>(r.runs.size()) -
          static_cast<double>(std::count_if(found.begin(), found.end(), [&](double x) {
            return x <= static_cast<double>(round);
          }));
      beyond += fmt::format("{},{},{},{}\n", r.name, round,
                            later / static_cast<double>(r.runs.size()), law->after(round));
    }
  }
  common::write_file(folder / "runs.csv", runs);
  common::write_file(folder / "evenness.csv", history);
  common::write_file(folder / "cover.csv", beyond);
}

}  // namespace coverage_tool
