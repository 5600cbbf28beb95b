// SPDX-License-Identifier: MIT
/// The answers of parameter_coverage, derived from its log.
#pragma once

#include <subfed/coverage/detail/holding_log.hpp>
#include <subfed/coverage/detail/joint_counts.hpp>
#include <subfed/coverage/detail/joint_groups.hpp>
#include <subfed/coverage/detail/list_less.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Counts of the parameters that depend on certain groups together.
class parameter_counts {
 public:
  using number = holding_log::number;

  parameter_counts(const model& net, const holding_log& log, joint_groups joints)
      : model_(net), log_(log), joints_(std::move(joints)) {}

  /// Parameters by how often the given entries of the log held them.
  count_histogram histogram(std::span<const number> entries) const {
    count_histogram out;
    for (const auto& [groups, elements] : joints_) {
      const joint_counts counts(model_, log_, groups, entries);
      counts.for_each([&, per_choice = elements](std::int64_t times, std::int64_t nodes) {
        if (nodes > 0) out[times] += nodes * per_choice;
      });
    }
    return out;
  }

  count_histogram rounds_since() const {
    count_histogram out;
    for (const auto& [groups, elements] : joints_) {
      std::int64_t left = elements;
      for (const std::size_t g : groups) left *= model_.groups()[g].extent;
      const joint_counts counts(model_, log_, groups, log_.ended());
      counts.for_each_last([&, per_choice = elements](std::size_t entry, std::int64_t nodes) {
        out[static_cast<std::int64_t>(log_.rounds()) - 1 - round_of(entry)] += nodes * per_choice;
        left -= nodes * per_choice;
      });
      if (left > 0) out[-1] += left;
    }
    return out;
  }

  holder_summary holders() const {
    holder_summary out;
    round_holders known(*this);
    std::vector<number> before;
    double places = 0;  // pairs of a parameter and a round
    double total = 0;
    double shared = 0;
    double pairs_of_clients = 0;
    double later = 0;
    double twice = 0;
    double parameters = 0;
    for (std::size_t r = 0; r < log_.rounds(); ++r) {
      const auto entries = log_.entries(r);
      std::vector<number> here(entries.begin(), entries.end());
      parameters = 0;
      for (const auto& [holders, parameters_held] : known.of(here)) {
        const auto h = static_cast<double>(holders);
        const auto n = static_cast<double>(parameters_held);
        parameters += n;
        total += rounded_product(h, n);
        shared += rounded_product(h * (h - 1) / 2, n);
        if (holders == 0 || parameters_held == 0) continue;
        if (out.least == 0 || holders < out.least) out.least = holders;
        out.most = (std::max)(out.most, holders);
      }
      places += parameters;
      const auto clients = static_cast<double>(here.size());
      pairs_of_clients += rounded_product(clients, (clients - 1) / 2);
      if (r > 0) {
        std::vector<number> either = before;
        either.insert(either.end(), here.begin(), here.end());
        later += static_cast<double>(known.held(here));
        const std::int64_t left =
            known.held(either) - known.held(before);  // without those held twice
        twice += static_cast<double>(known.held(here) - left);
      }
      before = std::move(here);
    }
    if (places == 0) return out;
    out.mean = total / places;
    if (later > 0) out.held_again = twice / later;
    if (pairs_of_clients > 0) out.shared_by_two = shared / (pairs_of_clients * parameters);
    return out;
  }

  /// Pre  m >= 1.
  std::optional<std::int64_t> first_cover(std::int64_t m) const {
    std::int64_t latest = 0;
    for (const auto& [groups, elements] : joints_) {
      const joint_counts counts(model_, log_, groups, log_.ended());
      bool held = true;
      counts.for_each([&](std::int64_t times, std::int64_t nodes) {
        held = held && (times >= m || nodes == 0);
      });
      if (!held) return std::nullopt;
      std::size_t last = 0;
      bool any = false;
      counts.for_each_reached(m, [&](std::size_t entry) {
        last = (std::max)(last, entry);
        any = true;
      });
      if (any) latest = (std::max)(latest, round_of(last) + 1);
    }
    return latest;
  }

 private:
  /// Parameters by how many clients of one round, or of two, held them; computed once for each
  /// choice of submodels.
  class round_holders {
   public:
    explicit round_holders(const parameter_counts& seen) : seen_(seen) {}

    const count_histogram& of(std::vector<number> clients) {
      std::sort(clients.begin(), clients.end());
      const auto [at, is_new] = known_.try_emplace(std::move(clients));
      if (is_new) at->second = seen_.histogram(at->first);
      return at->second;
    }
    std::int64_t held(std::vector<number> clients) {
      std::int64_t out = 0;
      for (const auto& [holders, parameters] : of(std::move(clients))) {
        if (holders > 0) out += parameters;
      }
      return out;
    }

   private:
    const parameter_counts& seen_;
    std::map<std::vector<number>, count_histogram, list_less> known_;
  };

  std::int64_t round_of(std::size_t entry) const {
    std::size_t low = 0;
    std::size_t high = log_.rounds();
    while (high - low > 1) {  // the last round that begins at or before the entry
      const std::size_t middle = low + (high - low) / 2;
      const auto before =
          static_cast<std::size_t>(log_.entries(middle).data() - log_.entries().data());
      (before <= entry ? low : high) = middle;
    }
    return static_cast<std::int64_t>(low);
  }

  const model& model_;
  const holding_log& log_;
  joint_groups joints_;
};

}  // namespace subfed::inline v0::detail
