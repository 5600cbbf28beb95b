// SPDX-License-Identifier: MIT
/// Coverage as text that can be stored, sent and read back.
#pragma once

#include <subfed/coverage/by_class.hpp>
#include <subfed/coverage/detail/word_reader.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/coverage/parameters.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// Writes and reads the private parts of the coverage classes.
struct coverage_access {
  static void put(std::string& out, const char* name, const std::vector<std::int64_t>& numbers) {
    out += name;
    for (const std::int64_t x : numbers) out += ' ' + std::to_string(x);
    out += '\n';
  }
  /// f(numbers) for all numbers of the round that is open; they add up over shards.
  template <class F>
  static void open_round(coverage& seen, F&& f) {
    for (node_tally& t : seen.groups_) f(std::span<std::int64_t>(t.change));
    f(std::span<std::int64_t>(&seen.open_clients_, 1));
  }
  template <class F>
  static void open_round(coverage_by_class& seen, F&& f) {
    open_round(seen.all_, f);
    for (coverage& each : seen.classes_) open_round(each, f);
  }
  static coverage& all_of(coverage& seen) noexcept { return seen; }
  static coverage& all_of(coverage_by_class& seen) noexcept { return seen.all_; }
  /// Throws unless the round may have so many clients.
  static void check_open(const coverage& seen, std::int64_t clients) {
    seen.check_room(clients - seen.open_clients_, 0, 0, 0);
  }

  static void put_groups(std::string& out, const model& net) {
    for (const auto& group : net.groups()) {
      out += "group " + std::to_string(group.extent) + ' ' + as_word(group.name) + '\n';
    }
  }
  static void expect_groups(word_reader& in, const model& net) {
    for (const auto& group : net.groups()) {
      in.expect("group");
      in.expect(std::to_string(group.extent));
      in.expect(as_word(group.name));
    }
  }

  static void put(std::string& out, const coverage& seen) {
    out += "rounds " + std::to_string(seen.rounds_) + " times " + std::to_string(seen.times_) +
           " clients " + std::to_string(seen.clients_) + " pairs " +
           std::to_string(seen.client_pairs_) + '\n';
    for (const node_tally& t : seen.groups_) {
      put(out, "counts", t.counts);
      put(out, "last", t.last);
      put(out, "held", t.held);
      put(out, "holders", t.holders);
      out += "consecutive " + std::to_string(t.consecutive) + '\n';
    }
  }

  static void get(word_reader& in, coverage& seen) {
    in.expect("rounds");
    seen.rounds_ = in.number("the number of rounds", 0, seen.most_);
    in.expect("times");
    in.expect(std::to_string(seen.times_));
    in.expect("clients");
    seen.clients_ = in.number("the number of clients", 0, seen.most_);
    in.expect("pairs");
    const std::int64_t pairs = seen.clients_ > coverage::most_open
                                   ? coverage::most_pairs
                                   : coverage::open_pairs(seen.clients_);
    seen.client_pairs_ = in.number("the number of pairs of clients", 0, pairs);
    for (node_tally& t : seen.groups_) get(in, t, seen);
  }

  static void get(word_reader& in, coverage_by_class& seen) {
    get(in, seen.all_);
    for (coverage& each : seen.classes_) get(in, each);
  }

  static void get(word_reader& in, node_tally& t, const coverage& seen) {
    in.expect("counts");
    std::int64_t total = 0;  // at most 2^62, like clients times nodes
    for (std::int64_t& x : t.counts) {
      x = in.number("a count", 0, seen.clients_);
      total += x;
    }
    in.expect("last");
    for (std::size_t n = 0; n < t.nodes; ++n) {
      const bool held = t.counts[n] != 0;
      t.last[n] = in.number("a last round", held ? 0 : -1, held ? seen.rounds_ - 1 : -1);
    }
    in.expect("held");
    t.unfinished = 0;
    for (std::size_t m = 0; m < t.times; ++m) {
      for (std::size_t n = 0; n < t.nodes; ++n) {
        const auto holding = static_cast<std::int64_t>(m) + 1;
        const bool held = t.counts[n] >= holding;
        const std::int64_t before = held && m > 0 ? t.held[(m - 1) * t.nodes + n] : 0;
        const std::int64_t least = !held ? -1 : t.counts[n] == holding ? t.last[n] : before;
        t.held[m * t.nodes + n] = in.number("a round", least, held ? t.last[n] : -1);
        t.unfinished += m + 1 == t.times && !held;
      }
    }
    in.expect("holders");
    std::int64_t left = static_cast<std::int64_t>(t.nodes) * seen.rounds_;  // at most 2^62
    t.holders.clear();
    do {
      t.holders.push_back(in.number("a number of nodes and rounds", 0, left));
      left -= t.holders.back();
      const std::int64_t h = static_cast<std::int64_t>(t.holders.size()) - 1;
      if (h > 0 && t.holders.back() > total / h) in.refuse("more holders than counts", "as many");
      total -= h * t.holders.back();
    } while (left > 0);
    if (total != 0) in.refuse("fewer holders than counts", "as many");
    in.expect("consecutive");
    t.consecutive = in.number("the number of consecutive holdings", 0, t.later_holdings());
  }

