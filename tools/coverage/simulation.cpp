// SPDX-License-Identifier: MIT
#include "simulation.hpp"

#include <algorithm>
#include <common/pool.hpp>
#include <map>
#include <mutex>
#include <span>
#include <subfed/coverage/by_class.hpp>
#include <subfed/coverage/parameters.hpp>
#include <subfed/draw.hpp>
#include <utility>

#include "ranks.hpp"

namespace coverage_tool {
namespace {

constexpr std::int64_t most_history = 100;

std::uint64_t seed_of(const options& settings, std::size_t run) {
  return subfed::random_stream(settings.cohort.seed, run, 0, "subfed coverage repetition").bits(0);
}

subfed::cohort_model cohort_of(const options& settings, std::size_t run) {
  subfed::cohort_options cohort = settings.cohort;
  cohort.seed = seed_of(settings, run);
  return subfed::cohort_model(cohort);
}

/// Calls each(submodel, class) for the clients of a round.
template <class Each>
void play_round(const options& settings, const named_scheme& scheme,
                const subfed::cohort_model& cohort, std::uint64_t round, Each&& each) {
  for (const subfed::cohort_member& m : cohort.members(round)) {
    each(subfed::draw(settings.on.net, scheme.scheme,
                      {.seed = cohort.options().seed,
                       .round = round,
                       .client = m.client,
                       .capacity = m.capacity}),
         m.client_class);
  }
}

/// The clients of a round, each rank's part of them by several threads: each rank has them all then.
void play_round_on_ranks(const options& settings, const named_scheme& scheme,
                         const subfed::cohort_model& cohort, std::uint64_t round,
                         common::pool& workers, subfed::coverage_by_class& seen) {
  const std::vector<subfed::cohort_member> members = cohort.members(round);
  const auto parts = static_cast<std::size_t>(settings.threads);
  const std::size_t all = parts * static_cast<std::size_t>(ranks::count());
  std::vector<subfed::coverage_by_class> shards(
      parts, subfed::coverage_by_class(settings.on.net, seen.classes(), settings.times));
  workers.run(parts, [&](std::size_t thread) {
    const std::size_t part = static_cast<std::size_t>(ranks::number()) * parts + thread;
    const std::size_t end = members.size() * (part + 1) / all;
    for (std::size_t m = members.size() * part / all; m < end; ++m) {
      shards[thread].record(subfed::draw(settings.on.net, scheme.scheme,
                                         {.seed = cohort.options().seed,
                                          .round = round,
                                          .client = members[m].client,
                                          .capacity = members[m].capacity}),
                            members[m].client_class);
    }
  });
  for (const subfed::coverage_by_class& shard : shards) seen.merge(shard);
  ranks::merge(seen);
  seen.end_round();
}

/// One run of one scheme: parts of it come in from the threads and are joined in their order.
class joined_run {
 public:
  joined_run(const options& settings, scheme_result& into, std::vector<history_entry>& history,
             bool first)
      : settings_(settings),
        into_(into),
        history_(history),
        first_(first),
        seen_(settings.on.net, settings.class_names.size(), settings.times) {}

  void add(std::size_t part, subfed::coverage_by_class seen) {
    waiting_.emplace(part, std::move(seen));
    for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_;) {
      if (first_) {
        const auto counts = at->second.in_all().counts(settings_.on.widest);
        into_.heat.emplace_back(counts.begin(), counts.end());
      }
      seen_.append(at->second);
      const auto now = seen_.in_all().summary();
      history_[next_] = {seen_.in_all().rounds(), now.gini, now.unseen_share};
      at = waiting_.erase(at);
      ++next_;
    }
  }

  void finish(repetition& out) const {
    const subfed::coverage& all = seen_.in_all();
    out.widest = all.summary(settings_.on.widest);
    out.widest_cover = all.first_cover(settings_.on.widest, settings_.times);
    out.holders = all.holders(settings_.on.widest);
    out.nodes = all.summary();
    out.node_cover = all.first_cover(settings_.times);
    for (std::size_t c = 0; c < seen_.classes(); ++c) {
      out.classes.push_back({seen_.of_class(c).clients(), seen_.of_class(c).summary()});
    }
    if (!first_) return;
    const auto counts = all.counts(settings_.on.widest);
    into_.counts.assign(counts.begin(), counts.end());
  }

  const subfed::coverage& in_all() const { return seen_.in_all(); }

 private:
  const options& settings_;
  scheme_result& into_;
  std::vector<history_entry>& history_;
  bool first_;
  subfed::coverage_by_class seen_;
  std::map<std::size_t, subfed::coverage_by_class> waiting_;
  std::size_t next_ = 0;
};

/// Means over the runs, added up in the order of the runs: they end in another one.
std::vector<history_entry> mean_of(const std::vector<std::vector<history_entry>>& histories) {
  std::vector<history_entry> out(histories[0].size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].round = histories[0][i].round;
    for (const auto& run : histories) {
      out[i].gini += run[i].gini / static_cast<double>(histories.size());
      out[i].unseen_share += run[i].unseen_share / static_cast<double>(histories.size());
    }
  }
  return out;
}

std::vector<starved_nodes> starved_runs(const subfed::model& net,
                                        const std::vector<std::vector<bool>>& held) {
  std::vector<starved_nodes> out;
  for (std::size_t g = 0; g < held.size(); ++g) {
    if (net.groups()[g].cut == subfed::cut::never) continue;
    for (std::size_t n = 0; n < held[g].size(); ++n) {
      if (held[g][n]) continue;
      std::size_t last = n;
      while (last + 1 < held[g].size() && !held[g][last + 1]) ++last;
      out.push_back(
          {net.groups()[g].name, static_cast<std::int64_t>(n), static_cast<std::int64_t>(last)});
      n = last;
    }
  }
  return out;
}

}  // namespace

