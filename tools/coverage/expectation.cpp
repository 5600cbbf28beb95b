// SPDX-License-Identifier: MIT
#include "expectation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/coverage/evenness.hpp>
#include <vector>

namespace coverage_tool {
namespace {

/// The distribution of first_cover has (K + 1)^times states and is not worth minutes.
constexpr std::int64_t most_states = 1025;
constexpr std::int64_t most_nodes_of_moments = 20'000;
constexpr std::int64_t most_times_of_bounds = 200;

/// How many nodes a client that is asked keeps: the scheme is asked itself, so that its rounding
/// and least number of nodes are its own.
std::vector<subfed::kept_share> kept_shares(const options& settings, const named_scheme& scheme,
                                            const subfed::cohort_model& cohort,
                                            const std::string& group, std::int64_t extent) {
  std::vector<subfed::kept_share> out;
  const double stays = 1 - settings.cohort.dropout;
  for (std::size_t c = 0; c < cohort.options().mix.classes.size(); ++c) {
    const subfed::capacity capacity = cohort.options().mix.classes[c].capacity;
    const std::int64_t kept =
        scheme.scheme({.group = group, .extent = extent, .capacity = capacity}).size();
    out.push_back({kept, cohort.share(c) * stays});
  }
  if (stays < 1) out.push_back({0, 1 - stays});
  return out;
}

/// Windows that all clients have alike in every round: nothing is random.
expectation of_one_window(const options& settings, std::int64_t extent, std::int64_t clients,
                          std::int64_t kept, std::int64_t step) {
  const std::vector<subfed::held_window> windows(static_cast<std::size_t>(clients),
                                                 {kept, step, 0});
  expectation out;
  out.exact = true;
  const auto counts = subfed::evenness_of(subfed::window_counts(extent, windows, settings.rounds));
  out.mean = counts.mean;
  out.variance = counts.variance;
  out.gini = counts.gini;
  out.unseen_share = counts.unseen_share;
  const auto cover = subfed::window_first_cover(extent, windows, settings.times);
  out.never_covered = !cover;
  if (cover) {
    out.cover = {static_cast<double>(*cover), 0};
    out.cover_beyond = {std::vector<double>(static_cast<std::size_t>(*cover), 1.0)};
  }
  return out;
}

/// Groups that a tensor binds, and elements for each choice of their nodes; empty when a dimension
/// has several parts or a group occurs twice.
struct bound_groups {
  std::vector<std::size_t> groups;
  double elements = 1;
};
std::optional<bound_groups> bound_by(const subfed::model::tensor_info& tensor) {
  bound_groups out;
  for (const subfed::dimension& d : tensor.dimensions) {
    if (d.parts().size() != 1) return std::nullopt;
    const auto& part = d.parts()[0];
    out.elements *= static_cast<double>(part.repeat * part.block);
    if (part.group == subfed::dimension::no_group) {
      out.elements *= static_cast<double>(part.whole);
    } else if (std::count(out.groups.begin(), out.groups.end(), part.group) != 0) {
      return std::nullopt;
    } else {
      out.groups.push_back(part.group);
    }
  }
  return out;
}

/// Of the pairs of a node of each group, the share that windows of L nodes ever hold. step 1: both
/// windows roll; step 0: the first L nodes.
double ever_held_share(std::span<const std::int64_t> extents, std::span<const std::int64_t> kept,
                       std::int64_t step) {
  if (extents.size() == 2 && step != 0) {
    const auto counts = subfed::rolling_parameter_counts(extents[0], kept[0], extents[1], kept[1]);
    const auto held = std::count_if(counts.begin(), counts.end(), [](auto c) { return c > 0; });
    return static_cast<double>(held) / static_cast<double>(counts.size());
  }
  double share = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool some = step != 0 && kept[i] > 0;  // every node is in the window at some time
    share *= some ? 1 : static_cast<double>(kept[i]) / static_cast<double>(extents[i]);
  }
  return share;
}

}  // namespace

