// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

using common::bound_colours;
using common::colours;
using common::quoted;
using common::write_file;

std::string held(const holdings& counted) {
  if (!counted.any_client) return "-";
  return fmt::format("{}..{}", counted.summary.min, counted.summary.max);
}
std::string never(const holdings& counted) {
  if (!counted.any_client) return "-";
  return fmt::format("{:.1f}", 100 * counted.summary.unseen_share);
}

/// 0 where no round was trained.
double milliseconds_a_round(const method_result& r, double seconds) {
  return r.rounds > 0 ? 1e3 * seconds / static_cast<double>(r.rounds) : 0;
}

/// How a method's lines look: where colours repeat, dashes differ.
std::string look_of(bool is_bound, std::size_t number) {
  constexpr int bound_dashes[] = {2, 4, 3, 5}, dashes[] = {1, 4, 2, 5};
  if (is_bound) {
    return fmt::format("linecolor rgb '{}' dashtype {}",
                       bound_colours[number % std::size(bound_colours)],
                       bound_dashes[number / std::size(bound_colours) % std::size(bound_dashes)]);
  }
  return fmt::format("linecolor rgb '{}' dashtype {}", colours[number % std::size(colours)],
                     dashes[number / std::size(colours) % std::size(dashes)]);
}

/// Down and up.
std::int64_t bytes_of(std::int64_t parameters) {
  return 2 * static_cast<std::int64_t>(sizeof(float)) * parameters;
}

std::string gnuplot_script(std::span<const method_result> results, const std::string& subtitle,
                           const std::filesystem::path& picture,
                           std::span<const std::vector<double>> deviations) {
  std::string script = fmt::format(
      "# Written by subfed_trainer; `gnuplot` with this file draws the picture again.\n"
      "set terminal svg size 1320,500 font 'Helvetica,14' background '#ffffff'\n"
      "set output {}\n",
      quoted(picture.string()));

  std::string bands, curves, steps;
  std::size_t others = 0, bounds = 0, most_nodes = 0;
  for (std::size_t m = 0; m < results.size(); ++m) {
    const method_result& r = results[m];
    const std::string look = look_of(r.is_bound, r.is_bound ? bounds++ : others++);
    script += fmt::format("$history{} << END\n", m);
    for (std::size_t i = 0; i < r.history.size(); ++i) {
      const history_entry& e = r.history[i];
      script += fmt::format("{} {:.4f}", e.round, 100 * e.on_test.accuracy);
      if (!deviations.empty()) script += fmt::format(" {:.4f}", 100 * deviations[m][i]);
      script += '\n';
    }
    script += "END\n";
    if (!deviations.empty()) {
      bands += fmt::format(
          "{} $history{} using 1:($2-$3):($2+$3) with filledcurves {} fillstyle transparent solid "
          "0.15 noborder notitle",
          bands.empty() ? "plot" : ", \\\n ", m, look.substr(0, look.find(" dashtype")));
    }
    curves += fmt::format(
        "{} $history{} using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.45 "
        "{} title {}",
        curves.empty() && bands.empty() ? "plot" : ", \\\n ", m, look, quoted(r.method));
    if (r.is_bound) continue;
    script += fmt::format("$nodes{} << END\n", m);
    for (std::size_t n = 0; n < r.by_all.nodes.size(); ++n) {
      script += fmt::format("{} {}\n", n, r.by_all.nodes[n]);
    }
    most_nodes = (std::max)(most_nodes, r.by_all.nodes.size());
    // Steps end at the last point; once more, and the last node is as wide as the others.
    script += fmt::format("{} {}\n", r.by_all.nodes.size(), r.by_all.nodes.back());
    script += "END\n";
    steps += fmt::format("{} $nodes{} using 1:2 with steps linewidth 2.5 {}",
                         steps.empty() ? "plot" : ", \\\n ", m, look);
  }

  script += fmt::format(
      "set multiplot layout 1,2 title {} noenhanced font 'Helvetica,16' "
      "margins 0.06,0.98,0.16,0.83 spacing 0.2\n"
      "set border 3 linecolor rgb '#666666'\n"
      "set tics nomirror out\n"
      "set grid ytics linecolor rgb '#dddddd'\n"
      "set key at screen 0.43,0.84 left top Left reverse samplen 3 noenhanced\n"
      "set title '{} that the server model gets right, %'\n"
      "set xlabel 'round'\n"
      "set xrange [0:{}]\nset yrange [0:100]\n"
      "{}{}\n",
      quoted(subtitle), results.front().sample == "image" ? "Test images" : "Guesses",
      results.front().history.back().round, bands, curves);
  if (!steps.empty()) {
    script += fmt::format(
        "set title 'How often each node was held by a client'\n"
        "unset key\n"
        "set xlabel {} noenhanced\n"
        "set xrange [0:{}]\nset yrange [0:*]\n"
        "{}\n",
        quoted(fmt::format("node of group {}", results.front().drawn_group)), most_nodes, steps);
  }
  return script + "unset multiplot\n";
}

}  // namespace

std::string table(std::span<const method_result> results) {
  std::string out = fmt::format(
      "{:<18} {:^15}  {:^19}  {:^19}\n"
      "{:<18} {:>7} {:>7}  {:>11} {:>7}  {:>11} {:>7}\n",
      "", "accuracy, %", "by all clients", "by cut clients",  //
      "method", "global", "local", "held", "never, %", "held", "never, %");
  for (const method_result& r : results) {
    out += fmt::format("{:<18} {:>7.2f} {:>7.2f}  {:>10} {:>8}  {:>10} {:>8}\n", r.method,
                       100 * r.last().accuracy, 100 * r.last().local_accuracy, held(r.by_all),
                       never(r.by_all), held(r.by_partial), never(r.by_partial));
  }
  return out + divergence(results) + "\n" + table_of_costs(results) + "\n" +
         table_of_times(results);
}