  static void put(std::string& out, const parameter_coverage& seen) {
    const holding_log& log = seen.log_;
    for (std::size_t g = 0; g < seen.model_.groups().size(); ++g) {
      out += "sets " + std::to_string(log.sets(g).size()) + '\n';
      for (const node_ranges& set : log.sets(g)) {
        out += std::to_string(set.size());
        for (const auto& [first, end] : set) {
          out += ' ' + std::to_string(first) + ' ' + std::to_string(end);
        }
        out += '\n';
      }
    }
    out += "submodels " + std::to_string(log.submodels().size()) + '\n';
    for (const auto& sets : log.submodels()) {
      for (std::size_t g = 0; g < sets.size(); ++g) {
        out += (g == 0 ? "" : " ") + std::to_string(sets[g]);
      }
      out += '\n';
    }
    out += "rounds " + std::to_string(log.rounds()) + '\n';
    for (std::size_t r = 0; r < log.rounds(); ++r) {
      out += std::to_string(log.entries(r).size());
      for (const auto e : log.entries(r)) out += ' ' + std::to_string(e);
      out += '\n';
    }
  }

  static void get(word_reader& in, parameter_coverage& seen) {
    const auto groups = seen.model_.groups();
    std::vector<std::int64_t> used_sets(groups.size(), 0);  // numbers ascend
    for (std::size_t g = 0; g < groups.size(); ++g) {
      in.expect("sets");
      const std::int64_t number = in.number("the number of sets", 0, in.numbers_left());
      for (std::int64_t s = 0; s < number; ++s) {
        if (seen.log_.add_set(g, get_set(in, groups[g].extent)) != s) in.refuse("a set", "another");
      }
    }
    in.expect("submodels");
    const std::int64_t submodels = in.number("the number of submodels", 0, in.numbers_left());
    for (std::int64_t s = 0; s < submodels; ++s) {
      std::vector<holding_log::number> sets;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        sets.push_back(get_number(in, "a set", seen.log_.sets(g).size(), used_sets[g]));
      }
      if (groups.empty()) in.expect("");
      if (seen.log_.add_submodel(std::move(sets)) != s) in.refuse("a submodel", "another");
    }
    std::int64_t used_submodels = 0;
    in.expect("rounds");
    const std::int64_t rounds = in.number("the number of rounds", 0, in.numbers_left());
    for (std::int64_t r = 0; r < rounds; ++r) {
      const std::int64_t clients = in.number("the number of clients", 0, in.numbers_left());
      for (std::int64_t c = 0; c < clients; ++c) {
        seen.log_.add_entry(
            get_number(in, "a submodel", seen.log_.submodels().size(), used_submodels));
      }
      seen.log_.end_round();
    }
    bool all = used_submodels == submodels;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      all = all && std::cmp_equal(used_sets[g], seen.log_.sets(g).size());
    }
    if (!all) in.refuse("a set or submodel that is not used", "none");
  }

  static node_ranges get_set(word_reader& in, std::int64_t extent) {
    node_ranges set;
    const std::int64_t ranges = in.number("the number of ranges", 0, in.numbers_left());
    std::int64_t from = 0;
    for (std::int64_t i = 0; i < ranges; ++i) {
      const std::int64_t first = in.number("a first node", from, extent - 1);
      const std::int64_t end = in.number("an end of nodes", first + 1, extent);
      set.emplace_back(first, end);
      from = end + 1;  // adjacent ranges would be one
    }
    return set;
  }
  /// One of `numbers` numbers, of which `used` have appeared.
  static holding_log::number get_number(word_reader& in, const char* what, std::size_t numbers,
                                        std::int64_t& used) {
    const auto last = static_cast<std::int64_t>(numbers) - 1;
    const std::int64_t found = in.number(what, 0, (std::min)(used, last));
    if (found == used) ++used;
    return static_cast<holding_log::number>(found);
  }

  static bool is_open(const coverage& seen) { return seen.open_clients_ != 0; }
  static bool is_open(const parameter_coverage& seen) {
    return seen.log_.open() != seen.log_.entries().size();
  }
  template <class Coverage>
  static void check_ended(const Coverage& seen) {
    if (!is_open(seen)) return;
    fail(
        "subfed: coverage text: clients of a round that has not ended are recorded; end it before "
        "writing");
  }

  /// The times of a text's second line, checked against what can follow.
  static std::int64_t times(word_reader& in, const model& net) {
    in.expect("times");
    return in.number("the times of first covers", 1, room(in, nodes_of(net)));
  }

  /// Nodes of all groups, up to 2^62.
  static std::int64_t nodes_of(const model& net) {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    std::int64_t nodes = 0;
    for (const auto& group : net.groups()) nodes += (std::min)(group.extent, most - nodes);
    return nodes;
  }
  /// How often that many numbers can follow; at least once. For zero numbers there is no limit:
  /// they take no memory.
  static std::int64_t room(const word_reader& in, std::int64_t numbers) {
    if (numbers == 0) return largest_size;
    return (std::max)(in.numbers_left() / numbers, std::int64_t{1});
  }
};

}  // namespace detail

