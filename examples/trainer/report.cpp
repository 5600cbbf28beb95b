// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "failure.hpp"

extern char** environ;

namespace trainer {
namespace {

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path unfinished = path;
  unfinished += ".unfinished";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw failure(fmt::format("{} cannot be written.", path.string()));
  }
}

std::string held(const holdings& counted) {
  if (!counted.any_client) return "-";
  return fmt::format("{}..{}", counted.summary.min, counted.summary.max);
}
std::string never(const holdings& counted) {
  if (!counted.any_client) return "-";
  return fmt::format("{:.1f}", 100 * counted.summary.unseen_share);
}

/// Runs a program found in PATH and waits for it; false when there is none or it fails.
bool run_program(const std::string& program, const std::string& argument) {
  std::string name = program, first = argument;
  char* arguments[] = {name.data(), first.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, name.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In single quotes, where gnuplot knows no other escape.
std::string quoted(std::string text) {
  for (std::size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 2)) {
    text.insert(at, 1, '\'');
  }
  return "'" + text + "'";
}

// Okabe and Ito's colours, which people with any colour vision can tell apart.
constexpr const char* colours[] = {"#0072B2", "#D55E00", "#009E73",
                                   "#CC79A7", "#56B4E9", "#E69F00"};
constexpr const char* bound_colours[] = {"#222222", "#999999"};

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

void prepare_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) {
    try {
      const auto probe = folder / "probe";
      write_file(probe, "");
      std::filesystem::remove(probe, error);
      return;
    } catch (const failure&) {
    }
  }
  throw failure(fmt::format("Files cannot be written to the folder {}; --out takes another.",
                            folder.string()));
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
  const auto script = folder / "picture.gp";
  std::error_code ignored;
  std::filesystem::remove(picture, ignored);  // an older one must not pass for this run's
  write_file(script, gnuplot_script(results, subtitle, picture));
  return run_program("gnuplot", script.string()) ? picture : std::filesystem::path();
}

}  // namespace trainer