std::string divergence(std::span<const method_result> results) {
  std::string out;
  for (const method_result& r : results) {
    const auto is_lost = [](const history_entry& e) { return !std::isfinite(e.on_test.loss); };
    if (!is_lost(r.last_entry())) continue;
    const auto found = std::find_if(r.history.begin(), r.history.end(), is_lost);
    out += fmt::format("{} diverged: no finite loss after round {}. Try a lower --lr.\n", r.method,
                       found->round);
  }
  return out;
}

std::string table_of_costs(std::span<const method_result> results) {
  std::string out = fmt::format(
      "{:<18} {:^19}  {:^19}  {:>8}\n"
      "{:<18} {:>9} {:>9}  {:>9} {:>9}  {:>8}\n",
      "", "parameters", "MB sent", "MFLOPs",  //
      "method", "server", "client", "client", "round", results.front().sample);
  for (const method_result& r : results) {
    out += fmt::format("{:<18} {:>9} {:>9.0f}  {:>9.3f} {:>9.3f}  {:>8.3f}\n", r.method,
                       r.server_parameters, r.each.parameters, r.each.bytes / 1e6,
                       r.megabytes_per_round, r.each.flops / 1e6);
  }
  return out;
}

std::string table_of_times(std::span<const method_result> results) {
  std::string out = fmt::format(
      "{:<18} {:^19}  {:^21}\n"
      "{:<18} {:>9} {:>9}  {:>10} {:>10}\n",
      "", "server, ms per round", "all, s",  //
      "method", "cutting", "average", "training", "evaluating");
  for (const method_result& r : results) {
    out += fmt::format("{:<18} {:>9.2f} {:>9.2f}  {:>10.1f} {:>10.1f}\n", r.method,
                       milliseconds_a_round(r, r.seconds.cutting),
                       milliseconds_a_round(r, r.seconds.averaging), r.seconds.training,
                       r.seconds.evaluating);
  }
  return out;
}

void write_csv(const method_result& result, const std::filesystem::path& folder) {
  std::string rounds = "round,accuracy,test_loss,local_accuracy,train_loss,bytes,flops\n";
  std::string keep = "round";
  for (std::size_t b = 1; b <= keep_bins; ++b) {
    keep += fmt::format(",{:.2f}", static_cast<double>(b) / double{keep_bins});
  }
  keep += '\n';
  bool has_keep = false;
  for (const history_entry& e : result.history) {  // a NaN has no sign
    rounds += fmt::format("{},{:.6f},{:.6f},{:.6f},{:.6f},{},{}\n", e.round, e.on_test.accuracy,
                          std::abs(e.on_test.loss), e.on_test.local_accuracy,
                          std::abs(e.train_loss), bytes_of(e.parameters), e.flops);
    if (e.keep.empty()) continue;
    has_keep = true;
    keep += fmt::format("{},{}\n", e.round, fmt::join(e.keep, ","));
  }
  std::string nodes = "node,held_by_all,held_by_cut\n";
  for (std::size_t n = 0; n < result.by_all.nodes.size(); ++n) {
    nodes += fmt::format("{},{},{}\n", n, result.by_all.nodes[n], result.by_partial.nodes[n]);
  }
  std::string clients = "client,capacity,local_accuracy,own_accuracy\n";
  for (const client_result& c : result.clients) {
    clients += fmt::format("{},{},{:.6f},{:.6f}\n", c.number, c.capacity, c.local_accuracy,
                           c.own_accuracy);
  }
  std::string capacities = "capacity,clients,parameters,accuracy,test_loss,local_accuracy\n";
  for (const capacity_result& c : result.capacities) {
    capacities +=
        fmt::format("{},{},{},{:.6f},{:.6f},{:.6f}\n", c.capacity, c.clients, c.parameters,
                    c.on_test.accuracy, std::abs(c.on_test.loss), c.on_test.local_accuracy);
  }
  write_file(folder / (result.method + "-clients.csv"), clients);
  write_file(folder / (result.method + "-capacities.csv"), capacities);
  if (has_keep) write_file(folder / (result.method + "-keep.csv"), keep);
  write_file(folder / (result.method + ".csv"), rounds);
  write_file(folder / (result.method + "-nodes.csv"), nodes);
}

void write_costs(std::span<const method_result> results, const std::filesystem::path& folder) {
  std::string out =
      "method,server_parameters,client_parameters,client_bytes,bytes_per_round,client_flops,rounds,"
      "seconds_cutting,seconds_averaging,seconds_training,seconds_evaluating\n";
  for (const method_result& r : results) {
    out += fmt::format("{},{},{:.1f},{:.1f},{:.1f},{:.1f},{},{:.6f},{:.6f},{:.6f},{:.6f}\n",
                       r.method, r.server_parameters, r.each.parameters, r.each.bytes,
                       1e6 * r.megabytes_per_round, r.each.flops, r.rounds, r.seconds.cutting,
                       r.seconds.averaging, r.seconds.training, r.seconds.evaluating);
  }
  write_file(folder / "costs.csv", out);
}

std::filesystem::path draw_picture(std::span<const method_result> results,
                                   const std::string& subtitle, const std::filesystem::path& folder,
                                   std::span<const std::vector<double>> deviations) {
  const auto picture = folder / "picture.svg";
  return common::draw(gnuplot_script(results, subtitle, picture, deviations), picture);
}

}  // namespace trainer
