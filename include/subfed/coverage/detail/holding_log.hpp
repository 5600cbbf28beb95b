// SPDX-License-Identifier: MIT
/// Who held what in which round: distinct submodels, and a number for each client and round.
#pragma once

#include <subfed/coverage/detail/list_less.hpp>
#include <subfed/detail/node_ranges.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Sets and submodels are kept once, numbered in the order of their first use.
class holding_log {
 public:
  using number = std::uint32_t;

  explicit holding_log(std::size_t groups) : sets_(groups) {}

  /// The set of each group, for a client of the current round.
  void record(std::vector<node_ranges> sets) {
    undo all_or_nothing(*this);
    record_now(std::move(sets));
    all_or_nothing.kept = true;
  }
  /// The clients of a round of another log, for the current round.
  void record_round(const holding_log& from, std::size_t round) {
    for (const number e : from.entries(round)) record_now(from.sets_of(e));
  }
  /// The rounds of `later`, which is not this log, follow.
  void append(const holding_log& later) {
    undo all_or_nothing(*this);
    for (std::size_t r = 0; r <= later.rounds(); ++r) {
      record_round(later, r);
      if (r < later.rounds()) end_round();
    }
    all_or_nothing.kept = true;
  }
  number add_set(std::size_t group, node_ranges set) { return sets_[group].find(std::move(set)); }
  number add_submodel(std::vector<number> sets) { return submodels_.find(std::move(sets)); }
  void add_entry(number submodel) { entries_.push_back(submodel); }
  void end_round() { ends_.push_back(entries_.size()); }

  std::size_t rounds() const noexcept { return ends_.size(); }
  std::span<const number> entries() const noexcept { return entries_; }
  /// Entries of a round; number rounds() is the current one.
  std::span<const number> entries(std::size_t round) const {
    const std::size_t begin = round == 0 ? 0 : ends_[round - 1];
    const std::size_t end = round == ends_.size() ? entries_.size() : ends_[round];
    return std::span(entries_).subspan(begin, end - begin);
  }
  /// Entries of the rounds that have ended.
  std::span<const number> ended() const { return std::span(entries_).first(open()); }
  /// First entry of the current round.
  std::size_t open() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  std::span<const std::vector<number>> submodels() const noexcept { return submodels_.items; }
  std::span<const node_ranges> sets(std::size_t group) const noexcept { return sets_[group].items; }
  /// The sets of an entry's submodel.
  std::vector<node_ranges> sets_of(number submodel) const {
    std::vector<node_ranges> out;
    for (std::size_t g = 0; g < sets_.size(); ++g) {
      out.push_back(sets_[g].items[submodels_.items[submodel][g]]);
    }
    return out;
  }

 private:
  template <class Item>
  struct numbered {
    std::map<Item, number, list_less> numbers;
    std::vector<Item> items;

    number find(Item item) {
      if (items.size() > (std::numeric_limits<number>::max)()) {
        fail("subfed: parameter_coverage: more than 2^32 different sets or submodels");
      }
      const auto at = numbers.lower_bound(item);
      if (at != numbers.end() && !list_less()(item, at->first)) return at->second;
      const auto next = static_cast<number>(items.size());
      items.push_back(item);  // first: where memory runs out, no number is without its item
      numbers.emplace_hint(at, std::move(item), next);
      return next;
    }
    void cut(std::size_t size) noexcept {
      while (items.size() > size) {
        numbers.erase(items.back());
        items.pop_back();
      }
    }
  };

  /// Takes back what was added since, unless it is kept: memory may run out in between.
  struct undo {
    explicit undo(holding_log& recorded)
        : log(recorded),
          submodels(log.submodels_.items.size()),
          entries(log.entries_.size()),
          ends(log.ends_.size()) {
      for (const auto& group : log.sets_) sets.push_back(group.items.size());
    }
    undo(const undo&) = delete;
    undo& operator=(const undo&) = delete;
    ~undo() {
      if (kept) return;
      for (std::size_t g = 0; g < sets.size(); ++g) log.sets_[g].cut(sets[g]);
      log.submodels_.cut(submodels);
      log.entries_.resize(entries);
      log.ends_.resize(ends);
    }

    holding_log& log;
    std::vector<std::size_t> sets;
    std::size_t submodels, entries, ends;
    bool kept = false;
  };

  void record_now(std::vector<node_ranges> sets) {
    std::vector<number> key;
    for (std::size_t g = 0; g < sets_.size(); ++g) key.push_back(add_set(g, std::move(sets[g])));
    add_entry(add_submodel(std::move(key)));
  }

  std::vector<numbered<node_ranges>> sets_;
  numbered<std::vector<number>> submodels_;
  std::vector<number> entries_;
  std::vector<std::size_t> ends_;
};

}  // namespace subfed::inline v0::detail