std::vector<scheme_result> simulate(const options& settings,
                                    const std::function<void(const news&)>& report) {
  const auto runs = static_cast<std::size_t>(settings.repetitions);
  const auto parts = static_cast<std::size_t>((std::min)(settings.rounds, most_history));
  const auto begin_of = [&](std::size_t part) {
    // rounds * part stays below 2^63: at most 10^9 rounds in 100 parts.
    return settings.rounds * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(parts);
  };
  // Whose run it is, where parameters are counted.
  const auto owner_of = [](std::size_t run) {
    return static_cast<int>(run % static_cast<std::size_t>(ranks::count()));
  };
  common::pool workers(static_cast<std::size_t>(settings.threads), [] {});
  std::vector<scheme_result> results(settings.schemes.size());
  std::mutex mutex;
  const double work = static_cast<double>(results.size() * runs) * (settings.parameters ? 4 : 1);
  double done = 0;

  for (std::size_t s = 0; s < results.size(); ++s) {
    const named_scheme& scheme = settings.schemes[s];
    scheme_result& into = results[s];
    into.name = scheme.name;
    into.runs.resize(runs);
    std::vector<std::vector<history_entry>> histories(runs, std::vector<history_entry>(parts));
    std::map<std::size_t, joined_run> open;  // runs that have begun and not ended
    std::map<std::size_t, std::size_t> arrived;
    std::vector<std::vector<bool>> held;
    for (const auto& group : settings.on.net.groups()) {
      held.emplace_back(static_cast<std::size_t>(group.extent), false);
    }
    const auto join = [&](std::size_t run, std::size_t part, subfed::coverage_by_class seen) {
      joined_run& own =
          open.try_emplace(run, settings, into, histories[run], run == 0).first->second;
      own.add(part, std::move(seen));
      done += 1 / static_cast<double>(parts);
      report({s, false, done / work});
      if (++arrived[run] != parts) return;
      own.finish(into.runs[run]);
      for (std::size_t g = 0; g < held.size(); ++g) {
        const auto counts = own.in_all().counts(subfed::group_id(g));
        for (std::size_t n = 0; n < counts.size(); ++n) held[g][n] = held[g][n] || counts[n] > 0;
      }
      open.erase(run);
    };
    // Ranks share the clients of a round, as the rounds may be few and the clients many; the threads
    // of one rank alone share the rounds.
    for (std::size_t task = 0; ranks::count() > 1 && task < runs * parts; ++task) {
      const subfed::cohort_model cohort = cohort_of(settings, task / parts);
      subfed::coverage_by_class seen(settings.on.net, settings.class_names.size(), settings.times);
      for (std::int64_t r = begin_of(task % parts); r < begin_of(task % parts + 1); ++r) {
        play_round_on_ranks(settings, scheme, cohort, static_cast<std::uint64_t>(r), workers, seen);
      }
      join(task / parts, task % parts, std::move(seen));
    }
    workers.run(ranks::count() > 1 ? 0 : runs * parts, [&](std::size_t task) {
      const std::size_t run = task / parts;
      const std::size_t part = task % parts;
      const subfed::cohort_model cohort = cohort_of(settings, run);
      subfed::coverage_by_class seen(settings.on.net, settings.class_names.size(), settings.times);
      for (std::int64_t r = begin_of(part); r < begin_of(part + 1); ++r) {
        play_round(settings, scheme, cohort, static_cast<std::uint64_t>(r),
                   [&](const subfed::submodel& sub, std::size_t own) { seen.record(sub, own); });
        seen.end_round();
      }
      const std::lock_guard lock(mutex);
      join(run, part, std::move(seen));
    });
    into.history = mean_of(histories);
    into.starved = starved_runs(settings.on.net, held);
    if (!settings.parameters) continue;
    workers.run(runs, [&](std::size_t run) {
      if (owner_of(run) != ranks::number()) return;
      const subfed::cohort_model cohort = cohort_of(settings, run);
      subfed::parameter_coverage seen(settings.on.net);
      for (std::int64_t r = 0; r < settings.rounds; ++r) {
        play_round(settings, scheme, cohort, static_cast<std::uint64_t>(r),
                   [&](const subfed::submodel& sub, std::size_t) { seen.record(sub); });
        seen.end_round();
      }
      const auto evenness = subfed::evenness_of(seen.histogram());
      const auto cover = seen.first_cover(settings.times);
      const std::lock_guard lock(mutex);
      into.runs[run].parameters = evenness;
      into.runs[run].parameter_cover = cover;
      done += 3;
      report({s, true, done / work});
    });
    for (std::size_t run = 0; run < runs; ++run) {
      struct found {
        subfed::evenness parameters;
        bool covered = false;
        std::int64_t cover = 0;
      };
      repetition& own = into.runs[run];
      found all;
      if (own.parameters) {
        all = {*own.parameters, own.parameter_cover.has_value(), own.parameter_cover.value_or(0)};
      }
      ranks::broadcast(std::as_writable_bytes(std::span<found>(&all, 1)), owner_of(run));
      own.parameters = all.parameters;
      if (all.covered) own.parameter_cover = all.cover;
    }
  }
  return results;
}

}  // namespace coverage_tool