expectation expect(const options& settings, const named_scheme& scheme, std::int64_t extent) {
  expectation out;
  if (scheme.known == law::unknown) return out;
  const subfed::cohort_model cohort(settings.cohort);
  const auto shares =
      kept_shares(settings, scheme, cohort, settings.on.net[settings.on.widest].name, extent);
  const bool one_class = settings.class_names.size() == 1;
  if (scheme.known == law::windows && one_class && settings.cohort.dropout == 0) {
    return of_one_window(settings, extent, cohort.asked(), shares[0].kept, scheme.step);
  }
  double kept = 0;
  for (const auto& each : shares) kept += each.share * static_cast<double>(each.kept);
  out.mean =
      static_cast<double>(settings.rounds * cohort.asked()) * kept / static_cast<double>(extent);

  // The clients of a round draw their capacities independently; else only the mean is known.
  if (settings.cohort.capacities == subfed::capacity_assignment::fixed && !one_class) return out;
  const auto round = subfed::random_round::drawn(extent, cohort.asked(), shares);
  if (scheme.known == law::random_sets) {
    const auto counts = subfed::random_counts(round, settings.rounds);
    out.variance = counts.variance;
    out.gini = counts.gini;
    out.unseen_share = counts.unseen_share;
    if (std::pow(static_cast<double>(extent + 1), static_cast<double>(settings.times)) <=
        static_cast<double>(most_states)) {
      out.cover_beyond = subfed::first_cover(round, settings.times, 1e-12);
    } else if (settings.times == 1 && extent <= most_nodes_of_moments) {
      out.cover = subfed::first_cover_moments(round);
    } else if (round.is_fixed() && settings.times <= most_times_of_bounds) {
      const auto bounds = subfed::first_cover_bounds(round, settings.times);
      const double middle = (bounds.mean_at_least + bounds.mean_at_most) / 2;
      if (bounds.mean_at_most - bounds.mean_at_least < 0.004 * middle) out.cover = {middle, 0};
    }
  } else {
    const auto unseen = subfed::window_unseen_probabilities(round, scheme.step, settings.rounds);
    out.unseen_share =
        std::accumulate(unseen.begin(), unseen.end(), 0.0) / static_cast<double>(extent);
    if (settings.times == 1 && scheme.step == 1 && settings.cohort.dropout == 0) {
      out.cover_beyond = subfed::rolling_first_cover(round);
    } else if (scheme.step == 0) {
      double full = 0;  // P(a client that is asked holds all nodes)
      for (const auto& each : shares) full += each.kept == extent ? each.share : 0;
      out.never_covered = full == 0;
      if (full > 0 && settings.times == 1) {
        // Covered in the first round with such a client: geometric.
        const double none = std::pow(1 - full, static_cast<double>(cohort.asked()));
        subfed::round_distribution beyond;
        for (double p = 1; p >= 1e-12 && beyond.beyond.size() < 10'000'000; p *= none) {
          beyond.beyond.push_back(p);
          if (none == 0) break;
        }
        out.cover_beyond = beyond;
      }
    }
  }
  if (out.cover_beyond) out.cover = out.cover_beyond->moments();
  return out;
}

parameter_expectation expect_parameters(const options& settings, const named_scheme& scheme) {
  const subfed::cohort_model cohort(settings.cohort);
  const bool one_class = settings.class_names.size() == 1;
  const bool drawn =
      settings.cohort.capacities == subfed::capacity_assignment::redrawn || one_class;
  const bool windows = scheme.known == law::windows && scheme.step >= 0 && scheme.step <= 1;
  if (!windows && !(scheme.known == law::random_sets && drawn)) return {};
  const subfed::model& net = settings.on.net;
  double unseen = 0;
  for (const auto& tensor : net.tensors()) {
    const auto bound = bound_by(tensor);
    if (!bound || bound->groups.size() > 2) return {};
    double elements = bound->elements;
    std::vector<std::int64_t> extents, most;
    std::vector<subfed::random_round> rounds;
    for (const std::size_t g : bound->groups) {
      const auto& group = net.groups()[g];
      elements *= static_cast<double>(group.extent);
      if (group.cut == subfed::cut::never) continue;
      const auto shares = kept_shares(settings, scheme, cohort, group.name, group.extent);
      rounds.push_back(subfed::random_round::drawn(group.extent, cohort.asked(), shares));
      extents.push_back(group.extent);
      most.push_back(std::max_element(shares.begin(), shares.end(), [](auto a, auto b) {
                       return a.kept < b.kept;
                     })->kept);
    }
    if (windows) {
      unseen += elements * (1 - ever_held_share(extents, most, scheme.step));
    } else if (rounds.empty()) {
      const double none = std::pow(settings.cohort.dropout, static_cast<double>(cohort.asked()));
      unseen += elements * std::pow(none, static_cast<double>(settings.rounds));
    } else {
      unseen += elements * subfed::unseen_parameter_probability(rounds, settings.rounds);
    }
  }
  const double share = unseen / static_cast<double>(net.size());
  return windows ? parameter_expectation{std::nullopt, share}
                 : parameter_expectation{share, std::nullopt};
}

}  // namespace coverage_tool
