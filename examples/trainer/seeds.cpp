// SPDX-License-Identifier: MIT
#include "seeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report.hpp"

namespace trainer {
namespace {

using common::spread_of;
using runs_of_seeds = std::span<const std::vector<method_result>>;

/// f of each seed's result of method number m.
template <class F>
std::vector<double> of_each(runs_of_seeds by_seed, std::size_t m, F f) {
  std::vector<double> out;
  for (const std::vector<method_result>& results : by_seed) {
    out.push_back(static_cast<double>(f(results[m])));
  }
  return out;
}

double mean_of(std::span<const double> values) { return spread_of(values).mean; }
std::int64_t whole_mean_of(std::span<const double> values) { return std::llround(mean_of(values)); }

const history_entry* entry_of(const method_result& result, std::int64_t round) {
  const auto at = std::find_if(result.history.begin(), result.history.end(),
                               [&](const history_entry& e) { return e.round == round; });
  return at == result.history.end() ? nullptr : &*at;
}

/// The accuracies of all seeds after a round; empty where one has none.
std::vector<double> accuracies_after(runs_of_seeds by_seed, std::size_t m, std::int64_t round) {
  std::vector<double> out;
  for (const std::vector<method_result>& results : by_seed) {
    const history_entry* entry = entry_of(results[m], round);
    if (entry == nullptr) return {};
    out.push_back(entry->on_test.accuracy);
  }
  return out;
}

holdings mean_holdings(runs_of_seeds by_seed, std::size_t m, holdings method_result::*which) {
  holdings out = by_seed.front()[m].*which;
  const auto mean = [&](auto f) {
    return mean_of(of_each(by_seed, m, [&](const method_result& r) { return f(r.*which); }));
  };
  out.summary.unseen_share = mean([](const holdings& h) { return h.summary.unseen_share; });
  for (const std::vector<method_result>& results : by_seed) {
    const subfed::coverage_summary& own = (results[m].*which).summary;
    out.summary.min = (std::min)(out.summary.min, own.min);
    out.summary.max = (std::max)(out.summary.max, own.max);
  }
  for (std::size_t n = 0; n < out.nodes.size(); ++n) {
    out.nodes[n] =
        std::llround(mean([n](const holdings& h) { return static_cast<double>(h.nodes[n]); }));
  }
  return out;
}

std::string percent(const spread& s, double in_parentheses) {
  if (std::isnan(in_parentheses)) return fmt::format("{:.2f}", 100 * s.mean);
  return fmt::format("{:.2f} ({:.2f})", 100 * s.mean, 100 * in_parentheses);
}

}  // namespace

std::vector<seeds_summary> summarise(runs_of_seeds by_seed) {
  std::vector<seeds_summary> out;
  for (std::size_t m = 0; m < by_seed.front().size(); ++m) {
    const auto accuracy = [](const method_result& r) { return r.last().accuracy; };
    const std::vector<double> own = of_each(by_seed, m, accuracy),
                              first = of_each(by_seed, 0, accuracy);
    std::vector<double> more;
    for (std::size_t s = 0; s < own.size(); ++s) more.push_back(own[s] - first[s]);
    const spread to_first = spread_of(more);
    out.push_back(
        {by_seed.front()[m].method, by_seed.size(), spread_of(own),
         spread_of(of_each(by_seed, m, [](const auto& r) { return r.last().local_accuracy; })),
         to_first, to_first.deviation / std::sqrt(static_cast<double>(by_seed.size()))});
  }
  return out;
}

std::vector<method_result> means_of(runs_of_seeds by_seed) {
  std::vector<method_result> out;
  for (std::size_t m = 0; m < by_seed.front().size(); ++m) {
    const auto mean = [&](auto f) { return mean_of(of_each(by_seed, m, f)); };
    method_result one = by_seed.front()[m];
    one.clients.clear();  // each seed has other clients
    one.capacities.clear();
    one.history.clear();
    for (const history_entry& e : by_seed.front()[m].history) {
      if (accuracies_after(by_seed, m, e.round).empty()) continue;
      const auto at = [&](auto f) {
        return mean([&](const method_result& r) { return f(*entry_of(r, e.round)); });
      };
      const auto whole = [&](std::int64_t history_entry::*member) {
        return whole_mean_of(of_each(
            by_seed, m, [&](const method_result& r) { return entry_of(r, e.round)->*member; }));
      };
      one.history.push_back({e.round,
                             {at([](const history_entry& h) { return h.on_test.accuracy; }),
                              at([](const history_entry& h) { return h.on_test.loss; }),
                              at([](const history_entry& h) { return h.on_test.local_accuracy; })},
                             at([](const history_entry& h) { return h.train_loss; }),
                             whole(&history_entry::parameters),
                             whole(&history_entry::flops)});
    }
    one.each = {mean([](const method_result& r) { return r.each.parameters; }),
                mean([](const method_result& r) { return r.each.bytes; }),
                mean([](const method_result& r) { return r.each.flops; })};
    one.megabytes_per_round = mean([](const method_result& r) { return r.megabytes_per_round; });
    one.by_all = mean_holdings(by_seed, m, &method_result::by_all);
    one.by_partial = mean_holdings(by_seed, m, &method_result::by_partial);
    one.seconds = {mean([](const method_result& r) { return r.seconds.cutting; }),
                   mean([](const method_result& r) { return r.seconds.training; }),
                   mean([](const method_result& r) { return r.seconds.averaging; }),
                   mean([](const method_result& r) { return r.seconds.evaluating; })};
    out.push_back(std::move(one));
  }
  return out;
}

std::string table_of_seeds(runs_of_seeds by_seed) {
  const std::vector<seeds_summary> summaries = summarise(by_seed);
  const std::vector<method_result> means = means_of(by_seed);
  const std::string& first = summaries.front().method;
  std::string out = fmt::format(
      "{:<18} {:^29}  {:>14}  {:>10}\n"
      "{:<18} {:>14} {:>14}  {:>14}  {:>10}\n",
      "", "accuracy, %", "difference to", "never by",  //
      "method", "global", "local", first.substr(0, 14), "cut, %");
  for (std::size_t m = 0; m < summaries.size(); ++m) {
    const seeds_summary& s = summaries[m];
    const holdings& parts = means[m].by_partial;
    out += fmt::format(
        "{:<18} {:>14} {:>14}  {:>14}  {:>10}\n", s.method,
        percent(s.accuracy, s.accuracy.deviation),
        percent(s.local_accuracy, s.local_accuracy.deviation),
        m == 0 ? "-" : percent(s.to_first, s.error_of_mean),
        parts.any_client ? fmt::format("{:.1f}", 100 * parts.summary.unseen_share) : "-");
  }
  return out + divergence(means) + "\n" + table_of_costs(means) + "\n" + table_of_times(means);
}

void write_summary(runs_of_seeds by_seed, const std::filesystem::path& folder) {
  std::string out =
      "method,seeds,accuracy,accuracy_deviation,local_accuracy,local_accuracy_deviation,"
      "difference_to_first,difference_error\n";
  for (const seeds_summary& s : summarise(by_seed)) {
    out += fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f}\n", s.method, s.seeds,
                       s.accuracy.mean, s.accuracy.deviation, s.local_accuracy.mean,
                       s.local_accuracy.deviation, s.to_first.mean, s.error_of_mean);
  }
  common::write_file(folder / "summary.csv", out);
}

std::filesystem::path draw_seeds(runs_of_seeds by_seed, const std::string& subtitle,
                                 const std::filesystem::path& folder) {
  const std::vector<method_result> means = means_of(by_seed);
  std::vector<std::vector<double>> deviations;
  for (std::size_t m = 0; m < means.size(); ++m) {
    std::vector<double>& own = deviations.emplace_back();
    for (const history_entry& e : means[m].history) {
      own.push_back(spread_of(accuracies_after(by_seed, m, e.round)).deviation);
    }
  }
  if (by_seed.size() < 2) deviations.clear();
  return draw_picture(means, subtitle, folder, deviations);
}

}  // namespace trainer