/// The coverage as text: lines of words and whole numbers, the same on every platform.
///
///   subfed coverage 1
///   times <up to which first covers are kept>
///   group <extent> <name>              for each group of the model
///   rounds .. times .. clients .. pairs ..
///   counts, last, held, holders, consecutive   for each group
///
/// A name's bytes outside '!' .. '~' are written as %XX.
///
/// Throws  error while a round is open.
inline std::string to_text(const coverage& seen) {
  detail::coverage_access::check_ended(seen);
  std::string out = "subfed coverage 1\ntimes " + std::to_string(seen.times()) + '\n';
  detail::coverage_access::put_groups(out, seen.parent());
  detail::coverage_access::put(out, seen);
  return out;
}

/// As to_text of one coverage, with "classes <number>" after the times, and the last part first for
/// all clients, then for each class.
inline std::string to_text(const coverage_by_class& seen) {
  std::string out = "subfed coverage by class 1\ntimes " + std::to_string(seen.in_all().times()) +
                    "\nclasses " + std::to_string(seen.classes()) + '\n';
  detail::coverage_access::check_ended(seen.in_all());
  detail::coverage_access::put_groups(out, seen.in_all().parent());
  detail::coverage_access::put(out, seen.in_all());
  for (std::size_t c = 0; c < seen.classes(); ++c) {
    detail::coverage_access::put(out, seen.of_class(c));
  }
  return out;
}

/// The log of a parameter_coverage: the distinct sets of each group as numbers of ranges, first
/// nodes and ends; the distinct submodels as numbers of sets; the clients of each round as numbers
/// of submodels.
///
/// Throws  error while a round is open.
inline std::string to_text(const parameter_coverage& seen) {
  detail::coverage_access::check_ended(seen);
  std::string out = "subfed parameter coverage 1\n";
  detail::coverage_access::put_groups(out, seen.parent());
  detail::coverage_access::put(out, seen);
  return out;
}

/// Reads what to_text wrote about the same model.
///
/// Throws  error that names the line for anything that to_text would not have written: another
///         model, numbers out of range or that contradict each other, missing or additional text.
/// Cost    Memory in proportion to the text and the model, whatever the text says.
inline coverage read_coverage(const model& net, std::string_view text) {
  detail::word_reader in(text);
  for (const char* word : {"subfed", "coverage", "1"}) in.expect(word);
  coverage out(net, detail::coverage_access::times(in, net));
  detail::coverage_access::expect_groups(in, net);
  detail::coverage_access::get(in, out);
  if (to_text(out) != text) in.refuse("more or other blanks", "what to_text writes");
  return out;
}
inline coverage_by_class read_coverage_by_class(const model& net, std::string_view text) {
  detail::word_reader in(text);
  for (const char* word : {"subfed", "coverage", "by", "class", "1"}) in.expect(word);
  const std::int64_t times = detail::coverage_access::times(in, net);
  in.expect("classes");
  // Each class has a line of eight words, and a number for each node and time.
  using access = detail::coverage_access;
  std::int64_t numbers = access::nodes_of(net);
  if (!detail::multiply(numbers, times)) numbers = detail::largest_size;
  const std::int64_t classes = in.number(
      "the number of classes", 0, (std::min)(in.numbers_left() / 8, access::room(in, numbers)));
  coverage_by_class out(net, static_cast<std::size_t>(classes), times);
  detail::coverage_access::expect_groups(in, net);
  detail::coverage_access::get(in, out);
  if (to_text(out) != text) in.refuse("more or other blanks", "what to_text writes");
  return out;
}
inline parameter_coverage read_parameter_coverage(const model& net, std::string_view text) {
  detail::word_reader in(text);
  for (const char* word : {"subfed", "parameter", "coverage", "1"}) in.expect(word);
  parameter_coverage out(net);
  detail::coverage_access::expect_groups(in, net);
  detail::coverage_access::get(in, out);
  if (to_text(out) != text) in.refuse("more or other blanks", "what to_text writes");
  return out;
}

}  // namespace subfed::inline v0
