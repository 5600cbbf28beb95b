// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::string gnuplot_script(std::span<const method_result> results, const std::string& subtitle,
                           const std::filesystem::path& picture) {
  std::string script = fmt::format(
      "# Made by subfed_trainer; `gnuplot` with this file draws the picture again.\n"
      "set terminal svg size 1160,500 font 'Helvetica,14' background '#ffffff'\n"
      "set output {}\n",
      quoted(picture.string()));

  std::string curves, steps;
  std::size_t colour = 0, bound = 0, most_nodes = 0;
  for (std::size_t m = 0; m < results.size(); ++m) {
    const method_result& r = results[m];
    const char* own = r.is_bound ? bound_colours[bound++ % std::size(bound_colours)]
                                 : colours[colour++ % std::size(colours)];
    script += fmt::format("$history{} << END\n", m);
    for (const history_entry& e : r.history) {
      script += fmt::format("{} {:.4f}\n", e.round, 100 * e.on_test.accuracy);
    }
    script += "END\n";
    curves += fmt::format(
        "{} $history{} using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.45 "
        "linecolor rgb '{}' {} title {}",
        curves.empty() ? "plot" : ", \\\n ", m, own, r.is_bound ? "dashtype 2" : "dashtype 1",
        quoted(r.method));
    if (r.is_bound) continue;
    script += fmt::format("$nodes{} << END\n", m);
    for (std::size_t n = 0; n < r.by_all.nodes.size(); ++n) {
      script += fmt::format("{} {}\n", n, r.by_all.nodes[n]);
    }
    most_nodes = (std::max)(most_nodes, r.by_all.nodes.size());
    // Steps end at the last point; once more, and the last node is as wide as the others.
    script += fmt::format("{} {}\n", r.by_all.nodes.size(), r.by_all.nodes.back());
    script += "END\n";
    steps +=
        fmt::format("{} $nodes{} using 1:2 with steps linewidth 2.5 linecolor rgb '{}' title {}",
                    steps.empty() ? "plot" : ", \\\n ", m, own, quoted(r.method));
  }

  script += fmt::format(
      "set multiplot layout 1,2 title {} noenhanced font 'Helvetica,16'\n"
      "set border 3 linecolor rgb '#666666'\n"
      "set tics nomirror out\n"
      "set grid ytics linecolor rgb '#dddddd'\n"
      "set key bottom right Left reverse samplen 2 noenhanced\n"
      "set title 'Accuracy of the server model'\n"
      "set xlabel 'round'\nset ylabel 'test images right, %'\n"
      "set xrange [0:{}]\nset yrange [0:100]\n"
      "{}\n",
      quoted(subtitle), results.front().history.back().round, curves);
  if (!steps.empty()) {
    script += fmt::format(
        "set title 'How often each node was trained'\n"
        "set key top right\n"
        "set xlabel {} noenhanced\nset ylabel 'times held by a client'\n"
        "set xrange [0:{}]\nset yrange [0:*]\n"
        "{}\n",
        quoted(fmt::format("node of group {}", results.front().drawn_group)), most_nodes, steps);
  }
  return script + "unset multiplot\n";
}

}  // namespace

std::string table(std::span<const method_result> results) {
  std::string out = fmt::format(
      "{:<18} {:^15}  {:^17}  {:>7}  {:^18}  {:^18}\n"
      "{:<18} {:>7} {:>7}  {:>8} {:>8}  {:>7}  {:>10} {:>7}  {:>10} {:>7}\n",
      "", "accuracy, %", "parameters", "MB sent", "by all clients", "by cut clients",  //
      "method", "global", "local", "server", "client", "a round", "held", "never, %", "held",
      "never, %");
  for (const method_result& r : results) {
    out += fmt::format(
        "{:<18} {:>7.2f} {:>7.2f}  {:>8} {:>8.0f}  {:>7.3f}  {:>10} {:>7}  {:>10} {:>7}\n",
        r.method, 100 * r.last().accuracy, 100 * r.last().local_accuracy, r.server_parameters,
        r.client_parameters, r.megabytes_per_round, held(r.by_all), never(r.by_all),
        held(r.by_partial), never(r.by_partial));
  }
  return out;
}

void write_csv(const method_result& result, const std::filesystem::path& folder) {
  std::string rounds = "round,accuracy,test_loss,local_accuracy,train_loss\n";
  for (const history_entry& e : result.history) {
    rounds += fmt::format("{},{:.6f},{:.6f},{:.6f},{:.6f}\n", e.round, e.on_test.accuracy,
                          e.on_test.loss, e.on_test.local_accuracy, e.train_loss);
  }
  std::string nodes = "node,held_by_all,held_by_cut\n";
  for (std::size_t n = 0; n < result.by_all.nodes.size(); ++n) {
    nodes += fmt::format("{},{},{}\n", n, result.by_all.nodes[n], result.by_partial.nodes[n]);
  }
  write_file(folder / (result.method + ".csv"), rounds);
  write_file(folder / (result.method + "-nodes.csv"), nodes);
}

std::filesystem::path draw_picture(std::span<const method_result> results,
                                   const std::string& subtitle,
                                   const std::filesystem::path& folder) {
  const auto picture = folder / "picture.svg";
  return common::draw(gnuplot_script(results, subtitle, picture), picture);
}

}  // namespace trainer
