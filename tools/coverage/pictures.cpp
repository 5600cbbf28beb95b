// SPDX-License-Identifier: MIT
#include "pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/output.hpp>
#include <cstddef>
#include <string>

namespace coverage_tool {
namespace {

using common::quoted;

constexpr std::size_t most_rows = 64;  // of a heat map
constexpr std::size_t most_panels = 6;

const char* colour(std::size_t scheme) {
  return common::colours[scheme % std::size(common::colours)];
}

std::string head(const std::filesystem::path& picture, int width, int height) {
  return fmt::format(
      "# Written by subfed coverage; `gnuplot` with this file draws the picture again.\n"
      "set terminal svg size {},{} font 'Helvetica,14' background '#ffffff'\n"
      "set output {}\n"
      "set border 3 linecolor rgb '#666666'\n"
      "set tics nomirror out\n",
      width, height, quoted(picture.string()));
}
constexpr const char* grid = "set grid ytics linecolor rgb '#dddddd'\n";

/// One panel per scheme: rounds to the right, nodes upwards, light where a node was held often.
std::string heat(const options& settings, std::span<const scheme_result> results,
                 const std::filesystem::path& picture) {
  const std::size_t panels = (std::min)(results.size(), most_panels);
  const std::size_t columns = panels == 4 ? 2 : (std::min)(panels, std::size_t{3});
  const std::size_t rows = (panels + columns - 1) / columns;
  std::string out =
      head(picture, static_cast<int>(60 + 380 * columns), static_cast<int>(80 + 330 * rows));
  const auto nodes = static_cast<std::size_t>(settings.on.net[settings.on.widest].extent);
  const std::size_t bins = (std::min)(nodes, most_rows);
  double most = 0;
  std::string data;
  for (std::size_t s = 0; s < panels; ++s) {
    const scheme_result& r = results[s];
    data += fmt::format("$heat{} << END\n", s);
    std::int64_t before = 0;
    for (std::size_t p = 0; p < r.heat.size(); ++p) {
      const auto rounds = static_cast<double>(r.history[p].round - before);
      for (std::size_t b = 0; b < bins; ++b) {
        const std::size_t first = b * nodes / bins, end = (b + 1) * nodes / bins;
        double sum = 0;
        for (std::size_t n = first; n < end; ++n) sum += static_cast<double>(r.heat[p][n]);
        const double mean = sum / static_cast<double>(end - first) / rounds;
        most = (std::max)(most, mean);
        data += fmt::format("{} {} {:.4g}\n", static_cast<double>(before) + rounds / 2,
                            static_cast<double>(first + end) / 2, mean);
      }
      before = r.history[p].round;
    }
    data += "END\n";
  }
  out += data;
  out += fmt::format(
      "set multiplot layout {},{} title {} noenhanced font 'Helvetica,16'\n"
      "set palette defined (0 '#000000', 0.001 '#0b2a4a', 0.35 '#0072B2', 0.7 '#56B4E9', 1 "
      "'#FFF3B0')\n"
      "set cbrange [0:{}]\nset xrange [0:{}]\nset yrange [0:{}]\n"
      "set xlabel 'round'\nset ylabel {} noenhanced\nset cblabel 'holders in a round'\n",
      rows, columns, quoted("Clients that hold a node"), most > 0 ? most : 1, settings.rounds,
      nodes, quoted("node of " + settings.on.net[settings.on.widest].name));
  for (std::size_t s = 0; s < panels; ++s) {
    out += fmt::format("set title {} noenhanced\nplot $heat{} using 1:2:3 with image notitle\n",
                       quoted(results[s].name), s);
  }
  return out + "unset multiplot\n";
}

std::string counts(const options& settings, std::span<const scheme_result> results,
                   const std::filesystem::path& picture) {
  std::string out = head(picture, 760, 440), plots;
  for (std::size_t s = 0; s < results.size(); ++s) {
    out += fmt::format("$nodes{} << END\n", s);
    const auto& own = results[s].counts;
    for (std::size_t n = 0; n < own.size(); ++n) out += fmt::format("{} {}\n", n, own[n]);
    // Steps end at the last point; once more, and the last node is as wide as the others.
    out += fmt::format("{} {}\nEND\n", own.size(), own.back());
    plots += fmt::format("{} $nodes{} using 1:2 with steps linewidth 2 linecolor rgb '{}' title {}",
                         s == 0 ? "plot" : ", \\\n ", s, colour(s), quoted(results[s].name));
  }
  return out + grid +
         fmt::format(
             "set key outside bottom center horizontal noenhanced\n"
             "set title 'How often each node was held in {} rounds'\n"
             "set xlabel {} noenhanced\nset ylabel 'times held'\n"
             "set xrange [0:{}]\nset yrange [0:*]\n{}\n",
             settings.rounds, quoted("node of " + settings.on.net[settings.on.widest].name),
             settings.on.net[settings.on.widest].extent, plots);
}

std::string evenness(const options& settings, std::span<const scheme_result> results,
                     const std::filesystem::path& picture) {
  std::string out = head(picture, 760, 440), plots;
  for (std::size_t s = 0; s < results.size(); ++s) {
    out += fmt::format("$gini{} << END\n", s);
    for (const history_entry& h : results[s].history)
      out += fmt::format("{} {}\n", h.round, h.gini);
    out += "END\n";
    plots +=
        fmt::format("{} $gini{} using 1:2 with lines linewidth 2.5 linecolor rgb '{}' title {}",
                    s == 0 ? "plot" : ", \\\n ", s, colour(s), quoted(results[s].name));
  }
  return out + grid +
         fmt::format(
             "set key outside bottom center horizontal noenhanced\n"
             "set title 'Gini coefficient of how often nodes were held (0: all alike)'\n"
             "set xlabel 'round'\nset ylabel 'Gini coefficient'\n"
             "set xrange [0:{}]\nset yrange [0:*]\n{}\n",
             settings.rounds, plots);
}

/// Rounds after which a run had been covered, against its rank: about 40 points of the measured
/// distribution.
std::string points_of(const scheme_result& result) {
  std::vector<std::int64_t> found;
  for (const repetition& x : result.runs) {
    if (x.widest_cover) found.push_back(*x.widest_cover);
  }
  std::sort(found.begin(), found.end());
  std::string out;
  const std::size_t apart = (std::max)(result.runs.size() / 40, std::size_t{1});
  for (std::size_t i = 0; i < found.size(); i += apart) {
    out += fmt::format("{} {:.6g}\n", found[i],
                       (static_cast<double>(i) + 0.5) / static_cast<double>(result.runs.size()));
  }
  return out;
}

/// Empty where theory has no distribution for any scheme.
std::string cover(const options& settings, std::span<const scheme_result> results,
                  std::span<const expectation> expected, const std::filesystem::path& picture) {
  std::string out = head(picture, 760, 440), plots;
  std::int64_t longest = 1;
  for (const expectation& e : expected) {
    if (!e.cover_beyond) continue;
    longest = (std::max)(longest, (std::min)(e.cover_beyond->quantile(0.9999), settings.rounds));
  }
  longest += longest / 20 + 1;
  for (std::size_t s = 0; s < results.size(); ++s) {
    const auto& law = expected[s].cover_beyond;
    if (!law) continue;
    out += fmt::format("$law{} << END\n0 0\n", s);
    for (std::int64_t r = 1; r <= longest; ++r) {
      // A step where the distribution has one.
      out += fmt::format("{} {:.6g}\n{} {:.6g}\n", r, 1 - law->after(r - 1), r, 1 - law->after(r));
    }
    const std::string points = points_of(results[s]);
    out += fmt::format("END\n$runs{} << END\n{}END\n", s, points);
    plots += fmt::format("{} $law{} using 1:2 with lines linewidth 2 linecolor rgb '{}' title {}",
                         plots.empty() ? "plot" : ", \\\n ", s, colour(s),
                         quoted(results[s].name + ", expected"));
    if (points.empty()) continue;
    plots += fmt::format(
        ", \\\n  $runs{} using 1:2 with points pointtype 6 pointsize 0.7 linewidth 1.5 linecolor "
        "rgb '{}' title {}",
        s, colour(s), quoted(results[s].name + ", runs"));
  }
  if (plots.empty()) return "";
  return out + grid +
         fmt::format(
             "set key bottom right Left reverse noenhanced\n"
             "set title 'Share of runs in which all nodes had been held{}'\n"
             "set xlabel 'round'\nset ylabel 'share of runs'\n"
             "set xrange [0:{}]\nset yrange [0:1.02]\n{}\n",
             settings.times == 1 ? std::string() : fmt::format(" {} times", settings.times),
             longest, plots);
}

}  // namespace

std::vector<std::filesystem::path> draw_pictures(const options& settings,
                                                 std::span<const scheme_result> results,
                                                 std::span<const expectation> expected) {
  const std::filesystem::path folder = settings.out;
  std::vector<std::filesystem::path> out;
  const auto draw = [&](const char* name, const auto& script) {
    const auto picture = folder / name;
    const std::string text = script(picture);
    if (text.empty()) return;
    const auto drawn = common::draw(text, picture);
    if (!drawn.empty()) out.push_back(drawn);
  };
  draw("heat.svg", [&](const auto& p) { return heat(settings, results, p); });
  draw("counts.svg", [&](const auto& p) { return counts(settings, results, p); });
  draw("evenness.svg", [&](const auto& p) { return evenness(settings, results, p); });
  draw("cover.svg", [&](const auto& p) { return cover(settings, results, expected, p); });
  return out;
}

}  // namespace coverage_tool
